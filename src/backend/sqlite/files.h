/* files.h: are the files at the paths still those that we have open, and as we left them? A path is
 * only looked at, never opened: to close any descriptor of the database or of PATH-shm would drop
 * SQLite's locks. */
#ifndef BACKEND_SQLITE_FILES_H
#define BACKEND_SQLITE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backend/sqlite/client_lock.h"
#include "backend/sqlite/paths.h"

struct files {
    struct file_id db, wal, shm;
    int wal_fd;                      /* of the log, on which nobody has locks; -1: none */
    struct client_lock_written seen; /* the database file, as it should be */
    int64_t wal_size, shm_size;      /* the most that they were */
};

enum files_state {
    FILES_SAME,
    FILES_OTHER,  /* one was deleted or replaced, the log was truncated, or the database was written
                      or put back by another hand */
    FILES_SHRUNK, /* PATH-shm was truncated: whoever reads there would be killed */
    FILES_LINKED, /* the database has a second name, beside which others have other files */
    FILES_UNKNOWN, /* they cannot be looked at: errno */
};

/* Which files SQLite has just opened; while nobody else can make new ones. 0, or -1: it has others
 * than those at the paths, or they cannot be looked at (errno). */
int files_record(struct files *f, const struct paths *p);
void files_forget(struct files *f);

/* which: the path that differs. */
enum files_state files_check(struct files *f, const struct paths *p, const struct client_lock *l,
                             const char **which);

/* Is the database file as the last checkpoint left it? */
bool files_is_as_written(struct files *f, const struct paths *p, const struct client_lock *l);

/* Around a checkpoint, by one at a time: the file changes now, and: so it should be. */
void files_begin_writing(const struct client_lock *l);
void files_end_writing(struct files *f, const struct paths *p, const struct client_lock *l);

/* Makes PATH-shm as long as it was. The index in it is to be built again after that. */
void files_mend_shm(const struct files *f, const struct paths *p);
#endif
