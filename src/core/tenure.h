/* tenure.h: what others' tenures look like from outside: whether two sightings are of the same one,
 * and why one has ended. Times are on one clock, that of whoever looks. */
#ifndef CORE_TENURE_H
#define CORE_TENURE_H

#include <simba.h>
#include <stdbool.h>
#include <stdint.h>

/* A tenure as last seen. */
struct tenure {
    char *id;            /* borrowed; NULL: nobody */
    uint64_t token;      /* 0: unknown */
    int64_t acquired_at; /* not before this; later by seen_at - asked_at at most, if it is aged */
    int64_t until;       /* the end of its lease, as far as it was known then */
    int64_t lease;       /* at least so long is its lease: the most that was seen to be left */
    int64_t asked_at;    /* when the request was sent that showed it, */
    int64_t seen_at;     /* and when its answer came */
    bool aged;           /* the store knows when it began */
    bool evicted;        /* an operator ends it */
};

/* A renewal never makes another tenure. Where the tokens do not tell, one that began after the last
 * sighting is another; when in doubt it is the same. */
bool tenure_is_same(const struct tenure *a, const struct tenure *later);

/* Whether an answer brings old news to who sees the tenure `last`, and saw `before` before it: a
 * tenure that is older than the last one, or that has been seen to end. Nobody (id NULL) may
 * come with the token of the tenure that was last. A foreign client may own the mutex again
 * with a token that was used before, or without one: that is no old news. */
bool tenure_is_old(const struct tenure *before, const struct tenure *last,
                   const struct tenure *now);

/* Why it is gone, if an answer shows `next` instead (id NULL: nobody):
 *   EVICTED   it was seen to be evicted
 *   RELEASED  it was gone, or the next had surely begun, before the end of its lease that was known
 *   EXPIRED   it was last seen so close to that end, unrenewed, that its owner had stopped acting
 *   UNSEEN    else: it may have been renewed after it was last seen, and then released, or not
 * An owner stops, and renews no more, period_margin() before the end. Of a foreign one that goes on to
 * the very end this is as good as known. */
enum simba_reason tenure_end(const struct tenure *was, const struct tenure *next);
#endif
