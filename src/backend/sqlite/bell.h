/* bell.h: how a process that released a mutex wakes those that wait for it, in other processes.
 * A small file: a word per slot (a mutex belongs to a slot by its hash) that changes with every ring
 * for it, and one word that all sleep on. Rung after COMMIT, so whoever wakes sees what was committed.
 *
 * The file is mapped so that the kernel knows the word to sleep on, but it is read and written by
 * calls: to touch memory whose file was truncated would kill the process. */
#ifndef BACKEND_SQLITE_BELL_H
#define BACKEND_SQLITE_BELL_H

#include <stdbool.h>
#include <stdint.h>

#define BELL_SLOTS 16380 /* with what is before them 64 KiB */

struct bell_words {
    int64_t observed; /* machine's boot time: until then somebody observes every change */
    uint32_t any;     /* futex; changes with every ring */
    uint32_t unused;
    uint32_t slot[BELL_SLOTS];
};

struct bell {
    struct bell_words *words; /* NULL: not open. For the kernel only: never touched */
    int fd;
    uint64_t inode;
};

int bell_open(struct bell *b, const char *path); /* 0, or -1 and errno */
void bell_close(struct bell *b);
bool bell_is_ours(const struct bell *b, const char *path); /* others ring the same one */
unsigned bell_slot(const char *mutex);
void bell_ring(struct bell *b, unsigned slot);
void bell_observe(struct bell *b, int64_t until); /* whoever changes an owner rings, until then */
bool bell_is_observed(const struct bell *b, int64_t now);
uint32_t bell_read(const struct bell *b);
void bell_read_slots(const struct bell *b, uint32_t slot[BELL_SLOTS]);

/* Sleeps while the bell shows `seen`. A broken sleep returns early; rings are hints. */
void bell_wait(struct bell *b, uint32_t seen);
#endif
