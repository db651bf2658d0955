/* model.h: what simba serve knows: who owns what now, and the tenures that are over.
 *
 * Threads: observers change it, the server's thread reads it, one thread (the publisher) tells what has
 * changed, one (the asker) asks the store now and then. One lock guards all, that of `follow`. It is
 * never held while somebody waits for the store, the disk or a client. */
#ifndef SERVE_MODEL_H
#define SERVE_MODEL_H

#include "base/json.h"
#include "cli/follow.h"
#include "serve/figures.h"
#include "serve/history.h"
#include "serve/http/http.h"
#include "serve/recorder.h"

#define RING_MAX 16384      /* tenures that are over, in memory, if there is no file */
#define PENDING_MAX 65536   /* changes to be told; of more, clients are told to begin anew */
#define ROWS_MAX 5000       /* in one answer; the next one goes on; … */
#define ANSWER_BYTES 262144 /* … it has no more rows from so many bytes on */
#define PUBLISH_MS 100      /* so often changes are told … */
#define PUBLISH_BYTES 65536 /* … and at most about so many bytes of them */
#define LIST_LEAST_MS 5000  /* so often the store is asked who waits, while somebody looks; … */
#define LIST_MOST_MS 60000  /* … rarely, if a list takes long: … */
#define LIST_SHARE 50       /* … it asks for one part in so many of the time */
#define PROBE_MS 5000       /* so often it is asked whether it answers at all */
#define READ_MS 200     /* so long the file may keep the server's thread; then the answer ends */
#define LOOKED_MS 15000 /* who asked so short ago still looks */

struct model {
    struct cli *c;
    struct follow follow;
    struct http *http;
    struct recorder *recorder; /* NULL: none, then the ring is used */
    struct history *reader;    /* of the same file; the server's thread alone uses it */
    int64_t keep_ms;           /* what ended longer ago is deleted from it */
    struct seen_tenure *ring;  /* [RING_MAX] */
    uint64_t ring_count;       /* ever; the last RING_MAX are there */
    uint64_t published_count;  /* of those, told to clients */
    uint64_t changes;
    char epoch[17];     /* of this process: numbers of changes of another one say nothing here */
    int64_t started_ms; /* on the wall clock; without a file, nothing is known of earlier */
    struct figures figures;
    char (*pending)[SIMBA_MUTEX_MAX + 1];
    size_t pending_count, pending_room;
    bool is_reset; /* PENDING_MAX, RING_MAX: they are to begin anew */
    uint64_t ended[SIMBA_STALLED + 1], unseen, began;
    pthread_cond_t changed, asked; /* for the publisher; for the asker */
    int64_t looked_at;             /* simba_now() */
    int64_t listed_at, list_ms;    /* when the last list came, and how long it took */
    bool is_answering;             /* the store */
    int64_t answered_at;           /* when it last did, or began not to */
    char why[512];                 /* it does not */
    char unrecorded
        [RECORDER_TEXT_MAX]; /* why no history is written; "": it is, or was not asked for */
    bool is_ending;
    pthread_t publisher, asker;
};

struct step model_init(struct model *m, struct cli *c);

/* Begins to follow the store. After http_listen(), before
 * http_start(). */
struct step model_begin(struct model *m);
void model_end(struct model *m);

/* ---- for answers: the lock is taken */

/* Mutexes in the order of their names, after this one (NULL: from the first); or these names, with a
 * line end between them. Where there are more, `next` is the last one that was written. */
void model_write_mutexes(struct model *m, const char *after, const char *names, size_t limit,
                         struct json_buffer *t);

/* Tenures that are over, the newest first; the store is the model's own. */
void model_write_history(struct model *m, const struct history_page *asked, struct json_buffer *t);
void model_write_hello(struct model *m, struct json_buffer *t); /* the first event */
void model_write_metrics(struct model *m, struct json_buffer *t);
bool model_write_health(struct model *m,
                        struct json_buffer *t); /* does the store answer, and is all recorded? */
#endif
