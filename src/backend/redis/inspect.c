/* inspect.c: see inspect.h. */
#include "backend/redis/inspect.h"

#include <stdio.h>
#include <string.h>

#include "backend/kit/findings.h"
#include "backend/redis/redis.h"
#include "backend/redis/requests.h"
#include "backend/redis/votes.h"

static void add_denied(struct redis *s, const char *prefix, const char *name, size_t length)
{
    char item[48];
    size_t used = strlen(s->inspection.denied);
    snprintf(item, sizeof item, " %s%.*s", prefix, (int)(length < 40 ? length : 40), name);
    if (strstr(s->inspection.denied, item) == NULL)
        snprintf(s->inspection.denied + used, sizeof s->inspection.denied - used, "%s", item);
}

/* What is not allowed: a command, or its use on our keys or channels. Servers say in many ways that
 *     this user has no permissions to run the 'ping' command
 *     this user has no permissions to access one of the keys used as arguments
 *     this user has no permissions to access one of the channels used as arguments
 * and may name a key or the user as well. */
static void add_error(struct redis *s, const struct reply *r, const char *right)
{
    const char *at = strchr(r->text, '\''), *access = strstr(r->text, " to access ");
    if (!reply_is_error(r, "NOPERM"))
        return;
    if (access != NULL && strstr(access, "key") != NULL)
        add_denied(s, "", INFO_ACL_KEYS, strlen(INFO_ACL_KEYS));
    else if (access != NULL && strstr(access, "channel") != NULL)
        add_denied(s, "", INFO_ACL_CHANNELS, strlen(INFO_ACL_CHANNELS));
    else if (right != NULL)
        add_denied(s, "+", right, strlen(right));
    else if (at != NULL)
        add_denied(s, "+", at + 1, strcspn(at + 1, "'"));
}

/* As rights.lua has found it. */
static void add_found(struct redis *s, const struct reply *r)
{
    if (strcmp(r->text, "~") == 0)
        add_denied(s, "", INFO_ACL_KEYS, strlen(INFO_ACL_KEYS));
    else if (strcmp(r->text, "&") == 0)
        add_denied(s, "", INFO_ACL_CHANNELS, strlen(INFO_ACL_CHANNELS));
    else
        add_denied(s, "+", r->text, r->length);
}

static void report_if_over(struct redis *s);

enum { PING, SELECT, NAME, SCAN, EVAL };

static void on_tried(void *store, const struct redis_command *sent, const struct reply *r)
{
    static const char *const right[] = {"ping", "select", "client|setname", "scan", "eval"};
    struct redis *s = store;
    if (r == NULL)
        return; /* inspect_down() follows */
    s->inspection.open--;
    if (r->kind == REPLY_ERROR)
        add_error(s, r, right[sent->which]);
    for (size_t i = 0; sent->which == EVAL && i < r->elements; i++) {
        if (reply_is_text(&r->element[i]))
            add_found(s, &r->element[i]);
    }
    report_if_over(s);
}

static void try_command(struct redis *s, int which, const char *const *arguments)
{
    struct buffer *b =
        connection_command(&s->commands, (struct redis_command){.take = on_tried, .which = which});
    if (b == NULL)
        return;
    resp_arguments(b, arguments);
    s->inspection.open++;
}

#define TRY(s, which, ...) try_command(s, which, (const char *const[]){__VA_ARGS__, NULL})

static void on_denied(void *store, const struct reply *r)
{
    add_error(store, r, NULL);
}

static void on_trial_over(void *store)
{
    struct redis *s = store;
    s->inspection.is_trying = false;
    report_if_over(s);
}

static void try_all(struct redis *s)
{
    const struct subscriber_trial trial = {on_denied, on_trial_over, s};
    char db[16];
    snprintf(db, sizeof db, "%d", s->config.db);
    s->inspection.denied[0] = '\0';
    s->inspection.is_trying = true;
    TRY(s, PING, "PING");
    TRY(s, SELECT, "SELECT", db);
    TRY(s, NAME, "CLIENT", "SETNAME", "simba");
    TRY(s, SCAN, "SCAN", "0", "MATCH", "simba:rights", "COUNT", "1");
    TRY(s, EVAL, "EVAL", scripts_text(SCRIPT_RIGHTS), "2", "simba:rights", "simba:rights:queue");
    subscriber_try(&s->subscriber, &trial);
}

/* ---- what is said -------------------------------------------------------------------------- */

