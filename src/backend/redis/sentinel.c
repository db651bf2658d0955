/* sentinel.c: see sentinel.h. */
#include "backend/redis/sentinel.h"

#include <stdio.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/votes.h"

#define TERM_UNKNOWN (-1)

/* ---- what comes of them -------------------------------------------------------------------- */

bool sentinels_confirm(const struct sentinels *a, const struct redis_command *sent)
{
    return votes_count(a, &a->commands->address, a->commands->net->term, sent->round,
                       sent->vouched_ms) >= votes_needed(a);
}

/* best: a sentinel whose master has the most votes; NULL: none names any in the latest term. */
static void fail_to_find(struct sentinels *a, const struct sentinel *best, size_t count)
{
    const char *master = a->commands->net->config->master;
    char objection[CONNECTION_TEXT_MAX];
    bool has_answered = false, is_named = false;
    for (size_t i = 0; i < a->count; i++) {
        has_answered = has_answered || a->each[i].answered >= a->since;
        is_named = is_named || (a->each[i].answered > 0 && a->each[i].named.host[0] != '\0');
    }
    votes_object(a, 0, objection, sizeof objection);
    if (best != NULL)
        connection_fail(a->commands, SIMBA_ESTORE,
                        "%zu of %zu sentinels name %.60s:%d as the master, and %zu have to: %.180s",
                        count, votes_known(a), best->named.host, best->named.port, votes_needed(a),
                        objection);
    else if (is_named)
        connection_fail(a->commands, SIMBA_ESTORE,
                        "no sentinel that answers knows of the last failover: %.240s", objection);
    else if (has_answered)
        connection_fail(a->commands, SIMBA_ESTORE, "no sentinel knows the master '%.64s': %.200s",
                        master, objection);
    else
        connection_fail(a->commands, SIMBA_ESTORE, "no sentinel can be asked: %.280s", objection);
}

/* One whose master has the most votes, of those that have answered in that round; NULL: nobody names any. */
static const struct sentinel *find_best(const struct sentinels *a, uint64_t round, size_t *most)
{
    const struct sentinel *best = NULL;
    *most = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct sentinel *s = &a->each[i];
        size_t count = s->answered >= round ? votes_count(a, &s->named, s->term, round, 0) : 0;
        if (count > *most) {
            *most = count;
            best = s;
        }
    }
    return best;
}

static void find(struct sentinels *a)
{
    size_t most;
    const struct sentinel *best = find_best(a, a->since, &most);
    if (most > 0 && most >= votes_needed(a)) {
        a->commands->net->term = best->term;
        connection_go(a->commands, &best->named);
    } else if (most + votes_awaited(a, a->since) < votes_needed(a)) {
        if (best ==
            NULL) /* they have not all answered yet, and would be too few: as they said before */
            best = find_best(a, 1, &most);
        fail_to_find(a, best, most);
    }
}

void sentinels_doubt(struct sentinels *a)
{
    struct redis_connection *c = a->commands;
    const struct redis_command *sent = connection_in_round(c);
    char objection[CONNECTION_TEXT_MAX];
    if (sent == NULL)
        return;
    size_t count = votes_count(a, &c->address, c->net->term, sent->round, sent->vouched_ms);
    bool is_over = c->net->term < a->latest;
    if (!is_over && count + votes_awaited(a, sent->round) >= votes_needed(a))
        return;
    votes_object(a, sent->vouched_ms, objection, sizeof objection);
    if (is_over)
        connection_fail(c, SIMBA_ESTORE,
                        "a sentinel knows of a later failover than the one to %.60s:%d",
                        c->address.host, c->address.port);
    else
        connection_fail(c, SIMBA_ESTORE,
                        "%zu of %zu sentinels still name %.60s:%d as the master, and %zu have to: "
                        "%.180s",
                        count, votes_known(a), c->address.host, c->address.port, votes_needed(a),
                        objection);
}

