/* record.c: a mapped file of entries. A writer takes the next number, fills that entry, and sets
 * its kind last: so a reader tells a whole entry from one whose writer was killed, and threads do
 * not wait for each other. */
#include "lab/torture/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MARK UINT64_C(0x3161626d69532d74) /* a file of ours, in this layout */

struct record_header {
    uint64_t mark, capacity;
    _Atomic uint64_t next; /* above the capacity: so many were dropped */
    uint64_t reserved[3];
};
_Static_assert(sizeof(struct record_header) == sizeof(struct entry), "entries follow in step");

struct worker_record {
    struct record_header *header;
    struct entry *entries;
    size_t bytes;
};

struct worker_record *record_create(const char *path, size_t capacity)
{
    struct worker_record *r = malloc(sizeof *r);
    if (r == NULL)
        return NULL;
    r->bytes = sizeof *r->header + capacity * sizeof *r->entries;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        goto err;
    if (ftruncate(fd, (off_t)r->bytes) != 0)
        goto err_after_open;
    r->header = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (r->header == MAP_FAILED)
        goto err_after_open;
    close(fd);
    r->header->capacity = capacity;
    r->header->mark = RECORD_MARK;
    r->entries = (struct entry *)(void *)(r->header + 1);
    return r;

err_after_open:
    close(fd);
    unlink(path);
err:
    free(r);
    return NULL;
}

void record_add(struct worker_record *r, const struct entry *e)
{
    uint64_t at = atomic_fetch_add(&r->header->next, 1);
    if (at >= r->header->capacity)
        return;
    struct entry *to = &r->entries[at];
    uint8_t kind = e->kind;
    struct entry whole = *e;
    whole.kind = ENTRY_NONE;
    *to = whole;
    __atomic_store_n(&to->kind, kind, __ATOMIC_RELEASE);
}

void record_close(struct worker_record *r)
{
    munmap(r->header, r->bytes);
    free(r);
}

static struct entry *copy_entries(const struct record_header *h, size_t *count)
{
    const struct entry *from = (const struct entry *)(const void *)(h + 1);
    uint64_t next = atomic_load(&h->next), end = next < h->capacity ? next : h->capacity;
    struct entry *out = malloc((end + 1) * sizeof *out);
    *count = 0;
    for (uint64_t i = 0; out != NULL && i < end; i++) {
        if (__atomic_load_n(&from[i].kind, __ATOMIC_ACQUIRE) != ENTRY_NONE)
            out[(*count)++] = from[i];
    }
    return out;
}

struct entry *record_read(const char *path, size_t *count, size_t *dropped)
{
    struct stat s;
    struct entry *out = NULL;
    *count = *dropped = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &s) != 0)
        goto err_after_open;
    size_t bytes = (size_t)s.st_size;
    errno = EINVAL;
    if (bytes < sizeof(struct record_header))
        goto err_after_open;
    struct record_header *h = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (h == MAP_FAILED)
        goto err_after_open;
    if (h->mark == RECORD_MARK && h->capacity <= (bytes - sizeof *h) / sizeof *out) {
        out = copy_entries(h, count);
        uint64_t next = atomic_load(&h->next);
        *dropped = next > h->capacity ? next - h->capacity : 0;
    } else {
        errno = EINVAL;
    }
    munmap(h, bytes);
err_after_open:
    close(fd);
    return out;
}
