/* environment.h: what a command learns of the tenure that it runs under. */
#ifndef CLI_RUN_ENVIRONMENT_H
#define CLI_RUN_ENVIRONMENT_H

#include <stdint.h>

struct environment {
    const char *mutex, *id, *store;
    const char *reason; /* why the tenure is over; NULL: it is not */
    uint64_t token;
};

/* Ours, with SIMBA_MUTEX and so on. NULL: out of memory. Our own is not changed: threads may read it. */
char **environment_make(const struct environment *e);
void environment_free(char **all);
#endif