/* Something may be decided by now: who is the master, or whether a reply of it counts. */
static void decide(struct sentinels *a)
{
    struct redis_connection *c = a->commands;
    const struct redis_command *sent = connection_in_round(c);
    if (a->is_asking)
        return;
    if (c->state == CONNECTION_FINDING)
        find(a);
    else if (sent != NULL && sentinels_confirm(a, sent))
        connection_continue(c);
    else
        sentinels_doubt(a);
}

/* ---- who it is ------------------------------------------------------------------------------ */

/* Another address of the URL that leads to the same one. */
static const struct sentinel *find_same(const struct sentinel *s)
{
    for (size_t i = 0; i < s->all->count; i++) {
        const struct sentinel *other = &s->all->each[i];
        if (other != s && other->is_identified && strcmp(other->id, s->id) == 0)
            return other;
    }
    return NULL;
}

static void identify(struct sentinel *s)
{
    char why[CONNECTION_TEXT_MAX];
    if (strcmp(s->id, s->said_id) != 0)
        s->named = (struct redis_address){.host = ""};
    memcpy(s->id, s->said_id, sizeof s->id);
    s->same_as = find_same(s);
    s->is_identified = s->same_as == NULL;
    if (s->is_identified)
        return;
    s->named = (struct redis_address){.host = ""}; /* it has one vote */
    votes_say_same(s, why, sizeof why);
    connection_fail(&s->connection, SIMBA_EINVAL, "%s", why);
}

static void on_id(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    (void)sent;
    s->said_id[0] = '\0';
    if (r != NULL && reply_is_text(r) && r->length < sizeof s->said_id)
        memcpy(s->said_id, r->text, r->length + 1);
}

static void on_info(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    struct info info;
    char why[CONNECTION_TEXT_MAX] = "what answers there is no sentinel";
    (void)sent;
    if (r == NULL)
        return; /* on_down() follows */
    if (r->kind == REPLY_ERROR)
        errors_describe(r, why, sizeof why);
    if (reply_is_text(r) && info_parse_process(&info, r->text) && s->said_id[0] == '\0')
        memcpy(s->said_id, info.run_id, sizeof info.run_id); /* before Redis 6.2 */
    if (s->said_id[0] != '\0')
        identify(s);
    else
        connection_fail(&s->connection, SIMBA_EDENIED, "%.60s:%d does not say who it is: %.160s",
                        s->address->host, s->address->port, why);
}

static void greet(void *data)
{
    struct sentinel *s = data;
    struct buffer *b = connection_command(&s->connection, (struct redis_command){.take = on_id});
    if (b != NULL)
        resp_command(b, "SENTINEL", "MYID", NULL);
    b = connection_command(&s->connection, (struct redis_command){.take = on_info});
    if (b != NULL)
        resp_command(b, "INFO", "server", NULL);
}

/* ---- what it says --------------------------------------------------------------------------- */

/* False: the reply has none there. */
static bool read_address(struct redis_address *out, const struct reply *host,
                         const struct reply *port)
{
    uint64_t number;
    *out = (struct redis_address){.host = ""};
    if (!reply_is_text(host) || host->length == 0 || host->length >= sizeof out->host ||
        !reply_digits(port, &number) || number == 0 || number > 65535)
        return false;
    memcpy(out->host, host->text, host->length + 1);
    out->port = (int)number;
    return true;
}

/* The value that follows the name in a list of both. */
static const struct reply *value_of(const struct reply *r, const char *name)
{
    size_t i = 0;
    while (i + 1 < r->elements && !reply_equals(reply_at(r, i), name))
        i += 2;
    return reply_at(r, i + 1); /* if there is none, a reply of no kind */
}

static int64_t number_of(const struct reply *r, const char *name, int64_t otherwise)
{
    uint64_t number;
    bool is_one = reply_digits(value_of(r, name), &number) && number <= (uint64_t)TERM_MAX;
    return is_one ? (int64_t)number : otherwise;
}

