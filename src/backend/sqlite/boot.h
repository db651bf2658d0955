/* boot.h: time and identity of this boot of the machine, the same for all processes on it. */
#ifndef BACKEND_SQLITE_BOOT_H
#define BACKEND_SQLITE_BOOT_H

#include <stddef.h>
#include <stdint.h>

#define BOOT_ID_SIZE 40 /* a UUID and a NUL */

struct boot {
    char id[BOOT_ID_SIZE];
    int64_t offset; /* of this process's time namespace, ns */
};

int boot_read(struct boot *b, char *why, size_t why_size); /* 0, SIMBA_EUNSUPPORTED */

/* CLOCK_BOOTTIME as the machine's first time namespace sees it, ns. */
int64_t boot_now(const struct boot *b);
#endif
