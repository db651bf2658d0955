/* handles.c: see handles.h. */
#include "backend/kit/handles.h"

#include <assert.h>

void handles_init(struct handles *h, struct simba_host *host, void (*free_store)(void *store),
                  void *store)
{
    *h = (struct handles){host, free_store, store, 0};
}

void handles_add(struct handles *h)
{
    h->open++;
}

void handles_drop(void *handles)
{
    struct handles *h = handles;
    struct simba_host *host = h->host;
    assert(h->open > 0);
    if (--h->open > 0)
        return;
    h->free_store(h->store);
    host->closed(host);
}

static void on_closed(uv_handle_t *handle)
{
    handles_drop(handle->data);
}

void handles_close(struct handles *h, void *handle)
{
    ((uv_handle_t *)handle)->data = h;
    uv_close(handle, on_closed);
}

void handles_add_timer(struct handles *h, uv_timer_t *timer, void *data)
{
    uv_timer_init(h->host->loop, timer); /* which cannot fail */
    timer->data = data;
    handles_add(h);
}

void handles_start_timer(uv_timer_t *timer, uv_timer_cb run, int64_t ms)
{
    uv_update_time(timer->loop);
    uv_timer_start(timer, run, ms > 0 ? (uint64_t)ms : 0, 0);
}