static void on_state(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    (void)sent;
    if (r == NULL)
        return; /* on_down() follows */
    snprintf(s->why, sizeof s->why, "%.100s:%d does not say the term", s->address->host,
             s->address->port);
    if (r->kind == REPLY_ERROR)
        errors_describe(r, s->why, sizeof s->why);
    s->term = number_of(r, "config-epoch", TERM_UNKNOWN);
    s->others = number_of(r, "num-other-sentinels", 0);
    /* Begins anew when it starts, and when it turns to another master. */
    s->named_since = simba_now() - number_of(r, "role-reported-time", 0);
    read_address(&s->listed, value_of(r, "ip"), value_of(r, "port"));
}

static void on_master(void *data, const struct redis_command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    if (r == NULL)
        return; /* on_down() follows */
    s->answered = sent->round;
    bool is_named = read_address(&s->named, reply_at(r, 0), reply_at(r, 1));
    if (r->kind == REPLY_ERROR)
        errors_describe(r, s->why, sizeof s->why);
    else if (!is_named)
        snprintf(s->why, sizeof s->why, "%.100s:%d has no master of that name", s->address->host,
                 s->address->port);
    else if (s->term == TERM_UNKNOWN)
        s->named.host[0] = '\0';
    else if (s->term > s->all->latest)
        s->all->latest = s->term;
    /* The leader of a failover lists the old master until all replicas follow the new one. */
    if (s->named.port != s->listed.port || strcmp(s->named.host, s->listed.host) != 0)
        s->named_since = simba_now();
}

static void ask(struct sentinel *s, const char *question, command_fn *take)
{
    struct buffer *b = connection_command(
        &s->connection, (struct redis_command){.take = take, .round = s->all->round});
    if (b != NULL)
        resp_command(b, "SENTINEL", question, s->connection.net->config->master);
}

static void ask_one(struct sentinel *s)
{
    ask(s, "MASTER", on_state);
    ask(s, "get-master-addr-by-name", on_master);
}

static void find_one(void *data)
{
    struct sentinel *s = data;
    connection_go(&s->connection, s->address);
}

static void on_ready(void *data)
{
    struct sentinel *s = data;
    ask_one(s);
    connection_flush(s->connection.net);
}

static void on_change(void *data)
{
    decide(((struct sentinel *)data)->all);
}

static void on_down(void *data)
{
    struct sentinel *s = data;
    s->is_identified = false;
    s->answered = 0; /* whoever is there next answers for itself */
    decide(s->all);
}

static const struct connection_use use = {
    .is_sentinel = true,
    .greet = greet,
    .find = find_one,
    .ready = on_ready,
    .taken = on_change,
    .down = on_down,
};

/* ---- all of them --------------------------------------------------------------------------- */

uint64_t sentinels_ask(struct sentinels *a)
{
    if (a->count == 0)
        return 0;
    a->round++;
    a->is_asking = true;
    for (size_t i = 0; i < a->count; i++) {
        if (a->each[i].connection.state == CONNECTION_READY)
            ask_one(&a->each[i]);
        else
            connection_open(&a->each[i].connection);
    }
    a->is_asking = false;
    return a->round;
}

void sentinels_find(struct sentinels *a)
{
    a->is_asking = true;
    for (size_t i = 0; i < a->count; i++)
        connection_hurry(&a->each[i].connection);
    a->since = sentinels_ask(a);
    connection_flush(a->commands->net);
    decide(a);
}

bool sentinels_are_steady(const struct sentinels *a)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!connection_is_steady(&a->each[i].connection))
            return false;
    }
    return true;
}

void sentinels_init(struct sentinels *a, struct redis_network *net,
                    struct redis_connection *commands)
{
    a->commands = commands;
    a->count = net->config->sentinels;
    for (size_t i = 0; i < a->count; i++) {
        a->each[i].all = a;
        a->each[i].address = &net->config->sentinel[i];
        connection_init(&a->each[i].connection, net, &use, &a->each[i]);
    }
}

void sentinels_close(struct sentinels *a)
{
    for (size_t i = 0; i < a->count; i++)
        connection_close(&a->each[i].connection);
}
