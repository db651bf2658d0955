/* thread_ref.h: a reference to a thread, such as the one that acquired a lock: simba_close can
 * ask whether it still lives. A pthread_t cannot be asked that: when a thread has ended, it may
 * be anybody's. */
#ifndef RUNTIME_THREAD_REF_H
#define RUNTIME_THREAD_REF_H

#include <stdbool.h>

struct thread_ref;

struct thread_ref *thread_ref_self(void); /* of the calling thread, for its life; NULL: no memory */
struct thread_ref *thread_ref_keep(struct thread_ref *h); /* one more pointer to it */
void thread_ref_drop(struct thread_ref *h);               /* one less; NULL does nothing */
bool thread_ref_has_ended(const struct thread_ref *h);
#endif
