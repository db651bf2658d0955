/* health.c: see health.h. */
#include "backend/zookeeper/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find(const char *text, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (const char *line = text; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        if (n > length && strncmp(line, name, length) == 0) {
            snprintf(out, size, "%.*s", (int)(n - length), line + length);
            out[strcspn(out, "\r,")] = '\0';
            return true;
        }
        line += n;
        line += *line == '\n';
    }
    out[0] = '\0';
    return false;
}

bool zookeeper_health_parse(struct zookeeper_health *h, const char *srvr)
{
    char number[32];
    *h = (struct zookeeper_health){.outstanding = 0};
    find(srvr, "Zookeeper version: ", h->version, sizeof h->version);
    h->version[strcspn(h->version, "-")] = '\0';
    find(srvr, "Mode: ", h->mode, sizeof h->mode);
    if (find(srvr, "Outstanding: ", number, sizeof number))
        h->outstanding = strtoll(number, NULL, 10);
    return h->version[0] != '\0';
}

bool zookeeper_health_says(const struct zookeeper_facts *f, size_t n, char *line, size_t size,
                           bool *serious)
{
    const struct zookeeper_health *h = f->server;
    *serious = true;
    if (h != NULL && h->mode[0] == '\0' && n-- == 0) {
        snprintf(line, size, "the server serves nobody: its ensemble has no majority");
        return true;
    }
    if (f->granted_ms > f->asked_ms && n-- == 0) {
        snprintf(line, size,
                 "the server allows no session shorter than %lld ms: after a crash it takes that "
                 "long, not %lld ms, until another can own. Lower tickTime or minSessionTimeout",
                 (long long)f->granted_ms, (long long)f->asked_ms);
        return true;
    }
    if (f->granted_ms < f->asked_ms && n-- == 0) {
        *serious = f->granted_ms < f->asked_ms / 2;
        snprintf(line, size,
                 "the server allows no session longer than %lld ms: tenures survive an outage of "
                 "at most a third of that, not of %lld ms. Raise maxSessionTimeout",
                 (long long)f->granted_ms, (long long)f->asked_ms);
        return true;
    }
    *serious = false;
    if (h != NULL && strcmp(h->mode, "standalone") == 0 && n-- == 0) {
        snprintf(line, size, "a single server: when it fails nobody can own anything");
        return true;
    }
    if (f->world_writable && n-- == 0) {
        snprintf(line, size,
                 "anybody who reaches the server can delete our nodes: give a user and "
                 "a password, as in zookeeper://USER:PASSWORD@host");
        return true;
    }
    if (!f->containers && n-- == 0) {
        snprintf(line, size, "the server is older than 3.5: a node stays for each mutex ever used");
        return true;
    }
    return false;
}

/* ---- all servers of the URL ------------------------------------------------------------------- */

struct report {
    simba_finding_fn *say;
    void *data;
};

__attribute__((format(printf, 3, 4))) static void
say(const struct report *r, enum simba_level level, const char *format, ...)
{
    char line[HEALTH_LINE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    r->say(r->data, level, line);
}

static int64_t find_number(const char *text, const char *name)
{
    char number[32];
    return find(text, name, number, sizeof number) ? strtoll(number, NULL, 10) : 0;
}

void zookeeper_server_read(struct zookeeper_server *s, const char *srvr, const char *conf)
{
    s->min_ms = find_number(conf, "minSessionTimeout=");
    s->max_ms = find_number(conf, "maxSessionTimeout=");
    if (zookeeper_health_parse(&s->health, srvr))
        s->state = s->health.mode[0] != '\0' ? SERVER_SERVES : SERVER_IDLE;
    else if (strstr(srvr, "whitelist") != NULL)
        s->state = SERVER_HIDES;
    else if (strstr(srvr, "not currently serving") != NULL)
        s->state = SERVER_IDLE;
    else if (s->why[0] == '\0')
        snprintf(s->why, sizeof s->why, "%s",
                 srvr[0] == '\0' ? "it takes the connection and says nothing"
                                 : "what answers there is no ZooKeeper");
}

int zookeeper_voters(const char *config, size_t length)
{
    int voters = 0;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(config + at, '\n', length - at);
        size_t n = end != NULL ? (size_t)(end - config) - at : length - at;
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1),
                 config + at);
        if (strncmp(line, "server.", 7) == 0 && strstr(line, ":observer") == NULL)
            voters++;
        at += n + 1;
    }
    return voters;
}

