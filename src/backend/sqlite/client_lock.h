/* client_lock.h: the files PATH-live and PATH-tree. Whatever happens to SQLite's own files, all
 * clients of a store share these, and they answer three questions.
 *
 * Is a client still there? Each client has a number that is never used again, and holds a lock
 * on the byte of that number in PATH-live, and a shared one in PATH-tree. The kernel drops a lock
 * when nobody is left who has the descriptor. That of PATH-tree may be given to children, which
 * may still act for the client. It can only be read: whoever has it, also as another user, can
 * say in PATH-tree that clients live which are dead, whose leases are then waited for, and no
 * more. So nothing else is decided there.
 *
 * Who may write? Writers take turns by the lock on byte 0, and those who write the log back by
 * another.
 *
 * Is the database the one that was last written? The last writer leaves a watermark here. A
 * database that is behind it is an older one: restored, or put together from other files. */
#ifndef BACKEND_SQLITE_CLIENT_LOCK_H
#define BACKEND_SQLITE_CLIENT_LOCK_H

#include <simba.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backend/sqlite/paths.h"

struct file_id {
    dev_t device;
    ino_t inode;
};

struct client_lock {
    int fd;         /* of PATH-live; -1: none */
    int turn;       /* for the locks on turns */
    int tree;       /* of PATH-tree, read-only; it stands at the byte that is locked */
    int64_t file;   /* which PATH-live the lock is in … */
    int64_t files;  /* … and which PATH-tree: others say nothing about us; -1: unknown */
    int64_t number; /* ours; 0: none yet */
    struct file_id id;
};

enum client_lock_turn { CLIENT_LOCK_WRITE, CLIENT_LOCK_CHECKPOINT };

/* What is read from a file may be anything. Within these bounds no sum of them overflows. */
#define CLIENT_LOCK_NUMBER_MAX (INT64_C(1) << 40) /* a file may be that long */
#define CLIENT_LOCK_COUNT_MAX (INT64_C(1) << 62)  /* of serials, tokens and times, in ns */
#define CLIENT_LOCK_LEASE_MAX (SIMBA_LEASE_MAX_MS * INT64_C(1000000))

/* Zero where nobody has left one yet. */
struct client_lock_watermark {
    int64_t serial; /* of the last write transaction */
    int64_t token;  /* no greater one was granted */
    int64_t lease;  /* nor a longer one, ns */
};

/* The database file after the last checkpoint. */
struct client_lock_written {
    int64_t changed, size; /* when its bytes were last changed; a copy may keep that time */
    int64_t unfinished;    /* not 0: a checkpoint has begun, and has not ended, or not well */
    int64_t touched;       /* when anything of it was, which nobody can set; 0: unknown */
    int64_t access;        /* a digest of its owners and mode, whose change counts as a touch */
};

/* 0, or -1, errno, and which file it is. A reader is only to ask. */
int client_lock_open(struct client_lock *l, const struct paths *p, const char **which);
int client_lock_open_reader(struct client_lock *l, const struct paths *p, const char **which);
int client_lock_hold(struct client_lock *l, const struct paths *p, int64_t number,
                     const char **which);
void client_lock_drop(struct client_lock *l); /* the number */
void client_lock_close(struct client_lock *l);

/* Does another hold this number, or a child that may act for it? Errs to yes. */
bool client_lock_is_held(const struct client_lock *l, int64_t number);

/* The greatest number that another client holds; 0: there is none, nor a child of one that has ended;
 * -1: a foreign lock covers all numbers that follow. */
int64_t client_lock_last(const struct client_lock *l);

bool client_lock_take(const struct client_lock *l,
                      enum client_lock_turn turn); /* false: another has it */
void client_lock_give(const struct client_lock *l, enum client_lock_turn turn);

int64_t client_lock_bound(int64_t n, int64_t most); /* into 0 … most */

struct client_lock_watermark client_lock_watermark(const struct client_lock *l);
void client_lock_set_watermark(const struct client_lock *l,
                               const struct client_lock_watermark *watermark);
struct client_lock_written client_lock_written(const struct client_lock *l);
void client_lock_set_written(const struct client_lock *l,
                             const struct client_lock_written *written);
#endif
