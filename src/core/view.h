/* view.h: what is_owner() reads: the deadline of the tenure and its token, published by one thread
 * for all others without a lock.
 *
 * The deadline is 0 while nothing is owned, and no two tenures or renewals share one. A reader
 * loads deadline and token, reads the clock, and then looks at the deadline again: if it is still
 * the same, it was valid and the token belonged to it at the instant of the clock. Neither a pause
 * of the reader nor a release in the meantime can make a stale "yes".
 *
 * A caller's stop counts from the call on, before the machine has seen it: `stopped` belongs to the
 * callers, who set it with a stop, release or destroy, and take it back with the next start. */
#ifndef CORE_VIEW_H
#define CORE_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct view {
    _Atomic int64_t deadline;
    _Atomic uint64_t token;
    _Atomic bool stopped;
};

struct view_reading {
    int64_t deadline;
    uint64_t token;
};

/* By the one thread that decides; deadline 0: not owner. */
static inline void view_publish(struct view *v, int64_t deadline, uint64_t token)
{
    if (deadline == atomic_load_explicit(&v->deadline, memory_order_relaxed))
        return;
    if (deadline != 0 && token != atomic_load_explicit(&v->token, memory_order_relaxed)) {
        atomic_store(&v->deadline, 0);
        atomic_store(&v->token, token);
    }
    atomic_store(&v->deadline, deadline);
}

/* By callers, in the order of their calls; a start comes only when the stop before it is done. */
static inline void view_stop(struct view *v)
{
    atomic_store(&v->stopped, true);
}

static inline void view_start(struct view *v)
{
    atomic_store(&v->stopped, false);
}

static inline int64_t view_deadline(const struct view *v)
{
    if (atomic_load_explicit(&v->stopped, memory_order_acquire))
        return 0;
    return atomic_load_explicit(&v->deadline, memory_order_acquire);
}

/* First; false: not owner. Then read the clock. */
static inline bool view_begin(const struct view *v, struct view_reading *r)
{
    r->deadline = view_deadline(v);
    r->token = atomic_load_explicit(&v->token, memory_order_acquire);
    return r->deadline != 0;
}

/* Is the tenure that was read this one? */
static inline bool view_is_of(const struct view_reading *r, uint64_t token)
{
    return r->token == token;
}

/* Last; false: it has changed meanwhile, begin again. */
static inline bool view_end(const struct view *v, const struct view_reading *r)
{
    return view_deadline(v) == r->deadline;
}
#endif
