/* record.h: what workers and the torturer write down while they run. One mapped file per process:
 * what was written is there whatever becomes of the process. Entries have one size and are only
 * ever appended.
 *
 * All times are nanoseconds of CLOCK_BOOTTIME, one clock for all processes of the machine. */
#ifndef LAB_TORTURE_RECORD_H
#define LAB_TORTURE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_kind {
    ENTRY_NONE,     /* not written: the process was killed while it wrote */
    ENTRY_YES,      /* owns(token) said yes at a moment between `before` and `after` */
    ENTRY_CALLBACK, /* one began at `before` and ended at `after`: `detail` an enum callback_kind,
                        `code` the reason of its state, `limit` the number of its handle */
    ENTRY_LEAVE,    /* the owner ended its tenure by itself: the call began at `before`, returned at
                        `after`, with `code` */
    ENTRY_CALL,     /* `detail` is an enum call_kind, `limit` how long it may take, `code` what it
                        returned */
    ENTRY_START,    /* a life of a worker began: `detail` is an enum worker_kind */
    ENTRY_END,      /* … and ended as it should; without it, it was killed or has crashed */
    ENTRY_FAULT,    /* of the torturer: `detail` is an enum fault, from `before` to `after` */
    ENTRY_DEATH, /* of the torturer: a worker is gone; `code` is its wait status, `detail` an enum
                        death_kind */
    ENTRY_CALM,  /* of the torturer: the faults have ended */
    ENTRY_RESOURCES, /* of a worker, at its end: `token` bytes of memory, `limit` descriptors,
                        `code` threads, above its beginning */
    ENTRY_WANT,      /* `detail` 1: from now on the worker waits for the mutex; 0: no longer */
    ENTRY_DELAYED    /* the process was to run at `before`, and ran at `after` only; with `detail`
                        DELAY_OF_STORE: the store answered only then */
};

enum callback_kind {
    CALLBACK_ACQUIRED,
    CALLBACK_RELEASED,
    CALLBACK_STOPPED,
    CALLBACK_CLOSED,
    CALLBACK_ENDANGERED,
    CALLBACK_LOST,
    CALLBACK_DONE
};
enum call_kind { CALL_ACQUIRE, CALL_RELEASE, CALL_CLOSE, CALL_EVICT };
enum { DELAY_OF_MACHINE, DELAY_OF_STORE };
#define DELAY_LEAST INT64_C(5000000) /* ns: what is less is not noted, and is always allowed for */
enum death_kind {
    DEATH_BY_ITSELF,
    DEATH_BY_US,
    DEATH_HUNG /* it did not end when asked to, and was killed */
};

/* Who contends, and how. */
#define WORKER_KINDS_OF(X)          \
    X(CONTENDER, "contender")       \
    X(LOCKER, "locker")             \
    X(ASYNC, "asynchronous locker") \
    X(LOOP, "contender in a loop of its own")
enum worker_kind {
#define X(name, text) WORKER_##name,
    WORKER_KINDS_OF(X)
#undef X
        WORKER_KINDS
};

struct entry {
    int64_t before, after;
    uint64_t token;
    int64_t limit;
    int32_t code;
    uint16_t worker, mutex; /* numbers; worker: which slot, and `life` which of its processes */
    uint16_t life;
    uint8_t kind, detail;
    uint32_t reserved;
};
_Static_assert(sizeof(struct entry) == 48, "one size, in every build");

struct worker_record; /* an open file to append to */

/* A file for `capacity` entries (sparse). NULL: errno says why. Several threads may append to it.
 * When it is full, record_add drops the entry and counts it: the judge then says that the record is
 * not whole. */
struct worker_record *record_create(const char *path, size_t capacity);
void record_add(struct worker_record *r, const struct entry *e);
void record_close(struct worker_record *r);

/* Reads a whole file, also of a process that was killed while it wrote. The caller frees the
 * entries. NULL: errno says why; of a file that is not one of ours EINVAL. */
struct entry *record_read(const char *path, size_t *count, size_t *dropped);

#endif
