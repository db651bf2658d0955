/* planted.h: mistakes that others made, to be switched on one at a time in a build of their own
 * (-DSIMBA_PLANTED, `make mutants`). They show that the simulator's checks bite. In every other
 * build PLANTED() is the constant false and nothing of this exists. */
#ifndef CORE_PLANTED_H
#define CORE_PLANTED_H

#include <stdbool.h>

#define PLANTED_BUGS(X)                                                                  \
    X(LEASE_FROM_REPLY, "the lease counts from the answer, not from the request")        \
    X(NO_SELF_FENCING, "nothing ends a tenure when its deadline passes")                 \
    X(CLOCK_FIRST, "is_owner reads the clock before the deadline")                       \
    X(NO_SECOND_READING, "is_owner does not read the deadline again after the clock")    \
    X(RELEASE_BEFORE_DRAIN, "the store is told while user code still runs")              \
    X(DRAIN_RELEASES, "at the drain limit the lease is released, not left to expire")    \
    X(ADOPT_LATE, "a grant that comes after its deadline is taken")                      \
    X(TRUST_PUSH, "a push makes the owner")                                              \
    X(ONE_ATTEMPT, "one failed renewal costs the tenure")                                \
    X(TOKEN_KEPT, "a tenure that ended here is taken up again")                          \
    X(STALE_LIFE, "a late answer from before a stop begins a tenure after the start")    \
    X(ANY_ANSWER, "any answer is taken for the one that is awaited")                     \
    X(DRIFT_IGNORED, "clocks are thought to run alike")                                  \
    X(ADOPT_FOREIGN, "a tenure under my chosen id is mine")                              \
    X(ADOPT_WHOLE, "an adopted tenure counts as a whole lease")                          \
    X(RELEASE_ANY, "the store releases without comparing the token")                     \
    X(STALE_CALLBACK, "on_acquired runs though the tenure has ended in the queue")       \
    X(UNPAIRED_RELEASE, "on_released runs though on_acquired did not")                   \
    X(NO_NEXT_TRY, "a failed attempt sets no next one")                                  \
    X(OWNER_WHILE_STOPPING, "is_owner stays true while on_released runs")                \
    X(OWNER_AFTER_STOP, "is_owner stays true after stop until the loop has seen it")     \
    X(ABANDONED_IS_KEPT, "what a caller that has gone was granted is kept")              \
    X(NO_STALL, "an owner that reports no progress keeps its tenure")                    \
    X(STALE_REPORT, "a report of progress counts whatever tenure it is from")            \
    X(NO_PAUSE, "who has resigned or stalled contends at once")                          \
    X(NOT_KEPT, "at_least does not hold back what is given back early")                  \
    X(NO_WARNING, "on_endangered is not told that renewals fail")                        \
    X(WARNING_BESIDE, "on_released does not wait for on_endangered")                     \
    X(STOPPED_EARLY, "on_stopped comes with the stop, not with its end")                 \
    X(NOTE_AFTER, "on_acquired does not wait for the note")                              \
    X(PUBLISH_ANY, "the store publishes without comparing the token")                    \
    X(LATCH_FORGETS_CREATE, "a node whose creation was not answered is forgotten")       \
    X(LATCH_FORGETS_DELETE, "a deletion that was not answered counts as done")           \
    X(LATCH_PLAIN_ORDER, "sequences are compared as numbers, and run over")              \
    X(LATCH_ANY_CHILD, "every child of the mutex's node is a member")                    \
    X(LATCH_KEEPS_UNWANTED, "a node that nobody wants any more stays")                   \
    X(LATCH_TAKES_ORPHAN, "an own node that is to be deleted is taken for a tenure")     \
    X(LATCH_NO_WATCH, "who waits leaves no watch on the member in front")                \
    X(LATCH_NO_WRITE, "a session counts as standing while it is connected")              \
    X(LATCH_NO_WORTH, "a tenure begins although hardly anything of it is left")          \
    X(TICK_CLAIMED_LATE, "a tick is claimed after its run, though it may run only once") \
    X(TICK_OLD_TOKEN, "the store takes a tick of a tenure that is over")                 \
    X(TICK_OVERTAKEN, "the store lets an older tick of a tenure overtake a newer one")   \
    X(TICK_NOT_READ, "a new leader does not read what is claimed")                       \
    X(TICK_NOT_REPEATED, "a tick that was begun and not done is left as it is")          \
    X(TICK_BY_CLOCK, "a leader goes by its clock, whatever is claimed")                  \
    X(TICK_OWN_CLOCK, "a leader goes by its own clock, however wrong it is")             \
    X(LATCH_REMOVES_OTHERS, "a node in front that we do not know is deleted, whoever made it")

#ifdef SIMBA_PLANTED
#define PLANTED_X(name, text) PLANTED_##name,
enum planted { PLANTED_NONE, PLANTED_BUGS(PLANTED_X) PLANTED_COUNT };
#undef PLANTED_X
extern enum planted planted_bug;
#define PLANTED(name) (planted_bug == PLANTED_##name)
#else
#define PLANTED(name) false
#endif
#endif
