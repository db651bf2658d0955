/* process.h: what is random or unique about this process, and its standard files. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* An id for a contender; of a store that may have little room for ids, without the host's name. 0, or
 * an error with its text. */
int process_make_id(char *out, size_t size, bool is_short);

/* Where stdin, stdout or stderr is closed, holds its number: else a socket of ours gets it, and
 * whatever the program prints. Reading and writing fail as before. */
void process_hold_stdio(void);
#endif
