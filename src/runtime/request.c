/* request.c: requests from their beginning to the batch, and their memory. */
#include "runtime/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/client.h"

#define REQUESTS_MAX 1000000 /* waiting for answers; more are refused */
#define REQUESTS_SPARE 4096  /* kept for the next use */

void requests_init(struct requests *all)
{
    all->batch_last = &all->batch;
}

struct request *request_new(struct simba_client *s)
{
    struct requests *all = &s->requests;
    struct request *r = all->spare;
    if (all->in_flight >= REQUESTS_MAX)
        return NULL;
    if (r != NULL) {
        all->spare = (struct request *)(void *)r->to_store.next;
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
    r->to_store.next = NULL;
    *all->batch_last = &r->to_store;
    all->batch_last = &r->to_store.next;
}

bool request_has_failed(const struct request *r)
{
    return r->code < 0 && r->code != SIMBA_ELOST;
}

void request_free_found(struct found *list)
{
    for (struct found *next; list != NULL; list = next) {
        next = list->next;
        free(list->note);
        free(list);
    }
}

void request_free(struct request *r)
{
    struct requests *all = &r->client->requests;
    free(r->owner);
    free(r->text);
    free(r->note);
    request_free_found(r->found);
    all->in_flight--;
    if (all->spares >= REQUESTS_SPARE) {
        free(r);
        return;
    }
    r->to_store.next = (struct simba_request *)(void *)all->spare;
    all->spare = r;
    all->spares++;
}

struct simba_owner request_owner(const struct request *r, const struct simba_found *found)
{
    int64_t now = r->sent.sent_at / NS_PER_MS;
    struct simba_owner o = {.token = 0};
    if (found->id == NULL || found->id[0] == '\0')
        return o;
    snprintf(o.id, sizeof o.id, "%s", found->id);
    o.token = found->token;
    o.transition_at = now + found->left_ms;
    o.ttl_at = o.transition_at - r->client->period.transition / NS_PER_MS;
    o.acquired_at = found->age_ms < 0 ? 0 : now - found->age_ms;
    o.flags = found->evicted ? SIMBA_OWNER_EVICTED : 0;
    return o;
}

void requests_free(struct requests *all)
{
    while (all->spare != NULL) {
        struct request *r = all->spare;
        all->spare = (struct request *)(void *)r->to_store.next;
        free(r);
    }
}
