/* resources.c: what a process has, by /proc. */
#include "lab/torture/resources.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

#define AWAIT_STEPS 2000 /* ten seconds: longer than to give up a connection */
#define AWAIT_STEP (5 * NS_PER_MS)

/* How many entries a folder has; each is called with its name. */
static int64_t count_entries(const char *path, void (*each)(struct resources *r, const char *name),
                             struct resources *r)
{
    int64_t count = 0;
    DIR *all = opendir(path);
    for (const struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        count++;
        if (each != NULL)
            each(r, e->d_name);
    }
    if (all != NULL)
        closedir(all);
    return count;
}

static void add_descriptor(struct resources *r, const char *name)
{
    long fd = strtol(name, NULL, 10);
    if (fd >= 0 && fd < DESCRIPTORS_MAX)
        r->is_open[fd] = true;
}

int64_t resources_threads(void)
{
    return count_entries("/proc/self/task", NULL, NULL);
}

void resources_count(struct resources *r)
{
    *r = (struct resources){.bytes = mallinfo2().uordblks};
    r->threads = resources_threads();
    r->descriptors = count_entries("/proc/self/fd", add_descriptor, r); /* with that of this */
}

void resources_await_threads(int64_t threads)
{
    const struct timespec pause = {.tv_nsec = AWAIT_STEP};
    for (int i = 0; i < AWAIT_STEPS && resources_threads() > threads; i++)
        nanosleep(&pause, NULL);
}

int resources_added(const struct resources *before, const struct resources *now, int fd, char *to,
                    size_t size)
{
    char path[40];
    while (++fd < DESCRIPTORS_MAX) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = now->is_open[fd] && !before->is_open[fd] ? readlink(path, to, size - 1) : -1;
        if (n < 0)
            continue; /* the folder that was read is closed again */
        to[n] = '\0';
        return fd;
    }
    return -1;
}
