/* handshake.c: see handshake.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/redis/connection.h"
#include "backend/redis/errors.h"
#include "backend/redis/scripts.h"

static struct buffer *command(struct redis_connection *c, command_fn *take)
{
    return connection_command(c, (struct redis_command){.take = take, .about = c});
}

/* True: the connection has failed, or fails by this error: the server cannot be used. code: of an error
 * that says no more; 0: ESTORE. */
static bool is_refused(struct redis_connection *c, const struct reply *r, int code)
{
    char why[CONNECTION_TEXT_MAX];
    if (r == NULL)
        return true;
    if (r->kind != REPLY_ERROR)
        return false;
    int described = errors_describe(r, why, sizeof why);
    connection_fail(c, code != 0 && described == SIMBA_ESTORE ? code : described, "%s", why);
    return true;
}

/* ---- the epoch ----------------------------------------------------------------------------- */

/* RUN ID:REPLICATION ID:, as a note of the current epoch begins. */
static void epoch_head(const struct redis_server *s, char head[EPOCH_NOTE_MAX])
{
    snprintf(head, EPOCH_NOTE_MAX, "%s:%s:", s->info.run_id, s->info.replid);
}

/* False: it is not a note of the current epoch. One from the future was made before the server's
 * clock was set back: it is made anew. One of an earlier term was made before this server was
 * replaced and named again. A later term is right: our sentinel is behind, or we ask none. One with
 * another number was made before this database was swapped with that one. */
static bool epoch_parse(const struct redis_connection *c, const struct reply *r, struct epoch *out)
{
    const struct redis_server *s = c->server;
    char head[EPOCH_NOTE_MAX], *end;
    epoch_head(s, head);
    size_t n = strlen(head);
    if (!reply_is_text(r) || r->length >= sizeof out->note || strncmp(r->text, head, n) != 0)
        return false;
    memcpy(out->note, r->text, r->length + 1);
    int64_t term = strtoll(r->text + n, &end, 10);
    int64_t db = *end == ':' ? strtoll(end + 1, &end, 10) : -1;
    int64_t since_us = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    out->age_ms = (s->time_us - since_us) / 1000;
    return *end == '\0' && term >= c->net->term && db == c->net->config->db && since_us > 0;
}

/* No reason not to read. */
static void refuse_writes(struct redis_server *s, int code, const char *why)
{
    s->epoch.note[0] = '\0';
    s->write_code = code;
    snprintf(s->write_why, sizeof s->write_why, "%s", why);
}

/* False: it is an error, and the server takes no writes. */
static bool takes_writes(struct redis_connection *c, const struct reply *r)
{
    char why[CONNECTION_TEXT_MAX];
    if (reply_is_error(r, "NOAUTH") && is_refused(c, r, 0))
        return false;
    if (r->kind == REPLY_ERROR) {
        int code = errors_describe(r, why, sizeof why);
        refuse_writes(c->server, code, why);
    }
    return r->kind != REPLY_ERROR;
}

static void on_epoch(void *data, const struct redis_command *sent, const struct reply *r)
{
    (void)data;
    struct redis_connection *c = sent->about;
    struct redis_server *s = c->server;
    if (r == NULL || !takes_writes(c, r))
        return;
    if (!epoch_parse(c, r, &s->epoch))
        refuse_writes(s, SIMBA_ESTORE, "an answer of the server makes no sense");
    else if (s->epoch.age_ms < 0)
        s->epoch.age_ms = 0;
}

/* A server that is in the epoch that we know, but has lost its note, was emptied. */
static void ask_epoch(struct redis_connection *c)
{
    struct redis_server *s = c->server;
    char head[EPOCH_NOTE_MAX];
    epoch_head(s, head);
    bool is_known = strncmp(s->epoch.note, head, strlen(head)) == 0;
    s->epoch.note[0] = '\0';
    struct buffer *out = command(c, on_epoch);
    if (out == NULL)
        return;
    scripts_call(out, SCRIPT_EPOCH, true, 0);
    resp_argument(out, s->info.run_id);
    resp_argument(out, s->info.replid);
    resp_number(out, c->net->config->db);
    resp_number(out, is_known || s->info.promoted ? 0 : s->info.uptime_ms);
    resp_number(out, c->net->term);
}

