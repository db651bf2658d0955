/* loop.h: the descriptors that a client waits for. */
#ifndef RUNTIME_LOOP_H
#define RUNTIME_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct simba_client;

struct loop {
    uv_loop_t uv;
    uv_poll_t wake, alarm;
    int wake_fd, alarm_fd, gate_fd;
    int64_t alarm_at; /* whoever has the baton */

    _Atomic uint32_t wakers; /* threads that are about to write to wake_fd; futex */
};

int loop_init(struct simba_client *s); /* 0 or an errno */

/* Whoever is inside of libuv goes on. In two steps: the first under the client's lock, the second
 * after it, so that nobody wakes up only to wait for the lock. */
void loop_wake_locked(struct simba_client *s);
void loop_wake(struct simba_client *s);

void loop_set_alarm(struct simba_client *s, int64_t at); /* the next turn, at the latest */

/* The gate is where the client's own thread sleeps outside of libuv: it opens when libuv has
 * anything to do, unless it is shut. timeout_ms -1: none. */
void loop_shut_gate(struct simba_client *s, bool shut);
void loop_wait_at_gate(struct simba_client *s, int timeout_ms);

int loop_timeout(struct simba_client *s);        /* ms until the next timer of libuv; -1: none */
void loop_close_handles(struct simba_client *s); /* so that uv_run can end */
void loop_end(struct simba_client *s);           /* after that */
void loop_close_wake(struct simba_client *s); /* the last: others may have been about to wake it */
#endif
