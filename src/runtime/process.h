/* process.h: this process, its children, and what is random or unique about it. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A number on a page that the kernel wipes in a forked child: what was opened before the fork
 * carries another number than the page then shows. Never NULL after process_generation(). */
extern _Atomic uint32_t *process_page;

/* This process's number, never 0; drawn anew in a child that asks for it. 0: out of memory. */
uint32_t process_generation(void);

void process_random(void *out, size_t size);
uint64_t process_random64(void);
#endif
