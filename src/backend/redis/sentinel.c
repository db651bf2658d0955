/* sentinel.c: see sentinel.h. */
#include "backend/redis/sentinel.h"

#include <stdio.h>
#include <string.h>

#include "backend/redis/errors.h"

/* ---- votes --------------------------------------------------------------------------------- */

static size_t known(const struct sentinels *a)
{
    size_t most = a->count;
    for (size_t i = 0; i < a->count; i++) {
        size_t here = (size_t)a->each[i].others + 1;
        most = here > most ? here : most;
    }
    return most;
}

/* A majority of all that are known; as far as the URL names so many. */
static size_t needed(const struct sentinels *a)
{
    size_t majority = known(a) / 2 + 1;
    return majority < a->count ? majority : a->count;
}

static bool names(const struct sentinel *s, const struct address *master, int64_t term)
{
    return s->named.host[0] != '\0' && s->named.port == master->port && s->term == term &&
           strcmp(s->named.host, master->host) == 0;
}

/* How many name that master, in an answer of that round or a later one. */
static size_t votes(const struct sentinels *a, const struct address *master, int64_t term,
                    uint64_t round)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        count += a->each[i].answered >= round && names(&a->each[i], master, term);
    return count;
}

/* How many may still answer in that round. */
static size_t awaited(const struct sentinels *a, uint64_t round)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        count += a->each[i].answered < round && a->each[i].connection.state != CONNECTION_DOWN;
    return count;
}

bool sentinels_confirm(const struct sentinels *a, uint64_t round)
{
    return votes(a, &a->commands->address, a->commands->net->term, round) >= needed(a);
}

/* ---- what comes of them -------------------------------------------------------------------- */

/* Why too few of them name a master. */
static const char *objection(const struct sentinels *a)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct sentinel *s = &a->each[i];
        if (s->connection.state == CONNECTION_DOWN && s->connection.why[0] != '\0')
            return s->connection.why;
        if (s->named.host[0] == '\0' && s->why[0] != '\0')
            return s->why;
    }
    return "others name another server, or a later failover";
}

/* best: a sentinel whose master has the most votes; NULL: none names any. */
static void fail_to_find(struct sentinels *a, const struct sentinel *best, size_t count)
{
    const char *master = a->commands->net->config->master;
    bool is_unknown = false;
    for (size_t i = 0; i < a->count; i++)
        is_unknown = is_unknown || a->each[i].answered >= a->since;
    if (best != NULL)
        connection_fail(a->commands, SIMBA_ESTORE,
                        "%zu of %zu sentinels name %.60s:%d as the master, and %zu have to: %.120s",
                        count, known(a), best->named.host, best->named.port, needed(a),
                        objection(a));
    else if (is_unknown)
        connection_fail(a->commands, SIMBA_ESTORE, "no sentinel knows the master '%.64s': %.200s",
                        master, objection(a));
    else
        connection_fail(a->commands, SIMBA_ESTORE, "no sentinel can be asked: %.280s",
                        objection(a));
}

static void find(struct sentinels *a)
{
    const struct sentinel *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct sentinel *s = &a->each[i];
        size_t count = s->answered >= a->since ? votes(a, &s->named, s->term, a->since) : 0;
        if (count > most) {
            most = count;
            best = s;
        }
    }
    if (most > 0 && most >= needed(a)) {
        a->commands->net->term = best->term;
        connection_go(a->commands, &best->named);
    } else if (most + awaited(a, a->since) < needed(a)) {
        fail_to_find(a, best, most);
    }
}

void sentinels_doubt(struct sentinels *a)
{
    struct connection *c = a->commands;
    const struct address *master = &c->address;
    uint64_t round = connection_round(c);
    if (round == 0)
        return;
    size_t count = votes(a, master, c->net->term, round);
    if (count + awaited(a, round) < needed(a))
        connection_fail(c, SIMBA_ESTORE,
                        "%zu of %zu sentinels still name %.60s:%d as the master, and %zu have to: "
                        "%.120s",
                        count, known(a), master->host, master->port, needed(a), objection(a));
}

/* Something may be decided by now: who is the master, or whether a reply of it counts. */
static void decide(struct sentinels *a)
{
    struct connection *c = a->commands;
    uint64_t round = connection_round(c);
    if (a->is_asking)
        return;
    if (c->state == CONNECTION_FINDING)
        find(a);
    else if (round > 0 && sentinels_confirm(a, round))
        connection_continue(c);
    else
        sentinels_doubt(a);
}

/* ---- one of them --------------------------------------------------------------------------- */

static void on_state(void *data, const struct command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    uint64_t number;
    (void)sent;
    s->term = s->others = 0;
    for (size_t i = 0; r != NULL && i + 1 < r->elements; i += 2) {
        const struct reply *name = reply_at(r, i);
        if (!reply_digits(reply_at(r, i + 1), &number) || number > (uint64_t)TERM_MAX)
            continue;
        if (reply_equals(name, "config-epoch"))
            s->term = (int64_t)number;
        else if (reply_equals(name, "num-other-sentinels"))
            s->others = (int64_t)number;
    }
}

static void on_master(void *data, const struct command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    uint64_t port;
    if (r == NULL)
        return; /* on_down() follows */
    const struct reply *host = reply_at(r, 0);
    s->answered = sent->round;
    s->named = (struct address){.host = ""};
    snprintf(s->why, sizeof s->why, "%.100s:%d has no master of that name", s->address->host,
             s->address->port);
    if (r->kind == REPLY_ERROR)
        errors_describe(r, s->why, sizeof s->why);
    if (r->kind == REPLY_ARRAY && reply_is_text(host) && host->length > 0 &&
        host->length < sizeof s->named.host && reply_digits(reply_at(r, 1), &port) && port > 0 &&
        port < 65536) {
        memcpy(s->named.host, host->text, host->length + 1);
        s->named.port = (int)port;
    }
}

static void ask(struct sentinel *s, const char *question, command_fn *take)
{
    struct buffer *b =
        connection_command(&s->connection, (struct command){.take = take, .round = s->all->round});
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

static const struct connection_use use = {
    .is_sentinel = true,
    .find = find_one,
    .ready = on_ready,
    .taken = on_change,
    .down = on_change,
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

bool sentinels_warn(const struct sentinels *a, char *line, size_t size)
{
    size_t all = known(a), majority = all / 2 + 1;
    if (a->count == 0 || a->count >= majority)
        return false;
    snprintf(line, size,
             "the URL names %zu of %zu sentinels: after a failover two may own a mutex until these "
             "hear of it. Name all of them, or %zu at least",
             a->count, all, majority);
    return true;
}

bool sentinels_are_steady(const struct sentinels *a)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!connection_is_steady(&a->each[i].connection))
            return false;
    }
    return true;
}

void sentinels_init(struct sentinels *a, struct network *net, struct connection *commands)
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
