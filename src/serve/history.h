/* history.h: a file of tenures, in SQLite: who owned what, from when to when, and why it ended. One process
 * writes it, simba watch --record or simba serve --history; any number read it meanwhile. */
#ifndef SERVE_HISTORY_H
#define SERVE_HISTORY_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/follow.h"

#define HISTORY_KEEP_MS (INT64_C(30) * 24 * 3600 * 1000) /* unless --keep says otherwise */
#define HISTORY_GAPS_MAX 100                             /* that are told to a page */
#define HISTORY_ROWS_MAX 1000000 /* of more tenures the oldest are deleted */
#define HISTORY_RECORDINGS_MAX \
    10000 /* of more times without a gap, too; what was before is unknown then */

struct cli;
struct json_buffer;
struct history;

/* Opens the file, and makes it where it is missing: for its owner only. It is refused if it is something
 * else, damaged, written by a newer simba, or if another process records into it. */
struct step history_open_to_write(const struct cli *c, const char *path, struct history **out);
struct step history_open_to_read(const struct cli *c, const char *path, struct history **out);
/* Beside one that writes, in the same process. */
struct step history_open_beside(const struct cli *c, const struct history *writer,
                                struct history **out);
void history_close(struct history *h); /* NULL: does nothing */

/* ---- writing: one thread at a time. 0, or -1: history_why() says it */

const char *history_why(const struct history *h);
const char *history_path(const struct history *h);

/* Begins a recording of a store (as it is shown), of these mutexes or (count 0) all. What had not ended in
 * the last one is given to `resume`, with ended_ms at the end of that recording. */
int history_begin(struct history *h, const char *store, char *const *names, size_t count,
                  void (*resume)(void *data, const struct seen_tenure *t), void *data);
/* The same again, after a time in which nothing was seen. */
int history_go_on(struct history *h, char *const *names, size_t count);
void history_interrupt(struct history *h);         /* from any thread: what runs now fails */
bool history_is_gone(const struct history *h);     /* the file was moved or deleted */
int64_t history_last_row(const struct history *h); /* rows greater than this are free */

/* Several in one transaction, each by its row, new or changed; and until when we have seen all. */
int history_write(struct history *h, const struct seen_tenure *tenures, size_t count,
                  int64_t until_ms);

/* Deletes what ended before the wall time given, and what is too much; some rows at a time. */
int history_purge(struct history *h, int64_t before_ms);

/* ---- reading */

struct history_query {
    int64_t since_ms;   /* what ended before is left out */
    char *const *names; /* of mutexes */
    size_t name_count;  /* 0: all */
    const char *store;  /* NULL: any */
};

/* A time in which nothing was recorded, or not all that is asked for. */
struct history_gap {
    int64_t from_ms, to_ms;
    const char *store;
    bool is_partial; /* some mutexes were recorded */
};

/* Calls one of them for each, oldest first; gap NULL: without gaps. What is on while nobody records
 * has an end that was not seen. 0, or -1. */
typedef void history_tenure_fn(void *data, const struct seen_tenure *t, const char *store);
typedef void history_gap_fn(void *data, const struct history_gap *g);
int history_read(struct history *h, const struct history_query *q, history_tenure_fn *tenure,
                 history_gap_fn *gap, void *data);

/* Those that are over, of all mutexes or one, the newest first: before this end and row, at most so
 * many. 0, or -1; 1: that took as long as it may, and what was told is the beginning. */
struct history_page {
    const char *store, *mutex; /* mutex NULL: all */
    int64_t since_ms, before_ms, before_row;
    size_t limit;
    int64_t until; /* on simba_now(); 0: as long as it takes */
};
int history_read_page(struct history *h, const struct history_page *p, history_tenure_fn *tenure,
                      void *data);
int history_count_stores(struct history *h); /* -1: an error */

/* When not all mutexes of a store were recorded: first the time before the first recording, which begins with
 * the time itself (0), then what ended after since_ms, the newest first, at most HISTORY_GAPS_MAX. 0, or -1. */
int history_read_gaps(struct history *h, const char *store, int64_t since_ms, history_gap_fn *gap,
                      void *data);

/* A tenure as a JSON object: for simba history --json and for simba serve. */
void seen_tenure_json(struct json_buffer *t, const struct seen_tenure *tenure, const char *store);
#endif
