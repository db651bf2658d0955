/* database.c: what each request means in the database. */
#include "backend/sqlite/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

static void bind_name(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static int64_t lease_of(const struct simba_request *q)
{
    return (q->ttl_ms + q->transition_ms) * NS_PER_MS;
}

/* A row, as far as anybody reads it. */
struct row {
    bool found, held, contended, evicted;
    uint64_t token;
    int64_t client, live;
};

/* Members of the group may have written anything. */
static int64_t age_ms(sqlite3_stmt *s, int at, int64_t now)
{
    return (now - client_lock_bound(sqlite3_column_int64(s, at), now)) / NS_PER_MS;
}

static int read_row(struct database *d, const char *mutex, int64_t now, struct row *row,
                    struct database_result *out)
{
    sqlite3_stmt *s = database_statement(d, DATABASE_SELECT);
    bind_name(s, 1, mutex);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        int64_t until = sqlite3_column_int64(s, 5);
        row->found = true;
        row->token = (uint64_t)sqlite3_column_int64(s, 1);
        row->client = sqlite3_column_int64(s, 2);
        row->live = sqlite3_column_int64(s, 3);
        row->contended = sqlite3_column_int(s, 6) != 0;
        row->evicted = sqlite3_column_int(s, 7) != 0;
        snprintf(out->text, sizeof out->text, "%s", (const char *)sqlite3_column_text(s, 0));
        row->held = out->text[0] != '\0' && until > now;
        if (row->held) {
            out->answer.id = out->text;
            out->answer.token = row->token;
            out->answer.evicted = row->evicted;
            out->answer.left_ms = (until - now) / NS_PER_MS;
            out->answer.age_ms = age_ms(s, 4, now);
            out->owner_client = row->live == d->lock.files ? row->client : 0;
        }
    }
    sqlite3_reset(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : database_fail(d, "cannot read");
}

bool database_client_is_gone(const struct database *d, int64_t client)
{
    return client != 0 && client != d->lock.number && !client_lock_is_held(&d->lock, client);
}

static int take(struct database *d, const struct simba_request *q, int64_t now,
                const struct row *row, struct database_result *out)
{
    uint64_t base = (uint64_t)d->own.base, token = (row->token > base ? row->token : base) + 1;
    if (token > CLIENT_LOCK_COUNT_MAX)
        return database_fail_text(d, SIMBA_ESCHEMA,
                                  "%.160s has no token left for this mutex: another program wrote "
                                  "to it; move the store's files away",
                                  d->paths->db);
    sqlite3_stmt *s = database_statement(d, DATABASE_TAKE);
    bind_name(s, 1, q->mutex);
    bind_name(s, 2, q->id);
    sqlite3_bind_int64(s, 3, (int64_t)token);
    sqlite3_bind_int64(s, 4, d->lock.number);
    sqlite3_bind_int64(s, 5, d->lock.files);
    sqlite3_bind_int64(s, 6, now);
    sqlite3_bind_int64(s, 7, lease_of(q));
    sqlite3_bind_int(s, 8, row->contended || q->others || out->waited);
    if (!database_run(d, DATABASE_TAKE))
        return database_fail(d, "cannot take");
    snprintf(out->text, sizeof out->text, "%s", q->id);
    out->answer = (struct simba_answer){.granted = true, .id = out->text, .token = token};
    out->answer.left_ms = q->ttl_ms + q->transition_ms;
    out->owner_client = 0;
    return 0;
}

static int set(struct database *d, enum database_statement which, const char *mutex)
{
    bind_name(database_statement(d, which), 1, mutex);
    return database_run(d, which) ? 0 : database_fail(d, "cannot write");
}

static int contend(struct database *d, const struct simba_request *q, int64_t now,
                   const struct row *row, struct database_result *out)
{
    bool is_free =
        !row->held || database_client_is_gone(d, out->owner_client); /* nobody could act */
    if (is_free && now < d->own.quiet_until) {
        out->answer = (struct simba_answer){.age_ms = -1, .text = out->text};
        out->answer.left_ms = (d->own.quiet_until - now) / NS_PER_MS + 1;
        out->owner_client = 0;
        snprintf(
            out->text, sizeof out->text,
            "the database was deleted, replaced or restored, and owners of before may still act");
        return 0;
    }
    if (is_free) {
        out->changed = true;
        return take(d, q, now, row, out);
    }
    return row->contended ? 0 : set(d, DATABASE_CONTEND, q->mutex);
}

static int renew(struct database *d, const struct simba_request *q, int64_t now,
                 struct database_result *out)
{
    sqlite3_stmt *s = database_statement(d, DATABASE_RENEW);
    bind_name(s, 1, q->mutex);
    bind_name(s, 2, q->id);
    sqlite3_bind_int64(s, 3, (int64_t)q->token);
    sqlite3_bind_int64(s, 4, now);
    sqlite3_bind_int64(s, 5, lease_of(q));
    sqlite3_bind_int64(s, 6, d->lock.number); /* it may have been another, or nobody's */
    sqlite3_bind_int64(s, 7, d->lock.files);
    if (!database_run(d, DATABASE_RENEW))
        return database_fail(d, "cannot renew");
    if (sqlite3_changes(d->handle) == 0)
        out->answer.code = SIMBA_ELOST;
    else
        out->answer.left_ms = q->ttl_ms + q->transition_ms;
    return 0;
}

static int release(struct database *d, const struct simba_request *q, const struct row *row,
                   struct database_result *out)
{
    bool ours = row->found && row->token == q->token && strcmp(out->text, q->id) == 0;
    out->answer = (struct simba_answer){.code = ours ? 0 : SIMBA_ELOST, .age_ms = -1};
    if (!ours)
        return 0;
    out->wake = row->contended;
    out->changed = true;
    return set(d, DATABASE_FREE, q->mutex);
}

static int evict(struct database *d, const struct simba_request *q, const struct row *row,
                 struct database_result *out)
{
    bool found = row->held && (q->token == 0 || q->token == row->token) &&
                 (q->id[0] == '\0' || strcmp(q->id, out->text) == 0);
    out->answer = (struct simba_answer){.code = found ? 0 : SIMBA_ELOST, .age_ms = -1};
    if (!found)
        return 0;
    out->wake = true; /* the owner renews at once, and learns of it */
    out->changed = q->forced;
    return set(d, q->forced ? DATABASE_FREE : DATABASE_EVICT, q->mutex);
}

static int publish(struct database *d, const struct simba_request *q, const struct row *row,
                   struct database_result *out)
{
    bool ours =
        row->held && !row->evicted && row->token == q->token && strcmp(out->text, q->id) == 0;
    out->answer = (struct simba_answer){.code = ours ? 0 : SIMBA_ELOST, .age_ms = -1};
    out->changed = ours;
    return ours ? database_publish(d, q) : 0;
}

static int add_note(struct database *d, const char *mutex, struct database_result *out)
{
    int rc = database_read_note(d, mutex, &out->noted, &out->note);
    out->answer.note = out->note != NULL ? &out->noted : NULL;
    out->answer.wall_ms =
        simba_wall_ms(simba_now()); /* it has no other clock than this machine's */
    return rc;
}

int database_list(struct database *d, struct simba_host *host, struct simba_request *q)
{
    sqlite3_stmt *s = database_statement(d, DATABASE_LIST);
    int64_t now = boot_clock_now(&d->boot), last = 0;
    bool gone = false;
    int rc, code = 0;
    bind_name(s, 1, q->mutex);
    sqlite3_bind_int64(s, 2, now);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t client =
            sqlite3_column_int64(s, 4) == d->lock.files ? sqlite3_column_int64(s, 3) : 0;
        if (client != last) {
            last = client;
            gone = database_client_is_gone(d, client);
        }
        struct simba_found found = {
            .mutex = (const char *)sqlite3_column_text(s, 0),
            .id = (const char *)sqlite3_column_text(s, 1),
            .token = (uint64_t)sqlite3_column_int64(s, 2),
            .left_ms = (sqlite3_column_int64(s, 6) - now) / NS_PER_MS,
            .age_ms = age_ms(s, 5, now),
            .waiters = -1,
            .evicted = sqlite3_column_int(s, 7) != 0,
        };
        struct simba_noted noted;
        char *text = NULL;
        if (!gone && q->with_note && (code = database_read_note(d, found.mutex, &noted, &text)) < 0)
            break;
        found.note = text != NULL ? &noted : NULL;
        if (!gone)
            host->found(host, q, &found);
        free(text);
    }
    sqlite3_reset(s);
    if (code < 0)
        return code;
    return rc == SQLITE_DONE ? 0 : database_fail(d, "cannot list");
}

