/* live.h: is a client still there? Each client has a number that is never used again, and holds a
 * lock on the byte of that number in a file of its own. The kernel drops the lock when nobody is left
 * who has the descriptor: the process, or a child that inherited it and may still act for it. */
#ifndef BACKEND_SQLITE_LIVE_H
#define BACKEND_SQLITE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct live {
    int fd;         /* -1: none */
    int64_t file;   /* which file the lock is in; another says nothing about us */
    int64_t number; /* ours; 0: none yet */
};

int live_open(struct live *l, const char *path); /* 0, or -1 and errno */
int live_hold(struct live *l, int64_t number);   /* 0, or -1 and errno */
void live_close(struct live *l);

/* Does another hold one of these numbers? Errs to yes. */
bool live_is_held(const struct live *l, int64_t first, int64_t end);

/* The greatest number that anybody holds from `first` on; 0: none. */
int64_t live_last(const struct live *l, int64_t first);
#endif
