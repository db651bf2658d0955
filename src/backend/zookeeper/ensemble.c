/* ensemble.c: see ensemble.h. */
#include "backend/zookeeper/ensemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTAGE_PART 3 /* of a session's timeout: the store may be away for so long */

/* ---- what they answer ---------------------------------------------------------------------- */

static bool find(const char *text, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    out[0] = '\0';
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
    return false;
}

static int64_t find_number(const char *text, const char *name)
{
    char number[32];
    return find(text, name, number, sizeof number) ? strtoll(number, NULL, 10) : 0;
}

void zk_ensemble_read(struct ensemble_server *s, const char *srvr, const char *conf)
{
    s->min_ms = find_number(conf, "minSessionTimeout=");
    s->max_ms = find_number(conf, "maxSessionTimeout=");
    s->tick_ms = find_number(conf, "tickTime=");
    find(srvr, "Mode: ", s->mode, sizeof s->mode);
    if (find(srvr, "Zookeeper version: ", s->version, sizeof s->version)) {
        s->version[strcspn(s->version, "-")] = '\0';
        s->state = s->mode[0] != '\0' ? SERVER_SERVES : SERVER_IDLE;
    } else if (strstr(srvr, "whitelist") != NULL) {
        s->state = SERVER_HIDES;
    } else if (strstr(srvr, "not currently serving") != NULL) {
        s->state = SERVER_IDLE;
    } else if (s->why[0] == '\0') {
        snprintf(s->why, sizeof s->why, "%s",
                 srvr[0] == '\0' ? "it takes the connection and says nothing"
                                 : "what answers there is no ZooKeeper");
    }
}

int zk_ensemble_voters(const char *config, size_t length)
{
    int voters = 0;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(config + at, '\n', length - at);
        size_t n = end != NULL ? (size_t)(end - config) - at : length - at;
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1),
                 config + at);
        voters += strncmp(line, "server.", 7) == 0 && strstr(line, ":observer") == NULL;
        at += n + 1;
    }
    return voters;
}

/* ---- what it means ------------------------------------------------------------------------- */

static void describe(const struct findings *f, const struct ensemble_server *s)
{
    switch (s->state) {
    case SERVER_SERVES:
        if (strcmp(s->mode, "read-only") == 0)
            findings_say(f, SIMBA_LOG_WARN,
                         "%s: ZooKeeper %s, read-only: it is cut off from the majority, and "
                         "nothing can be owned through it",
                         s->address, s->version);
        else
            findings_say(f, SIMBA_LOG_INFO, "%s: ZooKeeper %s, %s", s->address, s->version,
                         s->mode);
        break;
    case SERVER_IDLE:
        findings_say(f, SIMBA_LOG_WARN,
                     "%s: runs, but serves nobody: it finds no majority of its ensemble",
                     s->address);
        break;
    case SERVER_HIDES:
        findings_say(f, SIMBA_LOG_INFO,
                     "%s: runs; version and role are hidden. To see them: "
                     "4lw.commands.whitelist=srvr,conf in its zoo.cfg",
                     s->address);
        break;
    default:
        findings_say(f, SIMBA_LOG_WARN, "%s: no answer: %s", s->address, s->why);
        break;
    }
}

static void say_majority(const struct findings *f, size_t well, size_t unknown, size_t all)
{
    size_t most = all / 2 + 1;
    if (well == all)
        findings_say(f, SIMBA_LOG_INFO, "all %zu servers serve: %zu of them may fail", all,
                     all - most);
    else if (well >= most)
        findings_say(f, SIMBA_LOG_WARN, "%zu of %zu servers serve: %s", well, all,
                     well == most ? "when one more fails nobody can own anything"
                                  : "a majority is left");
    else if (well + unknown < most)
        findings_say(f, SIMBA_LOG_ERROR,
                     "%zu of %zu servers serve, and it takes %zu: nobody can own anything until "
                     "more of them are up",
                     well, all, most);
}

