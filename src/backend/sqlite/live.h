/* live.h: the file PATH-live. Whatever happens to SQLite's own files, all clients of a store share
 * this one, and it answers three questions.
 *
 * Is a client still there? Each client has a number that is never used again, and holds a lock on the
 * byte of that number. The kernel drops the lock when nobody is left who has the descriptor: the
 * process, or a child that inherited it and may still act for it.
 *
 * Who may write? Writers take turns by the lock on byte 0, and those who write the log back by
 * another.
 *
 * Is the database the one that was last written? The last writer leaves a mark here. A database that
 * is behind the mark is an older one: restored, or put together from other files. */
#ifndef BACKEND_SQLITE_LIVE_H
#define BACKEND_SQLITE_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct live {
    int fd;         /* -1: none */
    int turn;       /* for the locks on turns: no child inherits them */
    int64_t file;   /* which file the lock is in; another says nothing about us */
    int64_t number; /* ours; 0: none yet */
    dev_t device;
    ino_t inode;
};

enum live_turn { LIVE_WRITE, LIVE_CHECKPOINT };

/* Zero where nobody has left a mark yet. */
struct live_mark {
    int64_t serial; /* of the last write transaction */
    int64_t token;  /* no greater one was granted */
    int64_t lease;  /* nor a longer one, ns */
};

/* The database file after the last checkpoint. */
struct live_written {
    int64_t changed, size; /* when its bytes were last changed; a copy may keep that time */
    int64_t unfinished;    /* not 0: a checkpoint has begun, and has not ended, or not well */
    int64_t touched;       /* when anything of it was, which nobody can set; 0: unknown */
    int64_t access;        /* a digest of its owners and mode, whose change counts as a touch */
};

int live_open(struct live *l, const char *path);        /* 0, or -1 and errno */
int live_open_reader(struct live *l, const char *path); /* only to ask; likewise */
int live_hold(struct live *l, int64_t number);          /* 0, or -1 and errno */
void live_drop(struct live *l);                         /* the number */
void live_close(struct live *l);

/* Does another hold this number? Errs to yes. */
bool live_is_held(const struct live *l, int64_t number);

/* The greatest number that another holds from `first` on; 0: none; -1: a foreign lock covers all that
 * follow. */
int64_t live_last(const struct live *l, int64_t first);

bool live_take(const struct live *l, enum live_turn turn); /* false: another has it */
void live_give(const struct live *l, enum live_turn turn);

struct live_mark live_mark(const struct live *l);
void live_set_mark(const struct live *l, const struct live_mark *mark);
struct live_written live_written(const struct live *l);
void live_set_written(const struct live *l, const struct live_written *written);
#endif
