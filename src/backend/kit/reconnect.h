/* reconnect.h: when to connect again. A connection that has lasted is worth an attempt at once,
 * and requests wait for that. After a failed attempt, or a connection that broke right away,
 * there is a pause, from 50 ms up to 1 s; meanwhile the failure is the answer to all requests.
 * Half of each pause is random, so that the clients of a server that was restarted do not come
 * all at once. */
#ifndef BACKEND_KIT_RECONNECT_H
#define BACKEND_KIT_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

struct reconnect {
    unsigned failures; /* in a row */
    int64_t ready_at;  /* 0: there is no connection */
    uint64_t rng;
};

void reconnect_init(struct reconnect *r);
void reconnect_ready(struct reconnect *r, int64_t now); /* simba_now(): there is a connection */

/* It is lost, or an attempt has failed: the pause before the next, in ms. */
int64_t reconnect_pause(struct reconnect *r, int64_t now);

/* The same for a client that was never let in, after an attempt that was given up as too late, which the
 * server has to deal with all the same: up to four times as long as that lasted is added. So a crowd
 * that is more than the server can greet in that time asks less often, and thins out. */
int64_t reconnect_pause_late(struct reconnect *r, int64_t now, int64_t attempt_ms);

/* The next attempt may well succeed: let requests wait for it. */
bool reconnect_is_hopeful(const struct reconnect *r);
#endif
