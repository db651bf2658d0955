/* client_lock.h: the file PATH-live. Whatever happens to SQLite's own files, all clients of a
 * store share this one, and it answers three questions.
 *
 * Is a client still there? Each client has a number that is never used again, and holds a lock
 * on the byte of that number. The kernel drops the lock when nobody is left who has the
 * descriptor: the process, or a child that inherited it and may still act for it.
 *
 * Who may write? Writers take turns by the lock on byte 0, and those who write the log back by
 * another.
 *
 * Is the database the one that was last written? The last writer leaves a watermark here. A
 * database that is behind it is an older one: restored, or put together from other files. */
#ifndef BACKEND_SQLITE_CLIENT_LOCK_H
#define BACKEND_SQLITE_CLIENT_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file_id {
    dev_t device;
    ino_t inode;
};

struct client_lock {
    int fd;         /* -1: none */
    int turn;       /* for the locks on turns: no child inherits them */
    int64_t file;   /* which file the lock is in; another says nothing about us */
    int64_t number; /* ours; 0: none yet */
    struct file_id id;
};

enum client_lock_turn { CLIENT_LOCK_WRITE, CLIENT_LOCK_CHECKPOINT };

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

int client_lock_open(struct client_lock *l, const char *path);        /* 0, or -1 and errno */
int client_lock_open_reader(struct client_lock *l, const char *path); /* only to ask; likewise */
int client_lock_hold(struct client_lock *l, int64_t number);          /* 0, or -1 and errno */
void client_lock_drop(struct client_lock *l);                         /* the number */
void client_lock_close(struct client_lock *l);

/* Does another hold this number? Errs to yes. */
bool client_lock_is_held(const struct client_lock *l, int64_t number);

/* The greatest number that another holds from `first` on; 0: none; -1: a foreign lock covers all
 * that follow. */
int64_t client_lock_last(const struct client_lock *l, int64_t first);

bool client_lock_take(const struct client_lock *l,
                      enum client_lock_turn turn); /* false: another has it */
void client_lock_give(const struct client_lock *l, enum client_lock_turn turn);

struct client_lock_watermark client_lock_watermark(const struct client_lock *l);
void client_lock_set_watermark(const struct client_lock *l,
                               const struct client_lock_watermark *watermark);
struct client_lock_written client_lock_written(const struct client_lock *l);
void client_lock_set_written(const struct client_lock *l,
                             const struct client_lock_written *written);
#endif
