/* subscriber.c: see subscriber.h. */
#include "backend/redis/subscriber.h"

#include <stdio.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/messages.h"
#include "backend/redis/requests.h"
#include "backend/redis/scripts.h"
#include "base/rng.h"

#define UPKEEP_MS 5000
#define RESERVED_LATER_MS 100 /* who asks after a reservation has passed: not all at once */
#define ROW_MAX_MS 20         /* of hand-overs within this client, while others may wait */
#define ALL TOPICS_PREFIX "*" TOPICS_SUFFIX
#define RIGHTS "simba:rights" /* a channel to try on */

static bool observes_all(const struct subscriber *e)
{
    return e->host->interest(e->host, "") == SIMBA_OBSERVES;
}

/* ---- the connection ------------------------------------------------------------------------ */

static void on_upkeep(uv_timer_t *timer);

static void open_connection(struct subscriber *e)
{
    if (e->connection.wanted)
        return;
    connection_open(&e->connection);
    handles_start_timer(&e->upkeep, on_upkeep, UPKEEP_MS);
}

static void on_error(struct subscriber *e, const struct reply *r)
{
    char why[CONNECTION_TEXT_MAX], line[CONNECTION_TEXT_MAX + 64];
    if (e->trial.over != NULL)
        e->trial.denied(e->trial.data, r);
    if (e->was_denied)
        return;
    errors_describe(r, why, sizeof why);
    snprintf(line, sizeof line, "cannot subscribe, so waiters poll: %s", why);
    e->host->log(e->host, SIMBA_LOG_WARN, line);
    e->was_denied = true;
}

static void end_trial(struct subscriber *e)
{
    struct subscriber_trial trial = e->trial;
    e->trial.over = NULL;
    if (trial.over != NULL)
        trial.over(trial.data);
}

/* What is tried was sent before it. */
static void on_pong(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct subscriber *e = data;
    (void)sent;
    if (r != NULL && e->connection.unanswered == 0)
        end_trial(e);
}

static void send_ping(struct subscriber *e)
{
    struct buffer *b = connection_command(&e->connection, (struct redis_command){.take = on_pong});
    if (b != NULL)
        resp_command(b, "PING");
}

static void send_trial(struct subscriber *e)
{
    topics_say(&e->topics, "SUBSCRIBE", RIGHTS);
    topics_say(&e->topics, "UNSUBSCRIBE", RIGHTS);
    if (!observes_all(e)) { /* else it has been tried */
        topics_say(&e->topics, "PSUBSCRIBE", ALL);
        topics_say(&e->topics, "PUNSUBSCRIBE", ALL);
    }
    send_ping(e);
}

void subscriber_try(struct subscriber *e, const struct subscriber_trial *trial)
{
    e->trial = *trial;
    open_connection(e);
    if (e->connection.state == CONNECTION_READY)
        send_trial(e);
    connection_flush(e->connection.net);
}

static void on_ready(void *data)
{
    struct subscriber *e = data;
    e->was_denied = false;
    topics_connected(&e->topics);
    topics_say(&e->topics, "SUBSCRIBE", MESSAGES_EVICTIONS);
    if (observes_all(e))
        topics_say(&e->topics, "PSUBSCRIBE", ALL);
    if (e->trial.over != NULL)
        send_trial(e);
    connection_flush(e->connection.net);
}

static void on_down(void *data)
{
    struct subscriber *e = data;
    topics_disconnected(&e->topics);
    e->receives_evictions = false;
    end_trial(e);
}

static void on_push(void *data, const struct reply *r)
{
    struct subscriber *e = data;
    bool is_pong = reply_equals(reply_at(r, 0), "pong") || reply_equals(r, "PONG");
    if (r->kind == REPLY_ERROR)
        on_error(e, r);
    else if (!is_pong)
        messages_take(e, r);
    else if (e->connection.unanswered > 0)
        connection_answered(&e->connection, r);
}

static void find_server(void *data)
{
    struct subscriber *e = data;
    if (e->commands->state == CONNECTION_READY)
        connection_go(&e->connection, &e->commands->address);
    else
        connection_fail(&e->connection, SIMBA_ESTORE, "the connection for commands is down");
}

/* It listens to the server that is talked to, also after a failover that the old one survived. */
void subscriber_follow(struct subscriber *e)
{
    const struct redis_address *now = &e->commands->address, *before = &e->connection.address;
    bool moved = strcmp(now->host, before->host) != 0 || now->port != before->port;
    if (!e->connection.wanted)
        return;
    if (moved && e->connection.state != CONNECTION_DOWN) {
        on_down(e);
        connection_shut(&e->connection);
    }
    connection_hurry(&e->connection);
}

static const struct connection_use use = {
    .find = find_server,
    .ready = on_ready,
    .push = on_push,
    .down = on_down,
};

/* ---- upkeep -------------------------------------------------------------------------------- */

static void on_absent(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct subscriber *e = sent->about;
    (void)data;
    if (r == NULL || r->kind == REPLY_ERROR)
        return;
    if (r->kind != REPLY_ARRAY)
        connection_fail(e->commands, SIMBA_ESTORE, "an answer of the server makes no sense");
    for (size_t i = 0; i < r->elements; i++) {
        struct topic *p =
            reply_is_text(&r->element[i]) ? topics_find_key(&e->topics, r->element[i].text) : NULL;
        if (p != NULL)
            messages_hint(e, topics_first(p));
    }
}

/* A question on the connection for commands, since messages may get lost. With the script's text:
 * it is rare enough not to care whether the server knows it. */
