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

int wakeup_open(struct wakeup *w, const char *path)
{
    w->page = NULL;
    int fd = paths_open(path);
    if (fd < 0)
        return -1;
    struct stat s;
    void *map = MAP_FAILED;
    /* Allocated, not only sized: so that it can be written when the disk is full. */
    errno = posix_fallocate(fd, 0, sizeof *w->page);
    if (errno == 0 && fstat(fd, &s) == 0)
        map = mmap(NULL, sizeof *w->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    w->page = map;
    w->fd = fd;
    w->inode = s.st_ino;
    return 0;
}

void wakeup_close(struct wakeup *w)
{
    if (w->page == NULL)
        return;
    munmap(w->page, sizeof *w->page);
    close(w->fd);
    w->page = NULL;
}

bool wakeup_is_ours(const struct wakeup *w, const char *path)
{
    struct stat s;
    return w->page != NULL && stat(path, &s) == 0 && s.st_ino == w->inode;
}

unsigned wakeup_slot(const char *mutex)
{
    return hash_text(mutex) % WAKEUP_SLOTS;
}

/* What is not there reads as 0. */
static void get(const struct wakeup *w, size_t at, void *out, size_t size)
{
    ssize_t n = pread(w->fd, out, size, (off_t)at);
    if (n < (ssize_t)size)
        memset((char *)out + (n > 0 ? n : 0), 0, size - (size_t)(n > 0 ? n : 0));
}

static void put(const struct wakeup *w, size_t at, const void *value, size_t size)
{
    (void)!pwrite(w->fd, value, size, (off_t)at); /* who misses a wakeup only waits longer */
}

/* Two who signal at once must not write the same, as they would if each added one. */
static uint32_t change(struct wakeup *w, unsigned slot)
{
    uint32_t value = (uint32_t)clock_now() ^ (uint32_t)gettid() << 16;
    put(w, offsetof(struct wakeup_page, slot) + slot * sizeof value, &value, sizeof value);
    return value;
}

void wakeup_signal(struct wakeup *w, unsigned slot, int most)
{
    uint32_t value = change(w, slot);
    put(w, offsetof(struct wakeup_page, any), &value, sizeof value);
    if (most > 0)
        syscall(SYS_futex, &w->page->slot[slot], FUTEX_WAKE, most, NULL, NULL, 0);
    syscall(SYS_futex, &w->page->any, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The bit by which a process wakes itself. Others may have the same one. */
static uint32_t own_bit(void)
{
    return UINT32_C(1) << (uint32_t)getpid() % 32;
}

void wakeup_stir(struct wakeup *w, int slot)
{
    if (slot == WAKEUP_ANY) {
        wakeup_signal(w, 0, 0);
        return;
    }
    change(w, (unsigned)slot); /* it may be about to sleep */
    syscall(SYS_futex, &w->page->slot[slot], FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, own_bit());
}

void wakeup_observe(struct wakeup *w, int64_t until)
{
    if (w->page != NULL) /* all say about the same */
        put(w, offsetof(struct wakeup_page, observed), &until, sizeof until);
}

/* One read for both: it is done after each write. */
bool wakeup_is_observed(const struct wakeup *w, int64_t now, bool *turn_wanted)
{
    struct {
        int64_t observed;
        uint32_t any, turn;
    } head = {.observed = 0};
    _Static_assert(sizeof head == offsetof(struct wakeup_page, slot), "head");
    if (w->page != NULL)
        get(w, 0, &head, sizeof head);
    *turn_wanted = head.turn != 0;
    return head.observed > now;
}

static void set_turn(struct wakeup *w, uint32_t wanted)
{
    put(w, offsetof(struct wakeup_page, turn), &wanted, sizeof wanted);
}

void wakeup_want_turn(struct wakeup *w)
{
    set_turn(w, 1);
}

void wakeup_await_turn(struct wakeup *w, int64_t ns)
{
    struct timespec most = {.tv_nsec = ns}; /* less than a second */
    long rc = syscall(SYS_futex, &w->page->turn, FUTEX_WAIT, 1, &most, NULL, 0);
    if (rc != 0 && errno == EFAULT) /* the file was truncated */
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Who says now that it waits tries once more after that. */
void wakeup_pass_turn(struct wakeup *w)
{
    if (syscall(SYS_futex, &w->page->turn, FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
        set_turn(w, 0);
}

static uint32_t get_word(const struct wakeup *w, size_t at)
{
    uint32_t word;
    get(w, at, &word, sizeof word);
    return word;
}

uint32_t wakeup_read(const struct wakeup *w)
{
    return get_word(w, offsetof(struct wakeup_page, any));
}

uint32_t wakeup_read_slot(const struct wakeup *w, unsigned slot)
{
    return get_word(w, offsetof(struct wakeup_page, slot) + slot * sizeof(uint32_t));
}

void wakeup_read_slots(const struct wakeup *w, uint32_t slot[WAKEUP_SLOTS])
{
    get(w, offsetof(struct wakeup_page, slot), slot, WAKEUP_SLOTS * sizeof *slot);
}

/* If it was truncated there is no word to sleep on. */
void wakeup_wait(struct wakeup *w, int slot, uint32_t seen)
{
    uint32_t *word = slot == WAKEUP_ANY ? &w->page->any : &w->page->slot[slot];
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, NULL, NULL, own_bit());
    if (rc != 0 && errno == EFAULT && posix_fallocate(w->fd, 0, sizeof *w->page) != 0)
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}
