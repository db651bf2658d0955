/* store.c: what a client can be asked about its store. */
#include "runtime/client.h"

const char *simba_store_text(const simba *s)
{
    return s != NULL ? s->url.shown : "";
}

int simba_liveness_fd(simba *s)
{
    if (s == NULL || client_is_forked(s) || s->backend->liveness == NULL)
        return -1;
    return s->backend->liveness(s->store);
}