void zk_ensemble_say_servers(const struct findings *f, const struct ensemble_server *s,
                             size_t count, int voters)
{
    size_t well = 0, unknown = 0, all = voters > 0 ? (size_t)voters : count;
    for (size_t i = 0; i < count; i++) {
        describe(f, &s[i]);
        well += s[i].state == SERVER_SERVES && strcmp(s[i].mode, "read-only") != 0;
        unknown += s[i].state == SERVER_HIDES;
    }
    if (count == 1 && well == 1 && strcmp(s->mode, "standalone") == 0)
        findings_say(f, SIMBA_LOG_WARN, "a single server: when it fails nobody can own anything");
    else if (count < all)
        findings_say(f, SIMBA_LOG_WARN,
                     "the URL names %zu of the %zu servers: when %s, the others cannot be found. "
                     "Name them all",
                     count, all, count == 1 ? "it fails" : "they fail");
    else if (all > 1)
        say_majority(f, well, unknown, all);
}

void zk_ensemble_say_bounds(const struct findings *f, const struct ensemble_server *s, size_t count)
{
    int64_t min = 0, max = 0; /* that all allow */
    for (size_t i = 0; i < count; i++) {
        if (s[i].max_ms == 0)
            continue;
        min = s[i].min_ms > min ? s[i].min_ms : min;
        max = max == 0 || s[i].max_ms < max ? s[i].max_ms : max;
    }
    if (max > 0)
        findings_say(f, SIMBA_LOG_INFO,
                     "the servers keep a ttl + transition from %lld to %lld ms as it is",
                     (long long)min, (long long)max);
    else
        findings_say(f, SIMBA_LOG_INFO,
                     "which ttl + transition the servers keep as it is they do not say: 2 to 20 of "
                     "their ticks, 4 to 40 s by default. To see it: "
                     "4lw.commands.whitelist=srvr,conf");
}

enum simba_level zk_ensemble_timeout_text(int64_t asked_ms, int64_t granted_ms,
                                          char text[ENSEMBLE_TEXT_MAX])
{
    long long asked = (long long)asked_ms, granted = (long long)granted_ms;
    if (granted > asked)
        snprintf(text, ENSEMBLE_TEXT_MAX,
                 "the server allows no session shorter than %lld ms: after a crash it takes that "
                 "long, not %lld ms, until another can own. Lower tickTime or minSessionTimeout",
                 granted, asked);
    else if (granted < asked)
        snprintf(text, ENSEMBLE_TEXT_MAX,
                 "the server allows no session longer than %lld ms: tenures survive an outage of "
                 "at most a third of that, not of %lld ms. Raise maxSessionTimeout",
                 granted, asked);
    else
        snprintf(text, ENSEMBLE_TEXT_MAX, "session timeout %lld ms, as asked for: ttl + transition",
                 granted);
    return granted == asked ? SIMBA_LOG_INFO : SIMBA_LOG_WARN;
}

int64_t zk_ensemble_tick_ms(const struct ensemble_server *s, size_t count)
{
    int64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = s[i].tick_ms > most ? s[i].tick_ms : most;
    return most;
}

/* The leader looks once a tick whose time is over. A follower tells it within half a tick whom it
 * has heard of, so that the leader counts from later. A session is at least two ticks long, unless
 * minSessionTimeout was lowered. */
static int64_t late_ms(int64_t granted_ms, int64_t tick_ms)
{
    return (tick_ms > 0 ? tick_ms : granted_ms / 2) * 3 / 2;
}

void zk_ensemble_say_timeout(const struct findings *f, int64_t asked_ms, int64_t granted_ms,
                             int64_t tick_ms)
{
    char text[ENSEMBLE_TEXT_MAX];
    long long late = (long long)late_ms(granted_ms, tick_ms);
    if (tick_ms > 0)
        findings_say(f, SIMBA_LOG_INFO,
                     "the servers end a session up to %lld ms after its time: their tickTime is "
                     "%lld ms",
                     late, (long long)tick_ms);
    else
        findings_say(
            f, SIMBA_LOG_INFO,
            "the servers end a session up to %lld ms after its time, unless their tickTime "
            "is less than half of it, which they do not say. To see it: "
            "4lw.commands.whitelist=srvr,conf",
            late);
    enum simba_level level = zk_ensemble_timeout_text(asked_ms, granted_ms, text);
    findings_add(f,
                 (struct simba_finding){.kind = SIMBA_FINDING_LEASE,
                                        .level = level,
                                        .lease_ms = granted_ms + late,
                                        .outage_ms = granted_ms / OUTAGE_PART},
                 "%s", text);
}
