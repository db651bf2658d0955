/* health.c: see health.h. */
#include "backend/zookeeper/health.h"

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
