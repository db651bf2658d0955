/* client_lock.c: open file description locks, because those of fcntl's older kind end when any
 * descriptor of the file is closed anywhere in the process, and are not inherited by children. An exclusive
 * one needs a descriptor that can be written to, a shared one and the question who has one do not. */
#include "backend/sqlite/client_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS (INT64_C(1) << 62) /* all numbers are below */
#define WATERMARK_AT 0
#define WRITTEN_AT 64
#define TOUCHED_AT 128

/* Locks and contents of a file have nothing to do with each other. A foreign program that locks the
 * rest of the file while clients are there cannot have byte 0. */
static const int64_t turn_at[] = {[CLIENT_LOCK_WRITE] = 0, [CLIENT_LOCK_CHECKPOINT] = NUMBERS};

static uint64_t digest(const struct stat *s)
{
    return s->st_ino ^ ((uint64_t)s->st_dev << 40);
}

/* 0, or -1 and errno. */
static int identify(struct client_lock *l)
{
    struct stat s;
    if (fstat(l->fd, &s) != 0)
        return -1;
    l->id = (struct file_id){s.st_dev, s.st_ino};
    l->file = (int64_t)digest(&s) & INT64_MAX;
    return 0;
}

/* Only where both are at the paths of others can somebody be said to be gone. */
static int identify_tree(struct client_lock *l)
{
    struct stat s;
    if (fstat(l->tree, &s) != 0)
        return -1;
    uint64_t both = (uint64_t)l->file * UINT64_C(0x9e3779b97f4a7c15) + digest(&s);
    l->files = (int64_t)(both & INT64_MAX);
    return 0;
}

static int open_live(struct client_lock *l, const char *path)
{
    struct stat s;
    l->fd = paths_open(path);
    if (l->fd < 0 || identify(l) != 0)
        return -1;
    l->turn = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (l->turn < 0 || fstat(l->turn, &s) != 0)
        return -1;
    errno = ESTALE; /* it was replaced just now */
    return s.st_ino == l->id.inode && s.st_dev == l->id.device ? 0 : -1;
}

