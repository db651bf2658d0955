/* holder.h: the thread that has acquired a lock, so that simba_close can tell whether it is still
 * there. A pthread_t cannot be asked that: when a thread has ended, it may be anybody's. */
#ifndef RUNTIME_HOLDER_H
#define RUNTIME_HOLDER_H

#include <stdbool.h>

struct holder;

struct holder *holder_self(void); /* of the calling thread, for its life; NULL: no memory */
struct holder *holder_keep(struct holder *h); /* one more pointer to it */
void holder_drop(struct holder *h);           /* one less; NULL does nothing */
bool holder_has_ended(const struct holder *h);
#endif
