/* bell.c: see bell.h. */
#include "backend/sqlite/bell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backend/sqlite/place.h"
#include "base/clock.h"
#include "base/table.h"

#define RETRY_NS 100000000

int bell_open(struct bell *b, const char *path)
{
    b->words = NULL;
    int fd = place_open(path);
    if (fd < 0)
        return -1;
    struct stat s;
    void *map = MAP_FAILED;
    /* Allocated, not only sized: so that it can be rung when the disk is full. */
    errno = posix_fallocate(fd, 0, sizeof *b->words);
    if (errno == 0 && fstat(fd, &s) == 0)
        map = mmap(NULL, sizeof *b->words, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    b->words = map;
    b->fd = fd;
    b->inode = s.st_ino;
    return 0;
}

void bell_close(struct bell *b)
{
    if (b->words == NULL)
        return;
    munmap(b->words, sizeof *b->words);
    close(b->fd);
    b->words = NULL;
}

bool bell_is_ours(const struct bell *b, const char *path)
{
    struct stat s;
    return b->words != NULL && stat(path, &s) == 0 && s.st_ino == b->inode;
}

unsigned bell_slot(const char *mutex)
{
    return table_hash(mutex) % BELL_SLOTS;
}

/* What is not there reads as 0. */
static void get(const struct bell *b, size_t at, void *out, size_t size)
{
    ssize_t n = pread(b->fd, out, size, (off_t)at);
    if (n < (ssize_t)size)
        memset((char *)out + (n > 0 ? n : 0), 0, size - (size_t)(n > 0 ? n : 0));
}

static void put(const struct bell *b, size_t at, const void *value, size_t size)
{
    (void)!pwrite(b->fd, value, size,
                  (off_t)at); /* a ring that is lost is only waited for longer */
}

/* Two who ring at once must not write the same, as they would if each added one. */
void bell_ring(struct bell *b, unsigned slot)
{
    uint32_t value = (uint32_t)clock_now() ^ (uint32_t)gettid() << 16;
    put(b, offsetof(struct bell_words, slot) + slot * sizeof value, &value, sizeof value);
    put(b, offsetof(struct bell_words, any), &value, sizeof value);
    syscall(SYS_futex, &b->words->any, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void bell_observe(struct bell *b, int64_t until)
{
    if (b->words != NULL) /* all say about the same */
        put(b, offsetof(struct bell_words, observed), &until, sizeof until);
}

bool bell_is_observed(const struct bell *b, int64_t now)
{
    int64_t until = 0;
    if (b->words != NULL)
        get(b, offsetof(struct bell_words, observed), &until, sizeof until);
    return until > now;
}

uint32_t bell_read(const struct bell *b)
{
    uint32_t any;
    get(b, offsetof(struct bell_words, any), &any, sizeof any);
    return any;
}

void bell_read_slots(const struct bell *b, uint32_t slot[BELL_SLOTS])
{
    get(b, offsetof(struct bell_words, slot), slot, BELL_SLOTS * sizeof *slot);
}

/* If it was truncated there is no word to sleep on. */
void bell_wait(struct bell *b, uint32_t seen)
{
    long rc = syscall(SYS_futex, &b->words->any, FUTEX_WAIT, seen, NULL, NULL, 0);
    if (rc != 0 && errno == EFAULT && posix_fallocate(b->fd, 0, sizeof *b->words) != 0)
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}
