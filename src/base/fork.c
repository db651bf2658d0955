/* fork.c: see fork.h. MADV_WIPEONFORK gives a page that reads as zero in every child, without a
 * fork handler that would have to know all locks. It is mapped when the first asks for room on it,
 * so that nobody pays for it who needs none. */
#include "base/fork.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#define ALIGNMENT sizeof(max_align_t)

/* What the number needs. */
struct number {
    _Atomic uint32_t generation; /* 0: not drawn yet */
    pthread_mutex_t lock;
};

static struct number *number;
static char *page; /* NULL: there is none, or not yet */
static size_t used;
static uint32_t last_generation; /* survives fork, so a child's number differs from its parent's */

static void map_page(void)
{
    void *at =
        mmap(NULL, FORK_WIPED_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    if (madvise(at, FORK_WIPED_MAX, MADV_WIPEONFORK) == 0)
        page = at;
    else
        munmap(at, FORK_WIPED_MAX);
}

static void *take(size_t size)
{
    size_t begin = used;
    assert(size <= FORK_WIPED_MAX - used);
    used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return page + begin;
}

void *fork_wiped(size_t size)
{
    if (page == NULL && used == 0) {
        map_page();
        if (page != NULL)
            number = take(sizeof *number);
    }
    return page != NULL ? take(size) : NULL;
}

uint32_t fork_generation(void)
{
    if (number == NULL)
        return 0;
    pthread_mutex_lock(&number->lock);
    uint32_t generation = atomic_load(&number->generation);
    if (generation == 0) {
        generation = ++last_generation;
        atomic_store(&number->generation, generation);
    }
    pthread_mutex_unlock(&number->lock);
    return generation;
}

uint32_t fork_generation_known(void)
{
    return number != NULL ? atomic_load_explicit(&number->generation, memory_order_relaxed) : 0;
}
