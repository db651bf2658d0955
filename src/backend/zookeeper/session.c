/* session.c: see session.h. A client has one session per length of lease that its contenders ask
 * for, so in general one. */
#include "backend/zookeeper/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/zookeeper/connection.h"
#include "backend/zookeeper/ensemble.h"
#include "backend/zookeeper/four_letter.h"
#include "backend/zookeeper/query.h"

#define DEFAULT_MS (SIMBA_TTL_MS + SIMBA_TRANSITION_MS)
#define REST_MS 250      /* between attempts, where all servers have failed, */
#define PART_REST 64     /* and of the session's timeout while a tenure may still be kept */
#define ASK_MS 1000      /* between questions whether its servers serve */
#define PATIENCE_MS 1000 /* for an answer */
#define TRIES 2          /* at each server, after one has said that it serves */

/* ---- its timers ---------------------------------------------------------------------------- */

static void on_heartbeat(uv_timer_t *timer)
{
    struct session *s = timer->data;
    zk_latch_session_heartbeat(&s->latch, simba_now());
    zk_connection_pump(s);
}

void zk_session_heartbeat_in(struct latch_session *latch, int64_t ms)
{
    struct session *s = (struct session *)(void *)latch;
    handles_start_timer(&s->heartbeat, on_heartbeat, ms);
}

static void on_watch_own(uv_timer_t *timer)
{
    struct session *s = timer->data;
    zk_latch_session_watch_own(&s->latch, simba_now());
    zk_connection_pump(s);
}

void zk_session_watch_own_in(struct latch_session *latch, int64_t ms)
{
    struct session *s = (struct session *)(void *)latch;
    if (!uv_is_active((uv_handle_t *)&s->watch_own))
        handles_start_timer(&s->watch_own, on_watch_own, ms);
}

/* ---- its beginning and its end on the server ----------------------------------------------- */

/* It is closed outside of the client library's callbacks. hopeless: another will not do either. */
static void give_up(struct session *s, int code, bool hopeless)
{
    s->over = true;
    s->latch.code = code;
    if (hopeless)
        s->failures = (int)s->store->config.hosts;
    s->store->host->log(s->store->host, SIMBA_LOG_WARN, s->why);
}

/* ---- a session that is not taken up again -------------------------------------------------- */

/* The length that the servers count from the last exchange. All tenures have ended before. */
static bool is_outlived(const struct session *s, int64_t now)
{
    const struct session_deadline *d = &s->latch.deadline;
    return s->handle != NULL && !s->over && s->latch.established && !s->latch.connected &&
           now > d->written + d->timeout && now > d->counted + d->timeout;
}

int64_t zk_session_rest_ms(const struct session *s, int64_t now)
{
    bool rests = !s->latch.connected && s->failures >= (int)s->store->config.hosts;
    return rests && now < s->try_at ? s->try_at - now : 0;
}

void zk_session_failed_once(struct session *s)
{
    int64_t now = simba_now(), part = zk_latch_session_timeout_ms(&s->latch) / PART_REST;
    bool is_kept = s->latch.established && !is_outlived(s, now) && part < REST_MS;
    s->try_at = now + (is_kept ? part : REST_MS);
}

static void on_served(void *data, const struct four_letter_answer *a)
{
    struct session *s = data;
    struct ensemble_server server = {.state = SERVER_SILENT};
    snprintf(server.why, sizeof server.why, "%s", a->why);
    zk_ensemble_read(&server, a->srvr, a->conf);
    bool serves = server.state == SERVER_HIDES ||
                  (server.state == SERVER_SERVES && strcmp(server.mode, "read-only") != 0);
    s->outlived.question = NULL;
    if (!serves || s->outlived.has_served)
        return;
    s->outlived.has_served = true;
    s->outlived.is_hidden = server.state == SERVER_HIDES;
    s->outlived.failures = s->failures;
}

static void ask_server(struct session *s)
{
    const struct zookeeper_config *c = &s->store->config;
    size_t at = s->outlived.host++ % c->hosts;
    s->outlived.question = zk_four_letter_ask(s->store->resolver, c->host[at].name,
                                              c->host[at].port, PATIENCE_MS, on_served, s);
}

static void forget_server(struct session *s)
{
    if (s->outlived.question != NULL)
        zk_four_letter_forget(s->outlived.question);
    s->outlived.question = NULL;
    s->outlived.has_served = false;
}

void zk_session_check_outlived(struct session *s)
{
    int64_t now = simba_now();
    int tries = TRIES * (int)s->store->config.hosts;
    if (!is_outlived(s, now)) {
        forget_server(s);
    } else if (s->outlived.has_served && s->failures - s->outlived.failures >= tries) {
        const char *how =
            s->outlived.is_hidden
                ? "the servers do not take up our session again: is there no majority, or were "
                  "their data deleted, or replaced by older ones? Beginning another session"
                : "the servers serve, and do not take up our session of before again: were their "
                  "data deleted, or replaced by older ones? Beginning another session";
        snprintf(s->why, sizeof s->why, "%.100s: %s", s->addresses, how);
        forget_server(s);
        give_up(s, SIMBA_ESTORE, false);
    } else if (s->outlived.question == NULL && now >= s->outlived.ask_at) {
        s->outlived.ask_at = now + ASK_MS;
        ask_server(s);
    }
}

