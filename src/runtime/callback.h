/* callback.h: telling the user. Whoever has the baton. */
#ifndef RUNTIME_CALLBACK_H
#define RUNTIME_CALLBACK_H

#include <stdint.h>

struct actor;
struct handle_update;

void callback_dispatch(struct actor *a, const struct handle_update *up); /* NOTE_DONE follows */
void callback_submit(struct actor *a);                /* the one that was kept back */
void callback_warn(struct actor *a, int64_t ends_at); /* on_endangered; NOTE_WARNED follows */
#endif
