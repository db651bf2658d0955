/* boot_clock.h: time and identity of this boot of the machine, the same for all processes on it. */
#ifndef BACKEND_SQLITE_BOOT_CLOCK_H
#define BACKEND_SQLITE_BOOT_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define BOOT_ID_SIZE 40 /* a UUID and a NUL */

struct boot_clock {
    char id[BOOT_ID_SIZE];
    int64_t offset; /* of this process's time namespace, ns */
};

int boot_clock_read(struct boot_clock *b, char *why, size_t why_size); /* 0, SIMBA_EUNSUPPORTED */

/* CLOCK_BOOTTIME as the machine's first time namespace sees it, ns. */
int64_t boot_clock_now(const struct boot_clock *b);
#endif
