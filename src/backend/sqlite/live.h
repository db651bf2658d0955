/* live.h: is a client still there? Each client has a number that is never used again, and holds a
 * lock on the byte of that number in a file of its own. The kernel drops the lock when nobody is left
 * who has the descriptor: the process, or a child that inherited it and may still act for it. */
#ifndef BACKEND_SQLITE_LIVE_H
#define BACKEND_SQLITE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct live {
    int fd;         /* -1: none */
    int64_t inode;  /* of the file that the lock is in; another file says nothing about us */
    int64_t number; /* ours; 0: none yet */
};

int live_open(struct live *l, const char *path);                     /* 0, or -1 and errno */
int live_hold(struct live *l, int64_t number);                       /* 0, or -1 and errno */
bool live_is_held(const struct live *l, int64_t first, int64_t end); /* by another; errs to yes */
bool live_is_replaced(const struct live *l, const char *path);
void live_close(struct live *l);
#endif
