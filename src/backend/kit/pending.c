/* pending.c: see pending.h. */
#include "backend/kit/pending.h"

#include <stddef.h>

static struct simba_request **end_of(struct simba_request **list)
{
    while (*list != NULL)
        list = &(*list)->next;
    return list;
}

void pending_init(struct pending *p)
{
    p->first = NULL;
    p->last = &p->first;
}

void pending_add(struct pending *p, struct simba_request *list)
{
    *p->last = list;
    p->last = end_of(p->last);
}

struct simba_request *pending_take(struct pending *p)
{
    struct simba_request *all = p->first;
    pending_init(p);
    return all;
}

void pending_put_back(struct pending *p, struct simba_request *list)
{
    if (list == NULL)
        return;
    *end_of(&list) = p->first;
    p->first = list;
    p->last = end_of(&p->first);
}

void pending_refuse(struct simba_host *host, struct simba_request *q, int code, const char *why)
{
    q->next = NULL;
    pending_refuse_list(host, q, code, why);
}

void pending_refuse_list(struct simba_host *host, struct simba_request *list, int code,
                         const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next; /* the answer gives the request back */
        struct simba_answer answer = {
            .code = code, .age_ms = -1, .text = why, .more = next != NULL};
        host->answer(host, list, &answer);
    }
}

void pending_fail(struct pending *p, struct simba_host *host, int code, const char *why)
{
    pending_refuse_list(host, pending_take(p), code, why);
}
