/* votes.c: see votes.h. */
#include "backend/redis/votes.h"

#include <stdio.h>
#include <string.h>

/* ---- how many ------------------------------------------------------------------------------ */

/* Of those that the URL names, as far as is known. */
static size_t distinct(const struct sentinels *a)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        count += a->each[i].same_as == NULL;
    return count;
}

size_t votes_known(const struct sentinels *a)
{
    size_t most = distinct(a);
    for (size_t i = 0; i < a->count; i++) {
        size_t here = (size_t)a->each[i].others + 1;
        most = here > most ? here : most;
    }
    return most;
}

/* As far as the URL names so many. And where it names several, one alone is not enough: all of them may
 * be the same, which has restarted without its file and hears of no other one. */
size_t votes_needed(const struct sentinels *a)
{
    size_t majority = votes_known(a) / 2 + 1;
    if (majority < 2)
        majority = 2;
    return majority < a->count ? majority : a->count;
}

/* ---- which --------------------------------------------------------------------------------- */

static bool names(const struct sentinel *s, const struct redis_address *master, int64_t term)
{
    return s->named.host[0] != '\0' && s->named.port == master->port && s->term == term &&
           strcmp(s->named.host, master->host) == 0;
}

/* For how long it has named its master. */
static int64_t age_ms(const struct sentinel *s, int64_t now)
{
    return now - s->named_since;
}

size_t votes_count(const struct sentinels *a, const struct redis_address *master, int64_t term,
                   uint64_t round, int64_t vouched_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count && term >= a->latest; i++) {
        const struct sentinel *s = &a->each[i];
        count +=
            s->answered >= round && names(s, master, term) && age_ms(s, simba_now()) >= vouched_ms;
    }
    return count;
}

size_t votes_awaited(const struct sentinels *a, uint64_t round)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++)
        count += a->each[i].answered < round && a->each[i].connection.state != CONNECTION_DOWN;
    return count;
}

int64_t votes_vouched_ms(const struct sentinels *a, int64_t now)
{
    const struct redis_connection *c = a->commands;
    int64_t longest = 0;
    if (a->count == 0)
        return INT64_MAX;
    for (size_t i = 0; i < a->count; i++) {
        int64_t age = age_ms(&a->each[i], now);
        if (age > longest && votes_count(a, &c->address, c->net->term, 0, age) >= votes_needed(a))
            longest = age;
    }
    return longest;
}

/* ---- what is wrong with them --------------------------------------------------------------- */

static bool has_named(const struct sentinel *s)
{
    return s->answered > 0 && s->named.host[0] != '\0';
}

/* It has not heard of the last failover, or has forgotten it. */
static bool is_behind(const struct sentinels *a, const struct sentinel *s)
{
    return has_named(s) && s->term < a->latest;
}

static void say_behind(const struct sentinels *a, const struct sentinel *s, char *line, size_t size)
{
    snprintf(line, size,
             "%.60s:%d names a master in an earlier term (%lld, and %lld is known): it lags behind "
             "a failover, or has restarted without its file",
             s->address->host, s->address->port, (long long)s->term, (long long)a->latest);
}

static bool is_young(const struct sentinel *s, int64_t vouched_ms)
{
    return has_named(s) && age_ms(s, simba_now()) < vouched_ms;
}

static void say_young(const struct sentinel *s, int64_t vouched_ms, char *line, size_t size)
{
    long long left_ms = (long long)(vouched_ms - age_ms(s, simba_now()));
    snprintf(line, size,
             "%.60s:%d has just started, or turned to this master; its vote counts in %lld.%lld s",
             s->address->host, s->address->port, left_ms / 1000, left_ms % 1000 / 100);
}

void votes_say_same(const struct sentinel *s, char *line, size_t size)
{
    snprintf(line, size, "%.60s:%d is the same sentinel as %.60s:%d: name each of them once",
             s->address->host, s->address->port, s->same_as->address->host,
             s->same_as->address->port);
}

void votes_object(const struct sentinels *a, int64_t vouched_ms, char *why, size_t size)
{
    const struct sentinel *last = a->each + a->count;
    snprintf(why, size, "others name another server");
    for (const struct sentinel *s = a->each; s < last; s++) {
        if (s->connection.state == CONNECTION_DOWN && s->connection.why[0] != '\0')
            snprintf(why, size, "%s", s->connection.why);
        else if (s->answered > 0 && s->named.host[0] == '\0')
            snprintf(why, size, "%s", s->why);
        else
            continue;
        if (s->same_as != NULL)
            return; /* it can be set right, by whoever writes the URL */
    }
    for (const struct sentinel *s = a->each; s < last; s++) {
        if (is_behind(a, s)) {
            say_behind(a, s, why, size);
            return;
        }
    }
    for (const struct sentinel *s = a->each; s < last; s++) {
        if (is_young(s, vouched_ms)) {
            say_young(s, vouched_ms, why, size);
            return;
        }
    }
}

bool votes_warn(const struct sentinels *a, size_t n, char *line, size_t size)
{
    size_t all = votes_known(a), named = distinct(a);
    if (a->count == 0)
        return false;
    if (all == 1 && n-- == 0) {
        snprintf(line, size,
                 "one sentinel decides alone which server is the master: if it restarts without "
                 "its file, two may own a mutex, and while it is down nobody can own one. Run "
                 "three, and name all of them in the URL");
        return true;
    }
    if (named < all / 2 + 1 && n-- == 0) {
        snprintf(line, size,
                 "the URL names %zu of %zu sentinels: after a failover two may own a mutex until "
                 "these hear of it. Name all of them",
                 named, all);
        return true;
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct sentinel *s = &a->each[i];
        if (s->same_as != NULL && n-- == 0) {
            votes_say_same(s, line, size);
            return true;
        }
        if (is_behind(a, s) && n-- == 0) {
            say_behind(a, s, line, size);
            return true;
        }
    }
    return false;
}
