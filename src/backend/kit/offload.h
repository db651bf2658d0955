/* offload.h: calls that block and cannot be stopped (connecting, looking up a name), each on a
 * thread of its own. The loop hears what came of it. A thread that hangs is left behind when the
 * store closes, and holds up nobody; exit() waits for it, for some seconds, if it asks for that.
 *
 * A call is part of a larger structure, whose memory it is. */
#ifndef BACKEND_KIT_OFFLOAD_H
#define BACKEND_KIT_OFFLOAD_H

#include <stdbool.h>
#include <uv.h>

struct offload; /* shared by the loop and by threads that are still busy */

struct offload_call {
    void (*run)(struct offload_call *c);  /* on the thread */
    void (*done)(struct offload_call *c); /* on the loop */
    void (*free)(struct offload_call *c); /* after done(), or instead of it; any thread */
    bool holds_exit; /* it is in a library that exit() takes down, and would crash there */

    struct offload *offload; /* its own, from here on */
    struct offload_call *next;
    bool is_forgotten, has_run;
};

/* shared: given; what the calls read. It is freed behind the last of them. NULL: out of memory. */
struct offload *offload_open(uv_loop_t *loop, void *shared, void (*free_shared)(void *shared));
void *offload_shared(const struct offload_call *c);

/* No call is done any more; closed(data) when the loop has let go of it. */
void offload_close(struct offload *o, void (*closed)(void *data), void *data);

/* 0; or SIMBA_ELIMIT: no thread could be started, and the call has been freed. */
int offload_start(struct offload *o, struct offload_call *c);
void offload_forget(struct offload_call *c); /* it will not be done, only freed */
#endif
