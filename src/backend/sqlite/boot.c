/* boot.c: deadlines in the database are in boot time, which no step of the wall clock moves. A
 * process in a time namespace sees that clock with an offset; without it all agree. */
#include "backend/sqlite/boot.h"

#include <simba.h>
#include <stdio.h>
#include <string.h>

#include "runtime/clock.h"

static int read_id(struct boot *b)
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

/* Kernels without time namespaces have no such file, and no offset. */
static void read_offset(struct boot *b)
{
    b->offset = 0;
    FILE *f = fopen("/proc/self/timens_offsets", "re");
    if (f == NULL)
        return;
    char name[32];
    long long seconds, ns;
    while (fscanf(f, "%31s %lld %lld", name, &seconds, &ns) == 3) {
        if (strcmp(name, "boottime") == 0)
            b->offset = seconds * 1000000000 + ns;
    }
    fclose(f);
}

int boot_read(struct boot *b, char *why, size_t why_size)
{
    if (read_id(b) != 0) {
        snprintf(why, why_size, "cannot read the boot id of this machine; is /proc mounted?");
        return SIMBA_EUNSUPPORTED;
    }
    read_offset(b);
    return 0;
}

int64_t boot_now(const struct boot *b)
{
    return clock_now() - b->offset;
}