static void describe(const struct report *r, const struct zookeeper_server *s)
{
    switch (s->state) {
    case SERVER_SERVES:
        if (strcmp(s->health.mode, "read-only") == 0)
            say(r, SIMBA_LOG_WARN,
                "%s: ZooKeeper %s, read-only: it is cut off from the majority, and nothing can be "
                "owned through it",
                s->address, s->health.version);
        else
            say(r, SIMBA_LOG_INFO, "%s: ZooKeeper %s, %s", s->address, s->health.version,
                s->health.mode);
        break;
    case SERVER_IDLE:
        say(r, SIMBA_LOG_WARN, "%s: runs, but serves nobody: it finds no majority of its ensemble",
            s->address);
        break;
    case SERVER_HIDES:
        say(r, SIMBA_LOG_INFO,
            "%s: runs; version and role are hidden. To see them: 4lw.commands.whitelist=srvr,conf "
            "in its zoo.cfg",
            s->address);
        break;
    default:
        say(r, SIMBA_LOG_WARN, "%s: no answer: %s", s->address, s->why);
        break;
    }
}

static bool stands_alone(const struct zookeeper_server *s, size_t count)
{
    return count == 1 && s->state == SERVER_SERVES && strcmp(s->health.mode, "standalone") == 0;
}

void zookeeper_ensemble_says(const struct zookeeper_server *s, size_t count, int voters,
                             simba_finding_fn *each, void *data)
{
    struct report r = {each, data};
    size_t well = 0, unsure = 0;
    for (size_t i = 0; i < count; i++) {
        describe(&r, &s[i]);
        well += s[i].state == SERVER_SERVES && strcmp(s[i].health.mode, "read-only") != 0;
        unsure += s[i].state == SERVER_HIDES;
    }
    if (stands_alone(s, count))
        return; /* what that means is said elsewhere */
    size_t all = voters > 0 ? (size_t)voters : count, most = all / 2 + 1;
    if (count < all)
        say(&r, SIMBA_LOG_WARN,
            "the URL names %zu of the %zu servers: when %s, the others cannot be found. Name them "
            "all",
            count, all, count == 1 ? "it fails" : "they fail");
    if (count == 1 && all == 1)
        return;
    if (well >= most && well == all)
        say(&r, SIMBA_LOG_INFO, "all %zu servers serve: %zu of them may fail", all, all - most);
    else if (well >= most && count >= all)
        say(&r, SIMBA_LOG_WARN, "%zu of %zu servers serve: %s", well, all,
            well == most ? "when one more fails nobody can own anything" : "a majority is left");
    else if (well + unsure < most && count >= all)
        say(&r, SIMBA_LOG_ERROR,
            "%zu of %zu servers serve, and it takes %zu: nobody can own anything until more of "
            "them are up",
            well, all, most);
}

void zookeeper_bounds_say(const struct zookeeper_server *s, size_t count, int64_t asked_ms,
                          int64_t granted_ms, simba_finding_fn *each, void *data)
{
    struct report r = {each, data};
    int64_t min = 0, max = 0; /* that all allow */
    for (size_t i = 0; i < count; i++) {
        if (s[i].max_ms == 0)
            continue;
        min = s[i].min_ms > min ? s[i].min_ms : min;
        max = max == 0 || s[i].max_ms < max ? s[i].max_ms : max;
    }
    if (granted_ms == asked_ms)
        say(&r, SIMBA_LOG_INFO,
            "session timeout %lld ms, as asked for: ttl + transition. A write every %lld ms keeps "
            "all tenures of a client",
            (long long)granted_ms, (long long)granted_ms / 6);
    if (max > 0)
        say(&r, SIMBA_LOG_INFO, "the servers keep a ttl + transition from %lld to %lld ms as it is",
            (long long)min, (long long)max);
    else
        say(&r, SIMBA_LOG_INFO,
            "which ttl + transition the servers keep as it is they do not say: 2 to 20 of their "
            "ticks, 4 to 40 s by default. To see it: 4lw.commands.whitelist=srvr,conf");
}
