/* handles.h: what a store still has on the loop. libuv lets go of a handle some time after it
 * was closed. When it has let go of the last one, the store's memory is freed, and then the
 * runtime hears that the store is closed. */
#ifndef BACKEND_KIT_HANDLES_H
#define BACKEND_KIT_HANDLES_H

#include <simba/backend.h>
#include <uv.h>

struct handles {
    struct simba_host *host;
    void (*free_store)(void *store);
    void *store;
    unsigned open;
};

void handles_init(struct handles *h, struct simba_host *host, void (*free_store)(void *store),
                  void *store);
void handles_add(struct handles *h); /* one more is on the loop */
void handles_drop(void *handles);    /* the loop has let go of one */

/* Closes one that is part of the store's memory, and drops it. Its data is not the store's any
 * more. */
void handles_close(struct handles *h, void *handle);

/* A timer that is counted. Starting it reads the clock: the loop's own may be old. */
void handles_add_timer(struct handles *h, uv_timer_t *timer, void *data);
void handles_start_timer(uv_timer_t *timer, uv_timer_cb run, int64_t ms); /* below 0 is 0 */
#endif
