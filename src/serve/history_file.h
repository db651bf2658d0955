/* history_file.h: what history.c, which opens and writes the file, shares with history_read.c. */
#ifndef SERVE_HISTORY_FILE_H
#define SERVE_HISTORY_FILE_H

#include <sqlite3.h>

#include "serve/history.h"

struct history {
    sqlite3 *db;
    sqlite3_stmt *write, *alive;
    char *path;
    int fd;            /* of the lock; -1: a reader */
    bool is_recorded;  /* a reader's: somebody records */
    int64_t recording; /* the row of ours */
    int64_t store;
    int64_t last_row;
    char why[512];
};

int history_fail(struct history *h);                               /* -1; keeps what SQLite says */
sqlite3_stmt *history_prepare(struct history *h, const char *sql); /* NULL: an error */
int64_t history_ask_number(struct history *h, const char *sql);    /* -1: an error */

/* A row of the table tenure t; the note is borrowed from the statement. */
#define HISTORY_ROW                                                                              \
    "t.id,t.mutex,t.holder,t.token,t.began_ms,t.began_known,t.ended_ms,t.reason,t.over_by_ms,t." \
    "note"
void history_take_row(sqlite3_stmt *s, struct seen_tenure *t);

#define HISTORY_TIME_MAX INT64_C(253402300799999)   /* the end of the year 9999 */
int64_t history_take_time(sqlite3_stmt *s, int at); /* from 0 to that */
#endif