static void ask(struct subscriber *e, const char *const *mutex, size_t count)
{
    struct redis_connection *c = e->commands;
    if (count == 0 || c->state != CONNECTION_READY)
        return;
    struct buffer *b = connection_command(c, (struct redis_command){.take = on_absent, .about = e});
    if (b == NULL)
        return;
    scripts_call(b, SCRIPT_ABSENT, true, count);
    for (size_t i = 0; i < count; i++)
        scripts_keys(b, SCRIPT_ABSENT, mutex[i]);
}

static void ask_which_are_free(struct subscriber *e)
{
    const char *mutex[GROUP_MAX];
    size_t count = 0;
    for (struct topic *p = topics_next(&e->topics, NULL); p != NULL;
         p = topics_next(&e->topics, p)) {
        if (topics_first(p) != NULL)
            mutex[count++] = p->mutex;
        if (count == GROUP_MAX) {
            ask(e, mutex, count);
            count = 0;
        }
    }
    ask(e, mutex, count);
}

static void on_upkeep(uv_timer_t *timer)
{
    struct subscriber *e = timer->data;
    topics_sweep(&e->topics);
    if (e->topics.by_mutex.count == 0 && !observes_all(e) && e->trial.over == NULL &&
        e->owns_until < simba_now()) {
        e->receives_evictions = false;
        connection_shut(&e->connection);
        return;
    }
    ask_which_are_free(e);
    if (e->connection.state == CONNECTION_READY && e->connection.unanswered == 0)
        send_ping(e);
    connection_flush(e->connection.net);
    handles_start_timer(&e->upkeep, on_upkeep, UPKEEP_MS);
}

/* ---- from outside -------------------------------------------------------------------------- */

void subscriber_waits(struct subscriber *e, const char *mutex, const char *id, const char *score,
                      int64_t rank)
{
    open_connection(e);
    struct topic_waiter *w = topics_make_waiter(&e->topics, mutex, id);
    if (w == NULL)
        return; /* without memory it waits for the end of the lease */
    if (w->score[0] == '\0')
        snprintf(w->score, sizeof w->score, "%s", score);
    w->waits = true;
    w->rank = rank;
}

void subscriber_is_reserved(struct subscriber *e, const char *mutex, int64_t left_ms)
{
    struct topic *p = topics_find(&e->topics, mutex);
    if (p != NULL)
        messages_ask_later(e, p, left_ms, left_ms + RESERVED_LATER_MS);
}

static void end_wait(struct subscriber *e, struct topic_waiter *w)
{
    if (w == NULL || !w->waits)
        return;
    w->waits = false;
    w->score[0] = '\0';
    w->row = w->topic->row;
    w->idle_since = simba_now();
    topics_stop(&e->topics, w->topic);
}

void subscriber_ends(struct subscriber *e, const char *mutex, const char *id)
{
    end_wait(e, topics_waiter(&e->topics, mutex, id));
}

/* The message that it is free may be here before the answer that it was not: so who asks is counted
 * as one who waits, and as the first, if it can hear already. */
const char *subscriber_asks(struct subscriber *e, const char *mutex, const char *id)
{
    struct topic_waiter *w = topics_waiter(&e->topics, mutex, id);
    if (w == NULL)
        return "";
    if (!w->waits) {
        w->waits = true;
        w->rank = 0;
    }
    return w->score;
}

bool subscriber_overtakes(const struct subscriber *e, const char *mutex, const char *id)
{
    const struct topic_waiter *w = topics_waiter(&e->topics, mutex, id);
    return w != NULL && w->row != w->topic->row && simba_now() - w->topic->row_began < ROW_MAX_MS;
}

void subscriber_interest(struct subscriber *e, const char *mutex, enum simba_interest interest)
{
    bool observes = interest == SIMBA_OBSERVES;
    struct topic *p = NULL;
    if (observes)
        open_connection(e);
    if (mutex == NULL)
        topics_say(&e->topics, observes ? "PSUBSCRIBE" : "PUNSUBSCRIBE", ALL);
    else
        p = observes ? topics_make(&e->topics, mutex) : topics_find(&e->topics, mutex);
    if (p != NULL && interest == SIMBA_NO_INTEREST) {
        for (struct topic_waiter *w = p->waiters; w != NULL; w = w->next)
            end_wait(e, w);
    }
    connection_flush(e->connection.net);
}

void subscriber_renewed(struct subscriber *e, int64_t lease_ms)
{
    e->owns_until = simba_now() + lease_ms;
    open_connection(e);
}

void subscriber_granted(struct subscriber *e, const char *mutex, const char *id, int64_t lease_ms)
{
    subscriber_ends(e, mutex, id);
    subscriber_renewed(e, lease_ms);
    if (!e->receives_evictions && e->granted_count < GRANTED_MAX)
        snprintf(e->granted[e->granted_count++], sizeof e->granted[0], "%s", mutex);
}

void subscriber_init(struct subscriber *e, struct redis_network *net,
                     struct redis_connection *commands)
{
    e->host = net->host;
    e->commands = commands;
    e->rng = rng_seed();
    connection_init(&e->connection, net, &use, e);
    handles_add_timer(&net->handles, &e->upkeep, e);
    handles_add_timer(&net->handles, &e->alarm, e);
}

void subscriber_close(struct subscriber *e)
{
    connection_close(&e->connection);
    handles_close(&e->connection.net->handles, &e->upkeep);
    handles_close(&e->connection.net->handles, &e->alarm);
}
