/* recorder.h: writes tenures into a history file while they are followed.
 *
 * Threads: recorder_add() is called under the lock of a struct follow and never waits for the disk: it
 * puts the tenure into a queue. One thread writes, and says when the disk does not take it. */
#ifndef SERVE_RECORDER_H
#define SERVE_RECORDER_H

#include "cli/follow.h"
#include "serve/history.h"

#define RECORDER_QUEUE_MAX \
    65536 /* tenures that wait for the disk; beyond, the oldest are not written */

struct recorder;

/* Opens the file; what was on in its last recording is given to f. After cli_open(), and before
 * follow_begin(). */
struct step recorder_open(const struct cli *c, const char *path, int64_t keep_ms,
                          struct recorder **out);
struct step recorder_begin(struct recorder *r, struct follow *f);

/* Before recorder_begin(): only these mutexes are recorded, borrowed; and if the file is moved or deleted,
 * this eventfd is written to. */
void recorder_limit(struct recorder *r, char *const *names, size_t count);
void recorder_tell(struct recorder *r, int eventfd);
bool recorder_is_gone(struct recorder *r); /* it was: nothing is recorded any more */

#define RECORDER_TEXT_MAX 640
/* Why nothing is recorded now; "": it is. */
const char *recorder_explain(struct recorder *r, char out[RECORDER_TEXT_MAX]);

/* Another connection to the same file, for reading. */
struct step recorder_reader(struct recorder *r, struct history **out);

/* Of the sink: a tenure began or is over. It gets its row. */
void recorder_add(struct recorder *r, struct seen_tenure *t);

/* Writes what is left, and that it was recorded until now; frees r. */
void recorder_end(struct recorder *r);
#endif
