/* examine.c: what an operator should know about the server: what it has said of itself, and whether the
 * user may do all that this store does, which is tried. Only when somebody asks, as what is missing may not
 * be needed for weeks. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/redis/redis.h"

static void add_denied(struct redis *s, const char *mark, const char *name, size_t length)
{
    char word[48];
    size_t used = strlen(s->exam.denied);
    snprintf(word, sizeof word, " %s%.*s", mark, (int)(length < 40 ? length : 40), name);
    if (strstr(s->exam.denied, word) == NULL)
        snprintf(s->exam.denied + used, sizeof s->exam.denied - used, "%s", word);
}

/* What is not allowed: a command, or its use on our keys or channels. Servers say in many ways that
 *     this user has no permissions to run the 'ping' command
 *     this user has no permissions to access one of the keys used as arguments
 *     this user has no permissions to access one of the channels used as arguments
 * and may name a key or the user as well. */
static void add_error(struct redis *s, const struct reply *r, const char *right)
{
    const char *at = strchr(r->text, '\''), *place = strstr(r->text, " to access ");
    if (!reply_is_error(r, "NOPERM"))
        return;
    if (place != NULL && strstr(place, "key") != NULL)
        add_denied(s, "", HEALTH_ACL_KEYS, strlen(HEALTH_ACL_KEYS));
    else if (place != NULL && strstr(place, "channel") != NULL)
        add_denied(s, "", HEALTH_ACL_CHANNELS, strlen(HEALTH_ACL_CHANNELS));
    else if (right != NULL)
        add_denied(s, "+", right, strlen(right));
    else if (at != NULL)
        add_denied(s, "+", at + 1, strcspn(at + 1, "'"));
}

/* As rights.lua has found it. */
static void add_found(struct redis *s, const struct reply *r)
{
    if (strcmp(r->text, "~") == 0)
        add_denied(s, "", HEALTH_ACL_KEYS, strlen(HEALTH_ACL_KEYS));
    else if (strcmp(r->text, "&") == 0)
        add_denied(s, "", HEALTH_ACL_CHANNELS, strlen(HEALTH_ACL_CHANNELS));
    else
        add_denied(s, "+", r->text, r->length);
}

static void ask(struct redis *s, const char *right, const char *const *word, size_t words)
{
    struct flight *f = s->link.state == LINK_READY ? calls_push(s, FLIGHT_RIGHT) : NULL;
    if (f == NULL)
        return;
    f->right = right;
    resp_begin(&s->link.out, words);
    for (size_t i = 0; i < words; i++)
        resp_word(&s->link.out, word[i]);
    s->exam.open++;
}

static bool is_under_way(const struct redis *s)
{
    return s->exam.open > 0 || s->ear.tries;
}

static void try_all(struct redis *s)
{
    char db[16];
    snprintf(db, sizeof db, "%d", (int)s->config.db);
    s->exam.denied[0] = '\0';
    ask(s, "ping", (const char *const[]){"PING"}, 1);
    ask(s, "select", (const char *const[]){"SELECT", db}, 2);
    ask(s, "client|setname", (const char *const[]){"CLIENT", "SETNAME", "simba"}, 3);
    ask(s, "scan", (const char *const[]){"SCAN", "0", "MATCH", "simba:rights", "COUNT", "1"}, 6);
    ask(s, "eval",
        (const char *const[]){"EVAL", script_text(SCRIPT_RIGHTS), "3", "simba:rights",
                              "simba:rights:queue", "simba:rights:hash"},
        6);
    link_flush(&s->link);
    ear_try(&s->ear);
}

/* ---- what is said ---------------------------------------------------------------------------- */

struct telling {
    struct simba_host *host;
    struct simba_request *to;
};

__attribute__((format(printf, 3, 4))) static void
tell(const struct telling *t, enum simba_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    t->host->say(t->host, t->to, level, line);
}

