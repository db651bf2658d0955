/* wakeup.h: how a process that released a mutex wakes those that wait for it, in other
 * processes. The file PATH-bell: a word per slot (a mutex belongs to a slot by its hash) that
 * changes with every wakeup for it, and one word that changes with every wakeup. Signalled after
 * COMMIT, so whoever wakes sees what was committed. Another word is for those who wait for their turn
 * to write.
 *
 * Who waits for one mutex sleeps on the word of its slot, and a release wakes a few of them: woken
 * all at once, hundreds would keep the next owner from the processor, only to hear that they have
 * to wait on. All others sleep on the word for all. A wakeup is lost if all the few are killed or stopped just
 * then, or wait for another mutex in the slot: the words show it, and all look at them now and
 * then (watcher.h).
 *
 * The file is mapped so that the kernel knows the word to sleep on, but it is read and written by
 * calls: to touch memory whose file was truncated would kill the process. */
#ifndef BACKEND_SQLITE_WAKEUP_H
#define BACKEND_SQLITE_WAKEUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define WAKEUP_SLOTS 16380 /* with what is before them 64 KiB */

struct wakeup_page {
    int64_t observed; /* machine's boot time: until then somebody observes every change */
    uint32_t any;     /* futex; changes with every wakeup, and wakes all who sleep on it */
    uint32_t turn;    /* futex; 1: somebody may wait for its turn to write */
    uint32_t slot[WAKEUP_SLOTS]; /* futexes, too */
};

#define WAKEUP_FEW 4
#define WAKEUP_ALL INT_MAX
#define WAKEUP_ANY (-1) /* instead of a slot */

struct wakeup {
    struct wakeup_page *page; /* NULL: not open. For the kernel only: never touched */
    int fd;
    uint64_t inode;
};

int wakeup_open(struct wakeup *w, const char *path); /* 0, or -1 and errno */
void wakeup_close(struct wakeup *w);
bool wakeup_is_ours(const struct wakeup *w, const char *path); /* others signal the same one */
unsigned wakeup_slot(const char *mutex);
void wakeup_signal(struct wakeup *w, unsigned slot, int most); /* of those who sleep on the slot */
void wakeup_stir(struct wakeup *w,
                 int slot); /* ends that sleep of this process, and maybe others */
void wakeup_observe(struct wakeup *w,
                    int64_t until); /* whoever changes an owner signals, until then */

/* After a write: does somebody observe, does somebody wait for its turn to write? */
bool wakeup_is_observed(const struct wakeup *w, int64_t now, bool *turn_wanted);

/* Who waits for its turn says so, tries once more, and sleeps; who has written wakes one of them. A
 * wakeup may be lost, so nobody sleeps long. */
void wakeup_want_turn(struct wakeup *w);
void wakeup_await_turn(struct wakeup *w, int64_t ns);
void wakeup_pass_turn(struct wakeup *w);

uint32_t wakeup_read(const struct wakeup *w);
uint32_t wakeup_read_slot(const struct wakeup *w, unsigned slot);
void wakeup_read_slots(const struct wakeup *w, uint32_t slot[WAKEUP_SLOTS]);

/* Sleeps while that word of the file is `seen`. A broken sleep returns early; wakeups are hints. */
void wakeup_wait(struct wakeup *w, int slot, uint32_t seen);
#endif
