/* resources.h: what a process has: descriptors, memory, threads. */
#ifndef LAB_TORTURE_RESOURCES_H
#define LAB_TORTURE_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESCRIPTORS_MAX 1024 /* those above are counted, but not named */

struct resources {
    bool is_open[DESCRIPTORS_MAX];
    int64_t descriptors, threads;
    size_t bytes;
};

int64_t resources_threads(void);
void resources_count(struct resources *r);

/* Waits for the end of threads beyond so many, but not for ever. */
void resources_await_threads(int64_t threads);

/* The next descriptor above `fd` that `now` has and `before` has not, and what it leads to; -1:
 * there is none. */
int resources_added(const struct resources *before, const struct resources *now, int fd, char *to,
                    size_t size);
#endif
