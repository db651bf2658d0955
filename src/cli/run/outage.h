/* outage.h: renewals that fail: who is told of it, and why a lease was lost.
 *
 * The library's events say when renewals fail and when they succeed again. The beginning of an outage
 * is shown, and its end. The cause is kept in memory that keeper and guard
 * share, so that the guard, which asks nobody, can say it when it ends CMD. Nobody waits for
 * anybody: there are two places for the cause, and the writer fills the one that is not read. */
#ifndef CLI_RUN_OUTAGE_H
#define CLI_RUN_OUTAGE_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTAGE_CAUSE_MAX 256

struct outage {
    _Atomic int64_t renewed_at;    /* the last renewal, in ns, as the keeper has seen it; 0: none */
    _Atomic int64_t failing_since; /* in ns; of the last outage */
    _Atomic bool is_on;
    _Atomic unsigned current;
    char cause[2][OUTAGE_CAUSE_MAX]; /* "": renewals do not fail, as far as is known */
};

struct outage *outage_new(void); /* shared with processes that are forked later; NULL: see errno */

#define OUTAGE_EVENTS                                                            \
    (SIMBA_EVENT_BIT(SIMBA_EVENT_FAILING) | SIMBA_EVENT_BIT(SIMBA_EVENT_WORKS) | \
     SIMBA_EVENT_BIT(SIMBA_EVENT_ACQUIRED))

/* One of these: true if it begins or ends an outage, and is to be shown. */
bool outage_take(struct outage *o, const struct simba_event *event);

/* "no renewal for 11.9s (connection refused)"; keeper: the process that should have renewed. */
#define OUTAGE_TEXT_MAX (OUTAGE_CAUSE_MAX + 128)
const char *outage_explain(struct outage *o, int keeper, char out[OUTAGE_TEXT_MAX]);
/* The same, or what else ended the tenure. */
const char *outage_why(struct outage *o, enum simba_reason reason, int keeper,
                       char out[OUTAGE_TEXT_MAX]);
#endif
