/* listen.h: what --listen answers, in the keeper:
 *
 *     /leader    200 if we own the mutex at the instant of the answer, else 503 and who does
 *     /healthz   200 if the store answers and renewals are on time, else 503 and why not
 *     /metrics   what the library counts, as Prometheus reads it
 *
 * The thread of the responder asks only what the library knows at once. A thread of ours, the probe,
 * asks the store, one question at a time, while we do not own the mutex; and sees whether renewals
 * come while we do. */
#ifndef CLI_RUN_LISTEN_H
#define CLI_RUN_LISTEN_H

#include <simba.h>

struct run_options;

/* Binds the address that the configuration has; to be called after every fork. */
struct step listen_open(const struct run_options *opts);

/* Begins to answer, for the one of these that is not NULL. */
struct step listen_begin(const struct run_options *opts, simba_contender *contender,
                         simba_locker *locker);

/* Before the client is closed. */
void listen_end(const struct run_options *opts);
#endif