/* For a database that has forgotten this: how long to wait, and where to begin. */
static void keep_lease(struct database *d, int64_t now, int64_t lease, uint64_t token)
{
    if (now + lease > d->last_until)
        d->last_until = now + lease;
    if (lease > d->own.longest) {
        d->own.longest = lease;
        d->tidy_at = 0; /* it has to be known also where the log is lost */
    }
    if ((int64_t)token > d->watermark.token)
        d->watermark.token = (int64_t)token;
}

int database_apply(struct database *d, const struct simba_request *q, struct database_result *out)
{
    int64_t now = boot_clock_now(&d->boot);
    struct row row = {.found = false};
    out->answer = (struct simba_answer){.age_ms = -1};
    out->owner_client = 0;
    out->wake = out->changed = false;
    free(out->note);
    out->note = NULL;
    int rc = q->op == SIMBA_RENEW ? renew(d, q, now, out) : read_row(d, q->mutex, now, &row, out);
    if (rc < 0)
        return rc;
    if (q->op == SIMBA_CONTEND) {
        rc = contend(d, q, now, &row, out);
    } else if (q->op == SIMBA_RELEASE) {
        rc = release(d, q, &row, out);
    } else if (q->op == SIMBA_EVICT) {
        rc = evict(d, q, &row, out);
    } else if (q->op == SIMBA_PUBLISH) {
        rc = publish(d, q, &row, out);
    } else if (database_client_is_gone(d, out->owner_client)) {
        /* A tenure whose owner is dead, with all that could act for it, is none. */
        out->answer = (struct simba_answer){.age_ms = -1};
        out->owner_client = 0;
    }
    if (rc == 0 && q->op == SIMBA_READ && q->with_note)
        rc = add_note(d, q->mutex, out);
    if (rc == 0 && out->answer.code == 0 && (out->answer.granted || q->op == SIMBA_RENEW))
        keep_lease(d, now, lease_of(q), out->answer.token);
    return rc;
}
