/* wakeup.c: see wakeup.h. */
#include "backend/sqlite/wakeup.h"

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

#include "backend/sqlite/paths.h"
#include "base/clock.h"
#include "base/hash_table.h"

#define RETRY_NS 100000000

int wakeup_open(struct wakeup *b, const char *path)
{
    b->page = NULL;
    int fd = paths_open(path);
    if (fd < 0)
        return -1;
    struct stat s;
    void *map = MAP_FAILED;
    /* Allocated, not only sized: so that it can be written when the disk is full. */
    errno = posix_fallocate(fd, 0, sizeof *b->page);
    if (errno == 0 && fstat(fd, &s) == 0)
        map = mmap(NULL, sizeof *b->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    b->page = map;
    b->fd = fd;
    b->inode = s.st_ino;
    return 0;
}

void wakeup_close(struct wakeup *b)
{
    if (b->page == NULL)
        return;
    munmap(b->page, sizeof *b->page);
    close(b->fd);
    b->page = NULL;
}

bool wakeup_is_ours(const struct wakeup *b, const char *path)
{
    struct stat s;
    return b->page != NULL && stat(path, &s) == 0 && s.st_ino == b->inode;
}

unsigned wakeup_slot(const char *mutex)
{
    return hash_text(mutex) % WAKEUP_SLOTS;
}

/* What is not there reads as 0. */
static void get(const struct wakeup *b, size_t at, void *out, size_t size)
{
    ssize_t n = pread(b->fd, out, size, (off_t)at);
    if (n < (ssize_t)size)
        memset((char *)out + (n > 0 ? n : 0), 0, size - (size_t)(n > 0 ? n : 0));
}

static void put(const struct wakeup *b, size_t at, const void *value, size_t size)
{
    (void)!pwrite(b->fd, value, size, (off_t)at); /* who misses a wakeup only waits longer */
}

/* Two who signal at once must not write the same, as they would if each added one. */
void wakeup_signal(struct wakeup *b, unsigned slot)
{
    uint32_t value = (uint32_t)clock_now() ^ (uint32_t)gettid() << 16;
    put(b, offsetof(struct wakeup_page, slot) + slot * sizeof value, &value, sizeof value);
    put(b, offsetof(struct wakeup_page, any), &value, sizeof value);
    syscall(SYS_futex, &b->page->any, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void wakeup_observe(struct wakeup *b, int64_t until)
{
    if (b->page != NULL) /* all say about the same */
        put(b, offsetof(struct wakeup_page, observed), &until, sizeof until);
}

bool wakeup_is_observed(const struct wakeup *b, int64_t now)
{
    int64_t until = 0;
    if (b->page != NULL)
        get(b, offsetof(struct wakeup_page, observed), &until, sizeof until);
    return until > now;
}

uint32_t wakeup_read(const struct wakeup *b)
{
    uint32_t any;
    get(b, offsetof(struct wakeup_page, any), &any, sizeof any);
    return any;
}

void wakeup_read_slots(const struct wakeup *b, uint32_t slot[WAKEUP_SLOTS])
{
    get(b, offsetof(struct wakeup_page, slot), slot, WAKEUP_SLOTS * sizeof *slot);
}

/* If it was truncated there is no word to sleep on. */
void wakeup_wait(struct wakeup *b, uint32_t seen)
{
    long rc = syscall(SYS_futex, &b->page->any, FUTEX_WAIT, seen, NULL, NULL, 0);
    if (rc != 0 && errno == EFAULT && posix_fallocate(b->fd, 0, sizeof *b->page) != 0)
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}
