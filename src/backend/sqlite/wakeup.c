/* wakeup.c: see wakeup.h. */
#include "backend/sqlite/wakeup.h"

#include <errno.h>
#include <fcntl.h>
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
#define NAP_NS 1000000

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
static uint32_t change(struct wakeup *b, unsigned slot)
{
    uint32_t value = (uint32_t)clock_now() ^ (uint32_t)gettid() << 16;
    put(b, offsetof(struct wakeup_page, slot) + slot * sizeof value, &value, sizeof value);
    return value;
}

void wakeup_signal(struct wakeup *b, unsigned slot, int most)
{
    uint32_t value = change(b, slot);
    put(b, offsetof(struct wakeup_page, any), &value, sizeof value);
    if (most > 0)
        syscall(SYS_futex, &b->page->slot[slot], FUTEX_WAKE, most, NULL, NULL, 0);
    syscall(SYS_futex, &b->page->any, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The bit by which a process wakes itself. Others may have the same one. */
static uint32_t own_bit(void)
{
    return UINT32_C(1) << (uint32_t)getpid() % 32;
}

void wakeup_stir(struct wakeup *b, int slot)
{
    if (slot == WAKEUP_ANY) {
        wakeup_signal(b, 0, 0);
        return;
    }
    change(b, (unsigned)slot); /* it may be about to sleep */
    syscall(SYS_futex, &b->page->slot[slot], FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, own_bit());
}

void wakeup_observe(struct wakeup *b, int64_t until)
{
    if (b->page != NULL) /* all say about the same */
        put(b, offsetof(struct wakeup_page, observed), &until, sizeof until);
}

/* One read for both: it is done after each write. */
bool wakeup_is_observed(const struct wakeup *b, int64_t now, bool *turn_wanted)
{
    struct {
        int64_t observed;
        uint32_t any, turn;
    } head = {.observed = 0};
    _Static_assert(sizeof head == offsetof(struct wakeup_page, slot), "head");
    if (b->page != NULL)
        get(b, 0, &head, sizeof head);
    *turn_wanted = head.turn != 0;
    return head.observed > now;
}

static void set_turn(struct wakeup *b, uint32_t wanted)
{
    put(b, offsetof(struct wakeup_page, turn), &wanted, sizeof wanted);
}

void wakeup_want_turn(struct wakeup *b)
{
    set_turn(b, 1);
}

void wakeup_await_turn(struct wakeup *b, int64_t ns)
{
    struct timespec most = {.tv_nsec = ns}; /* less than a second */
    long rc = syscall(SYS_futex, &b->page->turn, FUTEX_WAIT, 1, &most, NULL, 0);
    if (rc != 0 && errno == EFAULT) /* the file was truncated */
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Who says now that it waits tries once more after that. */
void wakeup_pass_turn(struct wakeup *b)
{
    if (syscall(SYS_futex, &b->page->turn, FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
        set_turn(b, 0);
}

static uint32_t get_word(const struct wakeup *b, size_t at)
{
    uint32_t word;
    get(b, at, &word, sizeof word);
    return word;
}

uint32_t wakeup_read(const struct wakeup *b)
{
    return get_word(b, offsetof(struct wakeup_page, any));
}

uint32_t wakeup_read_slot(const struct wakeup *b, unsigned slot)
{
    return get_word(b, offsetof(struct wakeup_page, slot) + slot * sizeof(uint32_t));
}

void wakeup_read_slots(const struct wakeup *b, uint32_t slot[WAKEUP_SLOTS])
{
    get(b, offsetof(struct wakeup_page, slot), slot, WAKEUP_SLOTS * sizeof *slot);
}

/* If it was truncated there is no word to sleep on. */
void wakeup_wait(struct wakeup *b, int slot, uint32_t seen)
{
    uint32_t *word = slot == WAKEUP_ANY ? &b->page->any : &b->page->slot[slot];
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, NULL, NULL, own_bit());
    if (rc != 0 && errno == EFAULT && posix_fallocate(b->fd, 0, sizeof *b->page) != 0)
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}
