/* callback.h: telling the user. Whoever has the baton. */
#ifndef RUNTIME_CALLBACK_H
#define RUNTIME_CALLBACK_H

#include <stdint.h>

struct actor;
struct call;
struct handle_update;

void callback_dispatch(struct actor *a, const struct handle_update *up); /* POST_DONE follows */
void callback_submit(struct actor *a); /* the next one, if none is with the executor */
void callback_warn(struct actor *a, int64_t ends_at); /* on_endangered; POST_WARNED follows */

/* Of an asynchronous call; callback_submit follows. */
void callback_add_result_locked(struct actor *a, struct call *call);
#endif
