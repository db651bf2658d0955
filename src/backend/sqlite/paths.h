/* paths.h: where the database lives. What is wrong with a path is said before anything is opened. */
#ifndef BACKEND_SQLITE_PATHS_H
#define BACKEND_SQLITE_PATHS_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* The folder is resolved; the last part is never a symbolic link. */
struct paths {
    char db[PATH_MAX];
    char wal[PATH_MAX]; /* DB-wal, and DB-shm: SQLite's */
    char shm[PATH_MAX];
    char live[PATH_MAX];        /* DB-live */
    char tree[PATH_MAX];        /* DB-tree */
    char wakeup_file[PATH_MAX]; /* DB-bell */
};

/* 0, or SIMBA_EINVAL, SIMBA_EDENIED, SIMBA_EUNSUPPORTED with the reason in why. */
int paths_find(struct paths *p, const char *path, char *why, size_t why_size);

/* 0600; 0660 in a folder that is shared with its group: mode 2770. */
mode_t paths_mode(const char *path);

/* Opens a file beside the database, makes it with that mode if need be, CLOEXEC; -1: see errno. */
int paths_open(const char *path);
#endif
