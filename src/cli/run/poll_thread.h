/* poll_thread.h: a thread for a client that has none of its own (cli.is_driven). */
#ifndef CLI_RUN_POLL_THREAD_H
#define CLI_RUN_POLL_THREAD_H

#include <stdbool.h>

struct cli;

/* From now on a thread polls it, if it has none; false after saying why: there is none. */
bool poll_thread_start(struct cli *c);
void poll_thread_stop(struct cli *c); /* the caller drives it by waiting; before simba_close() */
#endif
