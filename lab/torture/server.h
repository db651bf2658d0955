/* server.h: faults on the server, only where its owner allows them: by the pid of its process, and
 * by commands of the owner's. Nothing here knows a store.
 *
 *   --server-pid PID|FILE    its process, or a file that holds the number, read before each use:
 *                            server-freeze
 *   --server-start CMD       starts it again, and returns when it serves: server-kill (kill -9).
 *                            Without a FILE the first line that CMD prints is the new pid
 *   --server-fault NAME=CMD  for any other fault of the server: CMD is run with one more argument,
 *                            begin or end, and returns when that is so
 *
 * Commands are run by sh. They run beside the torturer, which asks every few milliseconds how far
 * they are. At most one fault of the server lasts at a time. */
#ifndef LAB_TORTURE_SERVER_H
#define LAB_TORTURE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "lab/torture/fault.h"
#include "lab/torture/record.h"

struct server_options {
    const char *pid, *start;     /* NULL: not given */
    const char *const *commands; /* NAME=CMD */
    size_t command_count;
};

struct torture_server;

/* The texts are borrowed until server_close. NULL: `why` says what is wrong with the options. */
struct torture_server *server_open(const struct server_options *o, char *why, size_t why_size);

/* What can be done to it. */
fault_set server_faults(const struct torture_server *s);

/* False: another fault lasts still, or this cannot be done (server_error says so). */
bool server_begin(struct torture_server *s, enum fault fault);

/* The fault that lasts is to end; without one, nothing happens. */
void server_end(struct torture_server *s);

bool server_is_busy(const struct torture_server *s); /* a fault has begun and is not over */

/* True: the fault is over, and *out is an ENTRY_FAULT from its beginning to when the server was
 * well again. It is a child's end that is waited for, by its pid: nobody else may wait for it. */
bool server_poll(struct torture_server *s, struct entry *out);

/* Ends the fault that lasts, and waits for that. True: as above. */
bool server_settle(struct torture_server *s, struct entry *out);

/* What went wrong first, a phrase; "": nothing. */
const char *server_error(const struct torture_server *s);

void server_close(struct torture_server *s); /* settles first */

#endif