static void on_note(void *data, const struct redis_command *sent, const struct reply *r)
{
    (void)data;
    struct redis_connection *c = sent->about;
    struct redis_server *s = c->server;
    struct epoch found;
    char why[CONNECTION_TEXT_MAX];
    if (r == NULL || !takes_writes(c, r))
        return;
    if (info_is_read_only(&s->info, why, sizeof why))
        refuse_writes(s, SIMBA_ESTORE, why);
    else if (epoch_parse(c, r, &found) && found.age_ms >= 0)
        s->epoch = found;
    else
        ask_epoch(c);
}

/* ---- who the server is --------------------------------------------------------------------- */

static void on_info(void *data, const struct redis_command *sent, const struct reply *r)
{
    (void)data;
    struct redis_connection *c = sent->about;
    struct redis_server *s = c->server;
    char why[CONNECTION_TEXT_MAX];
    if (r != NULL && r->kind == REPLY_ERROR &&
        errors_describe(r, why, sizeof why) == SIMBA_EDENIED) {
        connection_fail(c, SIMBA_EDENIED,
                        "%s (INFO is needed to know what the server can be trusted with)", why);
        return;
    }
    if (is_refused(c, r, 0))
        return;
    if (!reply_is_text(r) || !info_parse(&s->info, r->text)) {
        connection_fail(c, SIMBA_ESTORE, "what answers there is not a Redis server");
        return;
    }
    s->info_at = simba_now();
    int code = info_refuses(&s->info, why, sizeof why);
    if (code != 0)
        connection_fail(c, code, "%s", why);
    else if (strlen(s->info.run_id) != EPOCH_ID || strlen(s->info.replid) != EPOCH_ID)
        connection_fail(c, SIMBA_ESTORE,
                        "the server does not say its run id and its replication id");
    else if (c->net->config->sentinels > 0 && info_is_read_only(&s->info, why, sizeof why))
        connection_fail(c, SIMBA_ESTORE, "%s", why);
}

static void on_time(void *data, const struct redis_command *sent, const struct reply *r)
{
    (void)data;
    struct redis_connection *c = sent->about;
    uint64_t s, us;
    if (is_refused(c, r, 0))
        return;
    if (reply_digits(reply_at(r, 0), &s) && reply_digits(reply_at(r, 1), &us) && s <= UINT32_MAX &&
        us < 1000000)
        c->server->time_us = (int64_t)(s * 1000000 + us);
    else
        connection_fail(c, SIMBA_ESTORE, "the server does not know the time");
}

/* ---- who we are ---------------------------------------------------------------------------- */

static void on_entrance(void *data, const struct redis_command *sent, const struct reply *r)
{
    (void)data;
    is_refused(sent->about, r, SIMBA_EDENIED);
}

/* Without a name we are only harder to find in the server's list of clients. It is the first answer, so
 * it may be one that is given to nobody in particular: a server that is full says so, and hangs up. */
static void on_name(void *data, const struct redis_command *sent, const struct reply *r)
{
    char why[CONNECTION_TEXT_MAX];
    (void)data;
    if (r != NULL && r->kind == REPLY_ERROR &&
        (reply_is_error(r, "NOAUTH") || errors_describe(r, why, sizeof why) == SIMBA_ESTATE))
        is_refused(sent->about, r, 0);
}

/* A NULL ends the arguments. */
static void write_command(struct redis_connection *c, command_fn *take, const char *first,
                          const char *second, const char *third)
{
    struct buffer *out = command(c, take);
    if (out != NULL)
        resp_command(out, first, second, third);
}

static void write_auth(struct redis_connection *c, const char *user, const char *password)
{
    if (user != NULL)
        write_command(c, on_entrance, "AUTH", user, password);
    else if (password != NULL)
        write_command(c, on_entrance, "AUTH", password, NULL);
}

void handshake_begin(struct redis_connection *c)
{
    const struct config *config = c->net->config;
    char name[32], db[16];
    if (c->use->is_sentinel) {
        write_auth(c, NULL, config->sentinel_password);
        c->use->greet(c->data);
        return;
    }
    write_auth(c, config->user, config->password);
    snprintf(name, sizeof name, "simba-%d", (int)getpid());
    write_command(c, on_name, "CLIENT", "SETNAME", name);
    if (c->server == NULL)
        return;
    snprintf(db, sizeof db, "%d", config->db);
    if (config->db != 0)
        write_command(c, on_entrance, "SELECT", db, NULL);
    write_command(c, on_info, "INFO", NULL, NULL);
    write_command(c, on_time, "TIME", NULL, NULL);
    write_command(c, on_note, "GET", SCRIPTS_EPOCH_KEY, NULL);
}
