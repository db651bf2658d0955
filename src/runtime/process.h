/* process.h: this process, its children, and what is random or unique about it. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include "core/id.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a forked child must find empty: the kernel wipes this page for it. A lock that another
 * thread of the parent held is free there, and what was opened before the fork carries another
 * generation than the page shows. */
struct process_wiped {
    _Atomic uint32_t generation; /* 0: not drawn yet */
    pthread_mutex_t lock;        /* for the rest; a zeroed mutex is an initialised one (glibc) */
    bool id_drawn;
    uint32_t id_random;
    uint64_t id_counter;
    char id_address[INET6_ADDRSTRLEN];
    char id_name[ID_HOST_MAX + 1]; /* of the host; "": none that can be shown */
    void *memory_spaces;           /* of memory: stores, see backend/memory/space.c */
};
extern struct process_wiped *process_wiped; /* NULL: out of memory when the library was loaded */

/* This process's number, never 0, other than that of the process it was forked from. */
uint32_t process_generation(void);

/* An id for a contender; of a store that may have little room for ids, without the host's name. 0, or
 * an error with its text. */
int process_make_id(char *out, size_t size, bool is_short);

/* Where stdin, stdout or stderr is closed, holds its number: else a socket of ours gets it, and
 * whatever the program prints. Reading and writing fail as before. */
void process_hold_stdio(void);
#endif
