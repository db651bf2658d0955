/* sentinel.c: see sentinel.h. */
#include "backend/redis/sentinel.h"

#include <stdio.h>
#include <string.h>

#include "backend/redis/errors.h"

static void ask_next(struct sentinel *s, const char *why)
{
    const struct config *config = s->connection.net->config;
    if (s->commands->state != CONNECTION_FINDING)
        return;
    if (s->asked == config->sentinels && s->has_answer) {
        connection_fail(s->commands, SIMBA_ESTORE, "no sentinel knows the master '%.64s': %.200s",
                        config->master, s->why);
        return;
    }
    if (s->asked == config->sentinels) {
        connection_fail(s->commands, SIMBA_ESTORE, "no sentinel can be asked: %.280s", why);
        return;
    }
    s->asked++;
    s->at = (s->at + 1) % config->sentinels;
    connection_open(&s->connection);
}

void sentinel_ask(struct sentinel *s)
{
    connection_shut(&s->connection);
    s->asked = 0;
    s->has_answer = false;
    ask_next(s, "");
}

static void find(void *data)
{
    struct sentinel *s = data;
    connection_go(&s->connection, &s->connection.net->config->sentinel[s->at]);
}

/* Each failover has a greater config-epoch. A server that was replaced, and is the master again
 * before it could be made a replica, does not know of it: only this number tells. */
static int64_t term_in(const struct reply *r)
{
    uint64_t term;
    for (size_t i = 0; i + 1 < r->elements; i += 2) {
        if (reply_equals(reply_at(r, i), "config-epoch") && reply_digits(reply_at(r, i + 1), &term))
            return term <= (uint64_t)TERM_MAX ? (int64_t)term : 0;
    }
    return 0;
}

static void on_term(void *data, const struct command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    (void)sent;
    if (r != NULL)
        s->connection.net->term = term_in(r);
}

static void on_master(void *data, const struct command *sent, const struct reply *r)
{
    struct sentinel *s = data;
    (void)sent;
    if (r == NULL)
        return; /* on_down() follows */
    const struct reply *host = reply_at(r, 0);
    struct address master = {.host = ""};
    uint64_t port;
    char why[CONNECTION_TEXT_MAX];
    snprintf(why, sizeof why, "%.100s:%d has no master of that name", s->connection.address.host,
             s->connection.address.port);
    bool found = r->kind == REPLY_ARRAY && reply_is_text(host) && host->length > 0 &&
                 host->length < sizeof master.host && reply_digits(reply_at(r, 1), &port) &&
                 port > 0 && port < 65536;
    if (r->kind == REPLY_ERROR)
        errors_describe(r, why, sizeof why);
    if (found) {
        memcpy(master.host, host->text, host->length + 1);
        master.port = (int)port;
    }
    connection_shut(&s->connection);
    if (found && s->commands->state == CONNECTION_FINDING)
        connection_go(s->commands, &master);
    else {
        s->has_answer = true;
        memcpy(s->why, why, sizeof s->why);
        ask_next(s, why);
    }
}

static void ask(struct sentinel *s, const char *question, command_fn *take)
{
    struct buffer *b = connection_command(&s->connection, (struct command){.take = take});
    if (b != NULL)
        resp_command(b, "SENTINEL", question, s->connection.net->config->master);
}

static void on_ready(void *data)
{
    struct sentinel *s = data;
    ask(s, "MASTER", on_term);
    ask(s, "get-master-addr-by-name", on_master);
    connection_flush(s->connection.net);
}

static void on_down(void *data)
{
    struct sentinel *s = data;
    ask_next(s, s->connection.why);
}

static const struct connection_use use = {
    .is_sentinel = true,
    .find = find,
    .ready = on_ready,
    .down = on_down,
};

void sentinel_init(struct sentinel *s, struct network *net, struct connection *commands)
{
    connection_init(&s->connection, net, &use, s);
    s->commands = commands;
    s->at = net->config->sentinels > 0 ? net->config->sentinels - 1 : 0;
}
