/* boot_clock.c: deadlines in the database are in boot time, which no step of the wall clock
 * moves. A process in a time namespace sees that clock with an offset; without it all agree. */
#include "backend/sqlite/boot_clock.h"

#include <errno.h>
#include <simba.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_text.h"

static int read_id(struct boot_clock *b)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL)
        return -1;
    char *line = fgets(b->id, sizeof b->id, f);
    fclose(f);
    if (line == NULL)
        return -1;
    b->id[strcspn(b->id, "\n")] = '\0';
    return b->id[0] == '\0' ? -1 : 0;
}

static bool same_link(const char *a, const char *b)
{
    char x[64], y[64];
    ssize_t n = readlink(a, x, sizeof x), m = readlink(b, y, sizeof y);
    return n > 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

/* The file speaks of the namespace that our children will be in. Mostly that is ours; after an
 * unshare() without a fork it is not, and nothing tells our own offset. Kernels without time
 * namespaces have no such links, and no offset. */
static bool read_offset(struct boot_clock *b)
{
    b->offset = 0;
    if (access("/proc/self/ns/time", F_OK) != 0 && errno == ENOENT)
        return access("/proc/self/ns", F_OK) == 0;
    FILE *f = same_link("/proc/self/ns/time", "/proc/self/ns/time_for_children")
                  ? fopen("/proc/self/timens_offsets", "re")
                  : NULL;
    if (f == NULL)
        return false;
    char name[32];
    long long seconds, ns;
    bool found = false;
    while (fscanf(f, "%31s %lld %lld", name, &seconds, &ns) == 3) {
        if (strcmp(name, "boottime") == 0) {
            b->offset = seconds * 1000000000 + ns;
            found = true;
        }
    }
    fclose(f);
    return found;
}

static int refuse_limit(int error, char *why, size_t why_size)
{
    snprintf(why, why_size, "cannot read /proc: %s", errno_text(error));
    return SIMBA_ELIMIT;
}

int boot_clock_read(struct boot_clock *b, char *why, size_t why_size)
{
    errno = 0;
    if (read_id(b) != 0) {
        int error = errno;
        if (errno_is_limit(error))
            return refuse_limit(error, why, why_size);
        snprintf(why, why_size,
                 "cannot read /proc/sys/kernel/random/boot_id (%s); is /proc mounted?",
                 error != 0 ? strerror(error) : "it is empty");
        return SIMBA_EUNSUPPORTED;
    }
    errno = 0;
    if (!read_offset(b)) {
        if (errno_is_limit(errno))
            return refuse_limit(errno, why, why_size);
        snprintf(why, why_size,
                 "cannot tell how this process's clock differs from that of other processes: it "
                 "has a new time namespace for its children (start a child and open the store "
                 "there), or /proc/self cannot be read");
        return SIMBA_EUNSUPPORTED;
    }
    return 0;
}

int64_t boot_clock_now(const struct boot_clock *b)
{
    return clock_now() - b->offset;
}
