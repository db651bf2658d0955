/* note.h: notes of mutexes, in nodes beside the queues: CHROOT/simba-notes/MUTEX. */
#ifndef BACKEND_ZOOKEEPER_NOTE_H
#define BACKEND_ZOOKEEPER_NOTE_H

#include "backend/zookeeper/session.h"

/* PUBLISH of the tenure that this node stands for; q: given. The session is connected. */
void zk_note_publish(struct latch_session *s, struct simba_request *q, const char *node);

/* What there is of a note, for who reads; text: allocated, NULL: none. */
struct zk_note {
    char *text;
    uint64_t token;
    int64_t age_ms;
    int64_t wall_ms; /* what the server's clock shows, also if there is no note; 0: unknown */
};
typedef void zk_note_fn(void *data, int rc, const struct zk_note *note); /* rc: as of the library */

/* Calls done exactly once, unless this fails. The text is given with it. current: the last note that was
 * written, and not what a server knows that lags behind. */
int zk_note_read(struct session *s, const char *mutex, bool current, zk_note_fn *done, void *data);
void zk_note_folder(const struct zookeeper *z, char out[PATH_SIZE]);
#endif
