/* network.c: proxies between the workers and the servers of a store. */
#include "lab/torture/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/messages.h"

static enum net_fault net_fault_of(enum fault fault)
{
    switch (fault) {
    case FAULT_DELAY:
        return NET_DELAY;
    case FAULT_STALL:
        return NET_STALL;
    case FAULT_SWALLOW:
        return NET_SWALLOW;
    case FAULT_CUT:
        return NET_CUT;
    case FAULT_TRICKLE:
        return NET_TRICKLE;
    case FAULT_REFUSE:
        return NET_REFUSE;
    case FAULT_RESET:
        return NET_RESET;
    case FAULT_DUPLICATE:
        return NET_DUPLICATE;
    default:
        return NET_CLEAR;
    }
}

void network_find(struct torture *t)
{
    struct endpoints *servers = &t->network.servers;
    if ((t->faults & faults_of(GROUP_NETWORK)) == 0)
        return;
    endpoints_find(t->c->setting[SET_URL].value, servers);
    if (servers->limit[0] != '\0' && (t->faults_text != NULL || servers->count > 0))
        print_note(t->c, "%s", servers->limit);
    if (servers->count == 0)
        t->faults &= ~faults_of(GROUP_NETWORK);
}

struct step network_start(struct torture *t)
{
    struct torture_network *n = &t->network;
    for (size_t i = 0; i < n->servers.count; i++) {
        n->proxies[i] = proxy_start(&n->servers.at[i], t->workers + 1);
        if (n->proxies[i] == NULL)
            return print_error(t->c, "cannot start a proxy for %s: %s", n->servers.at[i].host,
                               strerror(errno));
        n->count++;
    }
    return GO_ON;
}

void network_take_route(const struct torture *t, unsigned worker)
{
    static char url[URL_MAX];
    uint16_t ports[ENDPOINTS_MAX];
    struct setting *s = &t->c->setting[SET_URL];
    if (t->network.count == 0)
        return;
    for (size_t i = 0; i < t->network.count; i++)
        ports[i] = proxy_port(t->network.proxies[i], worker);
    if (endpoints_rewrite(s->value, ports, url, sizeof url) == 0)
        s->value = url;
}

bool network_set(const struct torture *t, unsigned worker, enum fault fault, int64_t amount)
{
    bool is_set = true;
    for (size_t i = 0; i < t->network.count; i++)
        is_set =
            proxy_set(t->network.proxies[i], worker, net_fault_of(fault), amount) == 0 && is_set;
    return is_set;
}

void network_stop(struct torture *t)
{
    for (size_t i = 0; i < t->network.count; i++)
        proxy_stop(t->network.proxies[i]);
    t->network.count = 0;
}