static void tell_of_server(const struct redis *s, const struct findings *f)
{
    const struct info *info = &s->server.info;
    struct simba_finding warning;
    char line[CONNECTION_TEXT_MAX];
    if (info_is_read_only(info, line, sizeof line))
        findings_say(f, SIMBA_LOG_ERROR, "Redis %s: %s", info->version, line);
    else
        findings_say(f, SIMBA_LOG_INFO, "Redis %s, a master%s; one operation at a time: scripts",
                     info->version, info->replicas > 0 ? "" : " without replicas");
    if (info->eviction[0] != '\0' && !info_evicts(info))
        findings_say(f, SIMBA_LOG_INFO, "maxmemory-policy is %s%s: no lock is thrown away",
                     info->eviction, info->memory_limit == 0 ? ", and maxmemory is not set" : "");
    if (info->append_only)
        findings_say(
            f, SIMBA_LOG_INFO,
            "appendonly is on: tenures survive a restart, but for what appendfsync lets it lose");
    for (size_t n = 0; info_warns(info, s->config.restart_grace, n, &warning, line, sizeof line);
         n++)
        s->host->say(s->host, f->request, &warning);
}

/* The lease is the one that contenders of this client ask for. A replica grants nothing at all. */
static void tell_of_restart_grace(const struct redis *s, const struct findings *f)
{
    int64_t left_ms = requests_restart_grace_ms(s, requests_lease_ms(f->request), simba_now());
    char line[CONNECTION_TEXT_MAX];
    replies_restart_grace_text(s, left_ms, line, sizeof line);
    if (left_ms > 0 && !s->server.info.replica)
        findings_say(f, SIMBA_LOG_WARN, "%s; ask again then", line);
}

static void tell_of_rights(const struct redis *s, const struct findings *f)
{
    if (s->subscriber.connection.state != CONNECTION_READY)
        findings_say(f, SIMBA_LOG_WARN, "not connected for pushes, so waiters poll: %s",
                     s->subscriber.connection.why);
    if (s->inspection.denied[0] != '\0')
        findings_say(f, SIMBA_LOG_ERROR, "the user lacks rights:%s", s->inspection.denied);
    else if (s->subscriber.connection.state == CONNECTION_READY)
        findings_say(f, SIMBA_LOG_INFO, "the user has all rights that are needed");
    findings_say(f, SIMBA_LOG_INFO, "rights that are enough: ACL SETUSER NAME on >PASSWORD %s",
                 info_acl());
}

static void tell_of_sentinels(const struct redis *s, const struct findings *f)
{
    char line[CONNECTION_TEXT_MAX];
    const struct simba_finding doubt = {
        .level = SIMBA_LOG_WARN, .kind = SIMBA_FINDING_TWO_OWNERS, .text = line};
    for (size_t n = 0; votes_warn(&s->sentinels, n, line, sizeof line); n++)
        s->host->say(s->host, f->request, &doubt);
}

static void report(struct redis *s)
{
    for (struct simba_request *q; (q = s->inspection.asking) != NULL;) {
        const struct findings f = {.host = s->host, .request = q};
        s->inspection.asking = q->next;
        if (s->commands.state == CONNECTION_READY) {
            tell_of_server(s, &f);
            tell_of_sentinels(s, &f);
            tell_of_restart_grace(s, &f);
            tell_of_rights(s, &f);
        } else {
            findings_say(&f, SIMBA_LOG_WARN, "not connected to the server: %s", s->commands.why);
        }
        replies_answer(s, q, &(struct simba_answer){.age_ms = -1});
    }
    replies_end(s);
}

/* ---- when ---------------------------------------------------------------------------------- */

static bool is_under_way(const struct redis *s)
{
    return s->inspection.open > 0 || s->inspection.is_trying;
}

static void report_if_over(struct redis *s)
{
    if (!is_under_way(s))
        report(s);
}

void inspect_ready(struct redis *s)
{
    if (s->inspection.asking != NULL && !is_under_way(s))
        try_all(s);
}

void inspect_down(struct redis *s)
{
    s->inspection.open = 0;
    report(s);
}

void inspect_close(struct redis *s)
{
    struct simba_request *asking = s->inspection.asking;
    s->inspection.asking = NULL;
    replies_refuse(s, asking, SIMBA_ECANCELED, "the client is being closed");
}

void inspect_examine(void *store, struct simba_request *q)
{
    struct redis *s = store;
    q->next = s->inspection.asking;
    s->inspection.asking = q;
    if (s->commands.state == CONNECTION_READY)
        inspect_ready(s);
    else
        connection_hurry(&s->commands); /* somebody wants to know now; leads to ready, or down */
}
