/* fork.h: what a forked child must not inherit. */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for the life of the process, which a forked child finds zeroed again: the kernel
 * wipes it. So a lock in it that another thread of the parent held is free there: a zeroed mutex is
 * an initialised one (glibc). Call it from a constructor, when there is one thread only. NULL: out
 * of memory. */
#define FORK_WIPED_MAX 4096 /* all together */
void *fork_wiped(size_t size);

/* This process's number, other than that of the process it was forked from. 0: out of memory when
 * the program was loaded. */
uint32_t fork_generation(void);

/* The same if somebody has asked for it in this process, else 0. Takes no lock. */
uint32_t fork_generation_known(void);
#endif