static void tell_of_server(const struct redis *s, const struct telling *t)
{
    const struct health *h = &s->link.health;
    char line[LINK_TEXT_MAX];
    bool serious;
    if (health_is_read_only(h, line, sizeof line))
        tell(t, SIMBA_LOG_ERROR, "Redis %s: %s", h->version, line);
    else
        tell(t, SIMBA_LOG_INFO, "Redis %s, a master%s; one operation at a time: scripts",
             h->version, h->replicas > 0 ? "" : " without replicas");
    if (h->eviction[0] != '\0' && !health_evicts(h))
        tell(t, SIMBA_LOG_INFO, "maxmemory-policy is %s%s: no lock is thrown away", h->eviction,
             h->memory_limit == 0 ? ", and maxmemory is not set" : "");
    if (h->append_only)
        tell(t, SIMBA_LOG_INFO,
             "appendonly is on: tenures survive a restart, but for what appendfsync lets it lose");
    for (size_t n = 0; health_warns(h, s->config.guard, n, line, sizeof line, &serious); n++)
        tell(t, serious ? SIMBA_LOG_ERROR : SIMBA_LOG_WARN, "%s", line);
}

/* The lease is the one that contenders of this client ask for. */
static void tell_of_guard(const struct redis *s, const struct telling *t)
{
    int64_t left_ms = redis_guard_ms(s, calls_lease(t->to));
    char line[LINK_TEXT_MAX];
    redis_guard_text(left_ms, line, sizeof line);
    if (left_ms > 0)
        tell(t, SIMBA_LOG_WARN, "%s; ask again then", line);
}

static void tell_of_rights(const struct redis *s, const struct telling *t)
{
    if (s->ear.link.state != LINK_READY)
        tell(t, SIMBA_LOG_WARN, "there is no connection for pushes: %s", s->ear.link.why);
    if (s->exam.denied[0] != '\0')
        tell(t, SIMBA_LOG_ERROR, "the user lacks rights:%s", s->exam.denied);
    else if (s->ear.link.state == LINK_READY)
        tell(t, SIMBA_LOG_INFO, "the user has all rights that are needed");
    tell(t, SIMBA_LOG_INFO, "rights that are enough: ACL SETUSER NAME on >PASSWORD %s",
         health_acl());
}

static void report(struct redis *s)
{
    for (struct simba_request *q; (q = s->exam.asking) != NULL;) {
        const struct telling t = {s->host, q};
        s->exam.asking = q->next;
        if (s->link.state == LINK_READY) {
            tell_of_server(s, &t);
            tell_of_guard(s, &t);
            tell_of_rights(s, &t);
        } else {
            tell(&t, SIMBA_LOG_WARN, "there is no connection to the server: %s", s->link.why);
        }
        calls_answer(s, q, &(struct simba_answer){.age_ms = -1});
    }
    calls_end_reading(s);
}

/* ---- when ------------------------------------------------------------------------------------ */

void examine_reply(struct redis *s, const struct flight *f, const struct reply *r)
{
    s->exam.open--;
    if (r->kind == REPLY_ERROR)
        add_error(s, r, f->right);
    for (size_t i = 0; strcmp(f->right, "eval") == 0 && i < r->elements; i++) {
        if (reply_is_text(&r->element[i]))
            add_found(s, &r->element[i]);
    }
    if (!is_under_way(s))
        report(s);
}

static struct redis *store_of(struct ear *e)
{
    return (struct redis *)(void *)((char *)e - offsetof(struct redis, ear));
}

void examine_denied(struct ear *e, const struct reply *r)
{
    add_error(store_of(e), r, NULL);
}

void examine_tried(struct ear *e)
{
    struct redis *s = store_of(e);
    if (!is_under_way(s))
        report(s);
}

void examine_ready(struct redis *s)
{
    if (s->exam.asking != NULL && !is_under_way(s))
        try_all(s);
}

void examine_down(struct redis *s)
{
    s->exam.open = 0;
    report(s);
}

void redis_examine_close(struct redis *s)
{
    for (struct simba_request *q; (q = s->exam.asking) != NULL;) {
        s->exam.asking = q->next;
        calls_refuse(s, q, SIMBA_ECANCELED, "the client is being closed");
    }
    calls_end_reading(s);
}

void redis_examine(void *store, struct simba_request *q)
{
    struct redis *s = store;
    q->next = s->exam.asking;
    s->exam.asking = q;
    if (s->link.state == LINK_READY)
        examine_ready(s);
    else
        link_hurry(&s->link); /* somebody wants to know now; leads to ready, or down */
}
