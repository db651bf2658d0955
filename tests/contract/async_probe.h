/* async_probe.h: a locker whose asynchronous calls and callbacks are written down and checked. */
#ifndef CONTRACT_ASYNC_PROBE_H
#define CONTRACT_ASYNC_PROBE_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>

struct async_probe;
typedef void async_probe_fn(struct async_probe *p, int code);

/* What is checked of every locker in every test: done, on_released and on_closed never overlap,
 * each comes as often as it was asked for, and nothing comes after on_closed. */
struct async_probe {
    /* set before; zero the rest */
    async_probe_fn *in_done;     /* runs inside done; NULL: nothing */
    async_probe_fn *in_released; /* likewise */
    atomic_bool gate;            /* for async_probe_block */

    simba_client *s;
    const char *mutex;
    simba_locker *l;
    atomic_int asked, dones; /* calls that returned 0; dones that have returned */
    atomic_int inside;
    atomic_int released, closed;
    atomic_int code; /* of the last done */
    int rounds;      /* for the hooks */
    char text[512];  /* of the last done that failed */
};

void async_probe_create(struct async_probe *p, simba_client *s, const char *mutex,
                        const struct simba_handle_options *like);
int async_acquire(struct async_probe *p, int64_t timeout_ms);
int async_release(struct async_probe *p);
void async_probe_block(struct async_probe *p, int code); /* a hook: until the gate is open */

/* How the calls have ended, when all have. */
int async_result(struct async_probe *p);
#endif
