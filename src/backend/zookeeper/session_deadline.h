/* session_deadline.h: until when our session surely stands on the server, whatever we hear
 * later. Pure.
 *
 * The ensemble's leader ends a session when it has not heard of it for the timeout S. Of a client
 * that is connected to a follower it hears by the follower's answers to its pings, which come every
 * half tick; S is at least two ticks. So a write that was acknowledged does not by itself mean that
 * the leader counts anew from it: the follower may have been cut off right behind it. But when a
 * write is acknowledged that was sent S/4 or more after an *earlier* exchange had ended, a ping was
 * answered in between, and the leader counts from that earlier one or later:
 *
 *      exchange m              ping        write n, acknowledged
 *   ------|--|-------------------|----------|-----|---------------------|--------> time
 *       sent ended      >= S/4               sent                     m.sent + S: it may end here
 *
 * Without a write nothing counts: a follower that is cut off still answers reads and pings. With a
 * write every S/6 this comes to two thirds of S after the last one was sent, and never to more. */
#ifndef BACKEND_ZOOKEEPER_SESSION_DEADLINE_H
#define BACKEND_ZOOKEEPER_SESSION_DEADLINE_H

#include <stdint.h>

#define DEADLINE_KEPT 8

struct session_deadline {
    int64_t timeout; /* S */
    int64_t counted; /* the leader surely counts from here or later */
    int64_t written; /* when the last acknowledged write was sent */
    struct {
        int64_t sent, ended;
    } kept[DEADLINE_KEPT]; /* recent exchanges, oldest first */
    int count;
};

/* All times in milliseconds of one clock; sent: read before it was. */
void zk_session_deadline_begin(struct session_deadline *s, int64_t timeout,
                               int64_t sent); /* the session was made */
/* The leader confirmed it on a new connection, where the timeout may be another. */
void zk_session_deadline_moved(struct session_deadline *s, int64_t timeout, int64_t sent);
void zk_session_deadline_heard(struct session_deadline *s, int64_t sent,
                               int64_t ended); /* an answer to a read */
void zk_session_deadline_wrote(struct session_deadline *s, int64_t sent, int64_t ended);
int64_t zk_session_deadline_until(const struct session_deadline *s);

/* When the next write is due; how often a session that needs none asks for something, so that the
 * first one counts in full. */
int64_t zk_session_deadline_write_at(const struct session_deadline *s);
int64_t zk_session_deadline_idle_ms(const struct session_deadline *s);
#endif
