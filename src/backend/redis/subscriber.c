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

static bool observes_all(const struct subscriber *sub)
{
    return sub->host->interest(sub->host, "") == SIMBA_OBSERVES;
}

/* ---- the connection ------------------------------------------------------------------------ */

static void on_upkeep(uv_timer_t *timer);

static void open_connection(struct subscriber *sub)
{
    if (sub->connection.wanted)
        return;
    connection_open(&sub->connection);
    handles_start_timer(&sub->upkeep, on_upkeep, UPKEEP_MS);
}

static void on_error(struct subscriber *sub, const struct reply *r)
{
    char why[CONNECTION_TEXT_MAX], line[CONNECTION_TEXT_MAX + 64];
    if (sub->trial.over != NULL)
        sub->trial.denied(sub->trial.data, r);
    if (sub->was_denied)
        return;
    errors_describe(r, why, sizeof why);
    snprintf(line, sizeof line, "cannot subscribe, so waiters poll: %s", why);
    sub->host->log(sub->host, SIMBA_LOG_WARN, line);
    sub->was_denied = true;
}

static void end_trial(struct subscriber *sub)
{
    struct subscriber_trial trial = sub->trial;
    sub->trial.over = NULL;
    if (trial.over != NULL)
        trial.over(trial.data);
}

/* What is tried was sent before it. */
static void on_pong(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct subscriber *sub = data;
    (void)sent;
    if (r != NULL && sub->connection.unanswered == 0)
        end_trial(sub);
}

static void send_ping(struct subscriber *sub)
{
    struct buffer *b =
        connection_command(&sub->connection, (struct redis_command){.take = on_pong});
    if (b != NULL)
        resp_command(b, "PING");
}

static void send_trial(struct subscriber *sub)
{
    topics_say(&sub->topics, "SUBSCRIBE", RIGHTS);
    topics_say(&sub->topics, "UNSUBSCRIBE", RIGHTS);
    if (!observes_all(sub)) { /* else it has been tried */
        topics_say(&sub->topics, "PSUBSCRIBE", ALL);
        topics_say(&sub->topics, "PUNSUBSCRIBE", ALL);
    }
    send_ping(sub);
}

void subscriber_try(struct subscriber *sub, const struct subscriber_trial *trial)
{
    sub->trial = *trial;
    open_connection(sub);
    if (sub->connection.state == CONNECTION_READY)
        send_trial(sub);
    connection_flush(sub->connection.net);
}

static void on_ready(void *data)
{
    struct subscriber *sub = data;
    sub->was_denied = false;
    topics_connected(&sub->topics);
    topics_say(&sub->topics, "SUBSCRIBE", MESSAGES_EVICTIONS);
    if (observes_all(sub))
        topics_say(&sub->topics, "PSUBSCRIBE", ALL);
    if (sub->trial.over != NULL)
        send_trial(sub);
    connection_flush(sub->connection.net);
}

static void on_down(void *data)
{
    struct subscriber *sub = data;
    topics_disconnected(&sub->topics);
    sub->receives_evictions = false;
    end_trial(sub);
}

static void on_push(void *data, const struct reply *r)
{
    struct subscriber *sub = data;
    bool is_pong = reply_equals(reply_at(r, 0), "pong") || reply_equals(r, "PONG");
    if (r->kind == REPLY_ERROR)
        on_error(sub, r);
    else if (!is_pong)
        messages_take(sub, r);
    else if (sub->connection.unanswered > 0)
        connection_answered(&sub->connection, r);
}

static void find_server(void *data)
{
    struct subscriber *sub = data;
    if (sub->commands->state == CONNECTION_READY)
        connection_go(&sub->connection, &sub->commands->address);
    else
        connection_fail(&sub->connection, SIMBA_ESTORE, "the connection for commands is down");
}

/* It listens to the server that is talked to, also after a failover that the old one survived. */
void subscriber_follow(struct subscriber *sub)
{
    const struct redis_address *now = &sub->commands->address, *before = &sub->connection.address;
    bool moved = strcmp(now->host, before->host) != 0 || now->port != before->port;
    if (!sub->connection.wanted)
        return;
    if (moved && sub->connection.state != CONNECTION_DOWN) {
        on_down(sub);
        connection_shut(&sub->connection);
    }
    connection_hurry(&sub->connection);
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
    struct subscriber *sub = sent->about;
    (void)data;
    if (r == NULL || r->kind == REPLY_ERROR)
        return;
    if (r->kind != REPLY_ARRAY)
        connection_fail(sub->commands, SIMBA_ESTORE, "an answer of the server makes no sense");
    for (size_t i = 0; i < r->elements; i++) {
        struct topic *topic = reply_is_text(&r->element[i])
                                  ? topics_find_key(&sub->topics, r->element[i].text)
                                  : NULL;
        if (topic != NULL)
            messages_hint(sub, topics_first(topic));
    }
}

/* A question on the connection for commands, since messages may get lost. With the script's text:
 * it is rare enough not to care whether the server knows it. */
static void ask(struct subscriber *sub, const char *const *mutex, size_t count)
{
    struct redis_connection *c = sub->commands;
    if (count == 0 || c->state != CONNECTION_READY)
        return;
    struct buffer *b =
        connection_command(c, (struct redis_command){.take = on_absent, .about = sub});
    if (b == NULL)
        return;
    scripts_call(b, SCRIPT_ABSENT, true, count);
    for (size_t i = 0; i < count; i++)
        scripts_keys(b, SCRIPT_ABSENT, mutex[i]);
}