/* ---- connected, and not -------------------------------------------------------------------- */

/* What waited for a connection has one. */
static void submit_waiting(struct session *s)
{
    struct simba_request *list = pending_take(&s->store->waiting);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        zk_query_submit(s, list);
    }
}

static void log_timeout(const struct session *s, int timeout)
{
    struct simba_host *host = s->store->host;
    char text[ENSEMBLE_TEXT_MAX];
    if (zk_ensemble_timeout_text(s->latch.asked_ms, timeout, text) == SIMBA_LOG_WARN)
        host->log(host, SIMBA_LOG_WARN, text);
}

/* A session without a length or a number is none. Its nodes, if it has any, stay until the
 * server ends it: who relied on them has to end first. */
void zk_session_connected(struct session *s)
{
    struct simba_host *host = s->store->host;
    int64_t id = zoo_client_id(s->handle)->client_id;
    int timeout = zoo_recv_timeout(s->handle);
    bool again = s->latch.established;
    if (timeout <= 0 || id == 0) {
        snprintf(s->why, sizeof s->why,
                 "%.100s grants a session of %d ms, which cannot be: is it a ZooKeeper server?",
                 s->addresses, timeout);
        give_up(s, SIMBA_ESTORE, true);
        return;
    }
    s->failures = 0;
    reconnect_ready(&s->reconnect, simba_now());
    zk_latch_session_connected(&s->latch, id, timeout, s->tried_at, simba_now());
    if (!again)
        log_timeout(s, timeout);
    else if (host->reconnected != NULL)
        host->reconnected(host);
    submit_waiting(s);
}

void zk_session_lost(struct session *s, int state)
{
    bool was = s->latch.connected;
    s->latch.connected = false;
    s->latch.code = SIMBA_ESTORE;
    if (state == ZOO_AUTH_FAILED_STATE) {
        snprintf(s->why, sizeof s->why, "the server refuses the user or the password");
        give_up(s, SIMBA_EDENIED, true);
    } else if (state == ZOO_EXPIRED_SESSION_STATE) {
        snprintf(s->why, sizeof s->why, "the session has expired on the server");
        give_up(s, SIMBA_ESTORE, false);
    } else {
        snprintf(s->why, sizeof s->why, "the connection to the server is lost");
    }
    if (was)
        zk_latch_session_disconnected(&s->latch, simba_now());
}

/* ---- making and closing -------------------------------------------------------------------- */

static struct session *make(struct zookeeper *z, int64_t asked_ms)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->store = z;
    zk_latch_session_init(&s->latch, &z->latch, asked_ms);
    s->latch.why = s->why;
    reconnect_init(&s->reconnect);
    handles_add_timer(&z->handles, &s->timer, s);
    handles_add_timer(&z->handles, &s->heartbeat, s);
    handles_add_timer(&z->handles, &s->watch_own, s);
    zk_connection_begin(s);
    return s;
}

struct session *zk_session_next(const struct session *s)
{
    return (struct session *)(void *)s->latch.next;
}

struct session *zk_session_for(struct zookeeper *z, int64_t lease_ms)
{
    int64_t asked = z->config.session_timeout_ms > 0 ? z->config.session_timeout_ms : lease_ms;
    struct latch_session *best = NULL;
    size_t count = 0;
    for (struct latch_session *s = z->latch.sessions; s != NULL; s = s->next, count++) {
        if (s->asked_ms == asked)
            return (struct session *)(void *)s;
        /* If it must be another: the longest that is shorter. */
        bool fits = s->asked_ms < asked;
        if (best == NULL || (fits && (best->asked_ms > asked || best->asked_ms < s->asked_ms)) ||
            (!fits && best->asked_ms > s->asked_ms))
            best = s;
    }
    return count < SESSIONS_MAX ? make(z, asked) : (struct session *)(void *)best;
}

struct session *zk_session_any(struct zookeeper *z)
{
    struct latch_session *s = z->latch.sessions;
    while (s != NULL && !s->connected)
        s = s->next;
    if (s == NULL)
        s = z->latch.sessions;
    return s != NULL ? (struct session *)(void *)s : zk_session_for(z, DEFAULT_MS);
}

/* Freed with the store, when the loop has let go of everything. */
void zk_session_close(struct session *s)
{
    for (size_t i = 0; i < s->store->config.hosts; i++) {
        if (s->asked[i].question != NULL)
            resolve_forget(s->asked[i].question);
        s->asked[i].question = NULL;
    }
    forget_server(s);
    zk_connection_close(s);
    zk_latch_session_close(&s->latch, simba_now());
    handles_close(&s->store->handles, &s->timer);
    handles_close(&s->store->handles, &s->heartbeat);
    handles_close(&s->store->handles, &s->watch_own);
}
