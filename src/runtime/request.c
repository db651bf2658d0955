/* request.c: requests from their beginning to the batch, and their memory. */
#include "runtime/request.h"

#include <stdlib.h>

#include "runtime/client.h"

#define REQUESTS_MAX 1000000 /* waiting for answers; more are refused */
#define REQUESTS_SPARE 4096  /* kept for the next use */

void requests_init(struct requests *all)
{
    all->batch_last = &all->batch;
}

struct request *request_new(struct simba *s)
{
    struct requests *all = &s->requests;
    struct request *r = all->spare;
    if (all->in_flight >= REQUESTS_MAX)
        return NULL;
    if (r != NULL) {
        all->spare = (struct request *)(void *)r->wire.next;
        all->spares--;
    } else if ((r = malloc(sizeof *r)) == NULL) {
        return NULL;
    }
    all->in_flight++;
    *r = (struct request){.client = s};
    return r;
}

void request_send(struct request *r)
{
    struct requests *all = &r->client->requests;
    r->wire.next = NULL;
    *all->batch_last = &r->wire;
    all->batch_last = &r->wire.next;
}

void request_free_found(struct found *list)
{
    for (struct found *next; list != NULL; list = next) {
        next = list->next;
        free(list);
    }
}

void request_free(struct request *r)
{
    struct requests *all = &r->client->requests;
    free(r->owner);
    free(r->text);
    request_free_found(r->found);
    all->in_flight--;
    if (all->spares >= REQUESTS_SPARE) {
        free(r);
        return;
    }
    r->wire.next = (struct simba_request *)(void *)all->spare;
    all->spare = r;
    all->spares++;
}

void requests_free(struct requests *all)
{
    while (all->spare != NULL) {
        struct request *r = all->spare;
        all->spare = (struct request *)(void *)r->wire.next;
        free(r);
    }
}