static int open_to_read(const char *path)
{
    return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_tree(struct client_lock *l, const char *path)
{
    l->tree = open_to_read(path);
    if (l->tree < 0 && errno == ENOENT) {
        int made = paths_open(path);
        if (made < 0)
            return -1;
        close(made);
        l->tree = open_to_read(path);
    }
    return l->tree < 0 ? -1 : identify_tree(l);
}

static const struct client_lock closed = {.fd = -1, .turn = -1, .tree = -1, .files = -1};

int client_lock_open(struct client_lock *l, const struct paths *p, const char **which)
{
    *l = closed;
    if (open_live(l, *which = p->live) == 0 && open_tree(l, *which = p->tree) == 0)
        return 0;
    client_lock_close(l);
    return -1;
}

/* Where there is no PATH-tree, which it may not make, it takes nobody for dead. */
int client_lock_open_reader(struct client_lock *l, const struct paths *p, const char **which)
{
    *l = closed;
    l->fd = open_to_read(*which = p->live);
    if (l->fd >= 0 && identify(l) == 0) {
        l->tree = open_to_read(*which = p->tree);
        if (l->tree < 0 ? errno == ENOENT : identify_tree(l) == 0)
            return 0;
    }
    client_lock_close(l);
    return -1;
}

static int set_lock(int fd, short type, int64_t at)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

int client_lock_hold(struct client_lock *l, const struct paths *p, int64_t number,
                     const char **which)
{
    bool live = set_lock(l->fd, F_WRLCK, number) == 0;
    if (live && set_lock(l->tree, F_RDLCK, number) == 0 && lseek(l->tree, number, SEEK_SET) >= 0) {
        l->number = number;
        return 0;
    }
    int error = errno;
    *which = live ? p->tree : p->live;
    (void)set_lock(l->fd, F_UNLCK, number);
    (void)set_lock(l->tree, F_UNLCK, number);
    errno = error;
    return -1;
}

void client_lock_drop(struct client_lock *l)
{
    if (l->number != 0) {
        (void)set_lock(l->tree, F_UNLCK, l->number);
        (void)set_lock(l->fd, F_UNLCK, l->number);
    }
    l->number = 0;
}

/* A lock that would be in the way of one on these bytes. */
static bool find_lock(int fd, int64_t first, int64_t end, struct flock *found)
{
    *found = (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = end - first};
    return fcntl(fd, F_OFD_GETLK, found) != 0 || found->l_type != F_UNLCK;
}

bool client_lock_is_held(const struct client_lock *l, int64_t number)
{
    struct flock lock;
    return number < 0 || number > CLIENT_LOCK_NUMBER_MAX ||
           find_lock(l->fd, number, number + 1, &lock) ||
           find_lock(l->tree, number, number + 1, &lock);
}

/* Our own children do not count. */
static bool has_orphans(const struct client_lock *l)
{
    struct flock lock;
    int64_t own = l->number;
    return (own > 1 && find_lock(l->tree, 1, own, &lock)) ||
           find_lock(l->tree, own + 1, NUMBERS, &lock);
}

int64_t client_lock_last(const struct client_lock *l)
{
    struct flock lock;
    int64_t first = 1, last = 0;
    while (first < NUMBERS && find_lock(l->fd, first, NUMBERS, &lock)) {
        if (lock.l_type == F_UNLCK || lock.l_len == 0 || lock.l_start + lock.l_len > NUMBERS)
            return -1;
        last = lock.l_start + lock.l_len - 1;
        first = last + 1;
    }
    return last == 0 && has_orphans(l) ? 1 : last;
}

bool client_lock_take(const struct client_lock *l, enum client_lock_turn turn)
{
    return set_lock(l->turn, F_WRLCK, turn_at[turn]) == 0;
}

void client_lock_give(const struct client_lock *l, enum client_lock_turn turn)
{
    (void)set_lock(l->turn, F_UNLCK, turn_at[turn]);
}

void client_lock_close(struct client_lock *l)
{
    int error = errno;
    if (l->tree >= 0)
        close(l->tree);
    if (l->turn >= 0)
        close(l->turn);
    if (l->fd >= 0)
        close(l->fd);
    *l = closed;
    errno = error;
}

/* ---- watermark ----------------------------------------------------------------------------- */

/* Three numbers and what they must give: the file may be truncated, or filled by anybody. */
static int64_t checksum(const int64_t n[3])
{
    uint64_t sum = UINT64_C(0x53494d4261);
    for (int i = 0; i < 3; i++)
        sum = (sum ^ (uint64_t)n[i]) * UINT64_C(0x100000001b3);
    return (int64_t)sum;
}

static void read_three(const struct client_lock *l, off_t at, int64_t n[3])
{
    int64_t all[4];
    bool whole = pread(l->turn, all, sizeof all, at) == sizeof all && all[3] == checksum(all);
    for (int i = 0; i < 3; i++)
        n[i] = whole && all[i] > 0 ? all[i] : 0;
}

/* What cannot be written is missed only by a check that then finds less. */
static void write_three(const struct client_lock *l, off_t at, const int64_t n[3])
{
    int64_t all[4] = {n[0], n[1], n[2], checksum(n)};
    (void)!pwrite(l->turn, all, sizeof all, at);
}

int64_t client_lock_bound(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n < most ? n : most;
}

/* What no client can have written is nothing. */
static int64_t if_within(int64_t n, int64_t most)
{
    return n <= most ? n : 0;
}

struct client_lock_watermark client_lock_watermark(const struct client_lock *l)
{
    int64_t n[3];
    read_three(l, WATERMARK_AT, n);
    return (struct client_lock_watermark){.serial = if_within(n[0], CLIENT_LOCK_COUNT_MAX),
                                          .token = if_within(n[1], CLIENT_LOCK_COUNT_MAX),
                                          .lease = if_within(n[2], CLIENT_LOCK_LEASE_MAX)};
}

void client_lock_set_watermark(const struct client_lock *l, const struct client_lock_watermark *m)
{
    write_three(l, WATERMARK_AT, (const int64_t[]){m->serial, m->token, m->lease});
}

struct client_lock_written client_lock_written(const struct client_lock *l)
{
    int64_t n[3], m[3];
    read_three(l, WRITTEN_AT, n);
    read_three(l, TOUCHED_AT, m);
    return (struct client_lock_written){
        .changed = n[0], .size = n[1], .unfinished = n[2], .touched = m[0], .access = m[1]};
}

void client_lock_set_written(const struct client_lock *l, const struct client_lock_written *w)
{
    write_three(l, TOUCHED_AT, (const int64_t[]){w->touched, w->access, 0});
    write_three(l, WRITTEN_AT, (const int64_t[]){w->changed, w->size, w->unfinished});
}
