/* help.h: what the tests on SQL servers share. */
#ifndef CONTRACT_SQL_HELP_H
#define CONTRACT_SQL_HELP_H

#include <stdio.h>
#include <string.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

/* The same database by another port. */
static inline void url_of(const struct database *d, int port, char out[512])
{
    snprintf(out, 512, "%.*s:%d/%s", (int)(strrchr(d->url, ':') - d->url), d->url, port, d->name);
}

static inline simba_client *open_at(const char *url)
{
    struct simba_options o = suite_options();
    simba_client *s = NULL;
    CHECK_OK(simba_open(url, &o, &s));
    return s;
}

static inline simba_locker *locker(simba_client *s, const char *mutex, const char *id,
                                   struct simba_handle_options o)
{
    simba_locker *l = NULL;
    o.id = id;
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    return l;
}

static inline struct peer start(const char *url, const char *mutex,
                                struct simba_handle_options like)
{
    struct peer p = {.url = url, .mutex = mutex, .like = like};
    peer_start(&p);
    return p;
}

static inline void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
}

static inline uint64_t own(struct peer *p)
{
    contend(p);
    return peer_await_owner(p);
}

static inline void refused(const char *url, int code, const char *part)
{
    simba_client *s = open_at(url);
    struct simba_owner o;
    CHECK_REFUSED(simba_read(s, "m", PATIENCE_MS, &o), code, part);
    CHECK(strstr(simba_error_text(), "geheim") == NULL &&
          strstr(simba_error_text(), "falsch") == NULL);
    client_close(s);
}
#endif