static void ask_which_are_free(struct subscriber *sub)
{
    const char *mutex[GROUP_MAX];
    size_t count = 0;
    for (struct topic *topic = topics_next(&sub->topics, NULL); topic != NULL;
         topic = topics_next(&sub->topics, topic)) {
        if (topics_first(topic) != NULL)
            mutex[count++] = topic->mutex;
        if (count == GROUP_MAX) {
            ask(sub, mutex, count);
            count = 0;
        }
    }
    ask(sub, mutex, count);
}

static void on_upkeep(uv_timer_t *timer)
{
    struct subscriber *sub = timer->data;
    topics_sweep(&sub->topics);
    if (sub->topics.by_mutex.count == 0 && !observes_all(sub) && sub->trial.over == NULL &&
        sub->owns_until < simba_now()) {
        sub->receives_evictions = false;
        connection_shut(&sub->connection);
        return;
    }
    ask_which_are_free(sub);
    if (sub->connection.state == CONNECTION_READY && sub->connection.unanswered == 0)
        send_ping(sub);
    connection_flush(sub->connection.net);
    handles_start_timer(&sub->upkeep, on_upkeep, UPKEEP_MS);
}

/* ---- from outside -------------------------------------------------------------------------- */

void subscriber_waits(struct subscriber *sub, const char *mutex, const char *id, const char *score,
                      int64_t rank)
{
    open_connection(sub);
    struct topic_waiter *w = topics_make_waiter(&sub->topics, mutex, id);
    if (w == NULL)
        return; /* without memory it waits for the end of the lease */
    if (w->score[0] == '\0')
        snprintf(w->score, sizeof w->score, "%s", score);
    w->waits = true;
    w->rank = rank;
}

void subscriber_is_reserved(struct subscriber *sub, const char *mutex, int64_t left_ms)
{
    struct topic *topic = topics_find(&sub->topics, mutex);
    if (topic != NULL)
        messages_ask_later(sub, topic, left_ms, left_ms + RESERVED_LATER_MS);
}

static void end_wait(struct subscriber *sub, struct topic_waiter *w)
{
    if (w == NULL || !w->waits)
        return;
    w->waits = false;
    w->score[0] = '\0';
    w->row = w->topic->row;
    w->idle_since = simba_now();
    topics_stop(&sub->topics, w->topic);
}

void subscriber_ends(struct subscriber *sub, const char *mutex, const char *id)
{
    end_wait(sub, topics_waiter(&sub->topics, mutex, id));
}

/* The message that it is free may be here before the answer that it was not: so who asks is counted
 * as one who waits, and as the first, if it can hear already. */
const char *subscriber_asks(struct subscriber *sub, const char *mutex, const char *id)
{
    struct topic_waiter *w = topics_waiter(&sub->topics, mutex, id);
    if (w == NULL)
        return "";
    if (!w->waits) {
        w->waits = true;
        w->rank = 0;
    }
    return w->score;
}

bool subscriber_overtakes(const struct subscriber *sub, const char *mutex, const char *id)
{
    const struct topic_waiter *w = topics_waiter(&sub->topics, mutex, id);
    return w != NULL && w->row != w->topic->row && simba_now() - w->topic->row_began < ROW_MAX_MS;
}

void subscriber_interest(struct subscriber *sub, const char *mutex, enum simba_interest interest)
{
    bool observes = interest == SIMBA_OBSERVES;
    struct topic *topic = NULL;
    if (observes)
        open_connection(sub);
    if (mutex == NULL)
        topics_say(&sub->topics, observes ? "PSUBSCRIBE" : "PUNSUBSCRIBE", ALL);
    else
        topic = observes ? topics_make(&sub->topics, mutex) : topics_find(&sub->topics, mutex);
    if (topic != NULL && interest == SIMBA_NO_INTEREST) {
        for (struct topic_waiter *w = topic->waiters; w != NULL; w = w->next)
            end_wait(sub, w);
    }
    connection_flush(sub->connection.net);
}

void subscriber_renewed(struct subscriber *sub, int64_t lease_ms)
{
    sub->owns_until = simba_now() + lease_ms;
    open_connection(sub);
}

void subscriber_granted(struct subscriber *sub, const char *mutex, const char *id, int64_t lease_ms)
{
    subscriber_ends(sub, mutex, id);
    subscriber_renewed(sub, lease_ms);
    if (!sub->receives_evictions && sub->granted_count < GRANTED_MAX)
        snprintf(sub->granted[sub->granted_count++], sizeof sub->granted[0], "%s", mutex);
}

void subscriber_init(struct subscriber *sub, struct redis_network *net,
                     struct redis_connection *commands)
{
    sub->host = net->host;
    sub->commands = commands;
    sub->rng = rng_seed();
    connection_init(&sub->connection, net, &use, sub);
    handles_add_timer(&net->handles, &sub->upkeep, sub);
    handles_add_timer(&net->handles, &sub->alarm, sub);
}

void subscriber_close(struct subscriber *sub)
{
    connection_close(&sub->connection);
    handles_close(&sub->connection.net->handles, &sub->upkeep);
    handles_close(&sub->connection.net->handles, &sub->alarm);
}
