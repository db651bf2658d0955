/* process.c: fork detection and ids.
 *
 * A forked child inherits the memory of all handles but not the threads behind them. Were nothing
 * done, it would think that it owns what its parent owns (T15), and would make the same "random"
 * ids. MADV_WIPEONFORK gives a page that reads as zero in every child, without a fork handler that
 * would have to know all locks. */
#include "runtime/process.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <simba.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/id.h"
#include "runtime/fault.h"

struct process_wiped *process_wiped;

static uint32_t last_generation; /* survives fork, so a child's number differs from its parent's */

/* At load time, when there is one thread only: so nobody can fork in the middle of it. */
__attribute__((constructor)) static void map_page(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    assert(sizeof *process_wiped <= size);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0)
        process_wiped = page;
}

void process_random(void *out, size_t size)
{
    unsigned char *at = out;
    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        assert(n > 0);
        at += n;
        size -= (size_t)n;
    }
}

uint64_t process_random64(void)
{
    uint64_t r;
    process_random(&r, sizeof r);
    return r;
}

uint32_t process_generation(void)
{
    pthread_mutex_lock(&process_wiped->lock);
    uint32_t generation = atomic_load(&process_wiped->generation);
    if (generation == 0) {
        generation = ++last_generation;
        atomic_store(&process_wiped->generation, generation);
    }
    pthread_mutex_unlock(&process_wiped->lock);
    return generation;
}

/* The first address that others could know us by; the loopback one if there is no other. */
static void find_address(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    inet_ntop(AF_INET, &(struct in_addr){htonl(INADDR_LOOPBACK)}, out, (socklen_t)size);
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
            (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0)
            continue;
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        inet_ntop(AF_INET, &in->sin_addr, out, (socklen_t)size);
        break;
    }
    freeifaddrs(all);
}

int simba_id_host(char *out, size_t size)
{
    if (out == NULL)
        return fault(SIMBA_EINVAL, "simba_id_host needs a place for the id");
    struct process_wiped *p = process_wiped;
    if (p == NULL)
        return fault(SIMBA_ELIMIT, "out of memory when the library was loaded");
    pthread_mutex_lock(&p->lock);
    if (!p->id_drawn) {
        process_random(&p->id_random, sizeof p->id_random);
        find_address(p->id_address, sizeof p->id_address);
        p->id_drawn = true;
    }
    int rc = id_host(out, size, p->id_counter++, getpid(), p->id_address, p->id_random);
    pthread_mutex_unlock(&p->lock);
    if (rc < 0)
        return fault(rc, "an id needs room for %d bytes", SIMBA_ID_MAX + 1);
    return 0;
}

int simba_id_uuid(char *out, size_t size)
{
    if (out == NULL)
        return fault(SIMBA_EINVAL, "simba_id_uuid needs a place for the id");
    uint8_t random[16];
    process_random(random, sizeof random);
    int rc = id_uuid(out, size, random);
    if (rc < 0)
        return fault(rc, "an id needs room for %d bytes", SIMBA_ID_MAX + 1);
    return 0;
}
