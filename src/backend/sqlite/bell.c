/* bell.c: see bell.h. */
#include "backend/sqlite/bell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/sqlite/place.h"
#include "runtime/table.h"

int bell_open(struct bell *b, const char *path)
{
    b->words = NULL;
    int fd = place_open(path);
    if (fd < 0)
        return -1;
    struct stat s;
    void *map = MAP_FAILED;
    /* Allocated, not only sized: to write into a hole on a full disk would kill the process. */
    errno = posix_fallocate(fd, 0, sizeof *b->words);
    if (errno == 0 && fstat(fd, &s) == 0)
        map = mmap(NULL, sizeof *b->words, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return -1;
    b->words = map;
    b->inode = s.st_ino;
    return 0;
}

void bell_close(struct bell *b)
{
    if (b->words != NULL)
        munmap(b->words, sizeof *b->words);
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

void bell_ring(struct bell *b, unsigned slot)
{
    atomic_fetch_add(&b->words->slot[slot], 1);
    atomic_fetch_add(&b->words->any, 1);
    syscall(SYS_futex, &b->words->any, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void bell_observe(struct bell *b, int64_t until)
{
    if (b->words != NULL)
        atomic_store(&b->words->observed, until); /* all say about the same */
}

bool bell_is_observed(const struct bell *b, int64_t now)
{
    return b->words != NULL && atomic_load(&b->words->observed) > now;
}

uint32_t bell_read(const struct bell *b)
{
    return atomic_load(&b->words->any);
}

void bell_wait(struct bell *b, uint32_t seen)
{
    syscall(SYS_futex, &b->words->any, FUTEX_WAIT, seen, NULL, NULL, 0);
}
