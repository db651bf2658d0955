/* facts.c: what the trace tells of a server that goes and comes back. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define KINDS 16

/* How often each kind was seen, and the last of it. */
static struct seen {
    pthread_mutex_t lock;
    int count[KINDS];
    struct simba_event last[KINDS];
    char text[KINDS][400];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_event(void *data, const struct simba_event *event)
{
    (void)data;
    CHECK(event->kind < KINDS);
    pthread_mutex_lock(&seen.lock);
    seen.count[event->kind]++;
    seen.last[event->kind] = *event;
    snprintf(seen.text[event->kind], sizeof seen.text[0], "%s", event->text);
    pthread_mutex_unlock(&seen.lock);
}

static int count_of(enum simba_event_kind kind)
{
    pthread_mutex_lock(&seen.lock);
    int count = seen.count[kind];
    pthread_mutex_unlock(&seen.lock);
    return count;
}

static simba_client *open_kinds(const struct server *s)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *c = NULL;
    o.trace = on_event;
    o.trace_kinds = SIMBA_EVENT_BIT(SIMBA_EVENT_FAILING) | SIMBA_EVENT_BIT(SIMBA_EVENT_WORKS) |
                    SIMBA_EVENT_BIT(SIMBA_EVENT_NOT_YET) | SIMBA_EVENT_BIT(SIMBA_EVENT_REACHED);
    CHECK_OK(simba_open(s->url, &o, &c));
    return c;
}

/* Renewals fail while the server is away, and go on when it is back with what it had. */
static void redis_facts_outage(void)
{
    folder_make();
    struct server s = {.name = "a", .options = {"--appendonly", "yes", "--appendfsync", "always"}};
    struct simba_handle_options o = lease(2000, 58000);
    simba_locker *l;
    server_start(&s);
    simba_client *c = open_kinds(&s);
    CHECK_OK(simba_locker_create(c, "m", &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT(count_of(SIMBA_EVENT_REACHED) == 1);
    CHECK(count_of(SIMBA_EVENT_FAILING) == 0);
    server_kill(&s);
    AWAIT(count_of(SIMBA_EVENT_FAILING) >= 1);
    pthread_mutex_lock(&seen.lock);
    const struct simba_event *e = &seen.last[SIMBA_EVENT_FAILING];
    /* A busy machine may notice that no answer comes before it notices that the server is gone. */
    CHECK(e->code == SIMBA_ESTORE || e->code == SIMBA_ETIMEOUT);
    CHECK(e->token == simba_locker_token(l));
    CHECK(e->until > simba_now() && e->until <= simba_now() + simba_locker_remaining(l) + 2);
    CHECK(seen.text[SIMBA_EVENT_FAILING][0] != '\0');
    pthread_mutex_unlock(&seen.lock);
    CHECK(count_of(SIMBA_EVENT_WORKS) == 0);
    server_start(&s);
    AWAIT(count_of(SIMBA_EVENT_WORKS) == 1);
    CHECK(seen.last[SIMBA_EVENT_WORKS].until >= seen.last[SIMBA_EVENT_FAILING].until);
    CHECK_OK(simba_locker_release(l));
    CHECK(count_of(SIMBA_EVENT_REACHED) == 1);
    client_close(c);
    server_end(&s);
    folder_remove();
}

/* A server that has started a moment ago grants nothing yet. */
static void redis_facts_not_yet(void)
{
    folder_make();
    struct server s = {.name = "a", .query = "restart_guard=5s"};
    struct simba_handle_options o = lease(2000, 1000);
    simba_contender *w;
    server_start(&s);
    simba_client *c = open_kinds(&s);
    int64_t before = simba_now();
    CHECK_OK(simba_contender_create(c, "m", &o, &w));
    CHECK_OK(simba_contender_start(w));
    AWAIT(count_of(SIMBA_EVENT_NOT_YET) == 1);
    pthread_mutex_lock(&seen.lock);
    const struct simba_event *e = &seen.last[SIMBA_EVENT_NOT_YET];
    CHECK(e->code == SIMBA_ENOTYET && e->until > before && e->until <= simba_now() + 6000);
    CHECK(strstr(seen.text[SIMBA_EVENT_NOT_YET], "restart_guard") != NULL);
    pthread_mutex_unlock(&seen.lock);
    AWAIT(simba_contender_is_owner(w));
    CHECK(count_of(SIMBA_EVENT_FAILING) == 0 && count_of(SIMBA_EVENT_REACHED) == 1);
    CHECK(count_of(SIMBA_EVENT_NOT_YET) <= 2); /* not with each attempt */
    client_close(c);
    server_end(&s);
    folder_remove();
}

const struct test redis_fact_tests[] = {
    {"redis_facts_outage", redis_facts_outage, REDIS_ONLY, 0},
    {"redis_facts_not_yet", redis_facts_not_yet, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
