/* report.c: see report.h. Texts come from stores and other owners; the log escapes them. */
#include "runtime/report.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/failure.h"
#include "runtime/client.h"
#include "runtime/error.h"

#define LATE (1000 * NS_PER_MS)
#define RENEWALS_LATE 2 /* in a row: one that is slow is nothing to tell of */

/* ---- why a call failed --------------------------------------------------------------------- */

/* Who owns the mutex, and since when if the store knows; under the lock. */
void report_say_owner(const struct actor *a, char *out, size_t size)
{
    char since[ERROR_DURATION];
    if (a->same_id)
        snprintf(out, size, "held by another handle with the same id '%s'", actor_id(a));
    else if (a->after.id == NULL)
        snprintf(out, size, "held by another");
    else if (!a->after.aged)
        snprintf(out, size, "held by %s", a->after.id);
    else
        snprintf(out, size, "held by %s for %s", a->after.id,
                 error_duration(clock_now() - a->after.acquired_at, since));
}

/* The same, and that it may have changed since; under the lock. */
static void say_who_holds(const struct actor *a, char *out, size_t size)
{
    char owner[CALL_TEXT_MAX / 2];
    bool is_failing = a->trouble.code != 0 && a->trouble.code != SIMBA_ENOTYET;
    report_say_owner(a, owner, sizeof owner);
    if (is_failing)
        snprintf(out, size, "%s, as the store last said; since then: %s", owner,
                 a->failure != NULL ? a->failure : "the store does not answer");
    else
        snprintf(out, size, "%s", owner);
}

/* Under the lock. */
static void say_not_yet(const struct actor *a, char *out, size_t size)
{
    char left[ERROR_DURATION];
    bool is_shut = a->trouble.code == SIMBA_ENOTYET, has_why = is_shut && a->failure != NULL;
    int64_t more = is_shut ? a->trouble.until - clock_now() : 0;
    const char *colon = has_why ? ": " : "", *why = has_why ? a->failure : "";
    if (more > 0)
        snprintf(out, size, "nobody may own it for another %s%s%s", error_duration(more, left),
                 colon, why);
    else
        snprintf(out, size,
                 "nobody owned it when the store last answered, but it granted it to nobody%s%s",
                 colon, why);
}

/* Why a locker's caller did not get what it wanted; under the lock. */
void report_say_why(const struct actor *a, int code, char *out, size_t size)
{
    bool is_held = code == SIMBA_EHELD || code == SIMBA_ETIMEOUT;
    char left[ERROR_DURATION];
    if (is_held && handle_keeps(&a->machine))
        snprintf(out, size, "this locker itself keeps it for %s more, as at_least_ms asks for",
                 error_duration(a->machine.extra->keep_until - clock_now(), left));
    else if (is_held && lease_is_over(&a->machine.lease))
        snprintf(out, size, "this locker itself keeps it until on_endangered has returned");
    else if (is_held)
        say_who_holds(a, out, size);
    else if (code == SIMBA_ENOTYET)
        say_not_yet(a, out, size);
    else
        snprintf(out, size, "%s", a->failure != NULL ? a->failure : "the store does not answer");
}

/* ---- the log, and the trace ---------------------------------------------------------------- */

/* Of a tenure that runs, also how long it still lasts. */
static void report_failure(struct actor *a, int code, int trouble, const char *text)
{
    struct log *log = &a->client->log;
    const struct lease *l = &a->machine.lease;
    char left[ERROR_DURATION];
    trace_failing(a, trouble, text);
    if (l->state == LEASE_HOLDING)
        log_put(log, SIMBA_LOG_WARN,
                "mutex '%s' on %.150s: cannot renew: %s; trying again, the lease lasts %s more",
                a->by_mutex.name, actor_store(a), text,
                error_duration(l->hold_until - clock_now(), left));
    else
        log_put(log, SIMBA_LOG_WARN, "mutex '%s' on %.150s: %s; %s", a->by_mutex.name,
                actor_store(a), text, failure_is_ours(code) ? "giving up" : "trying again");
}

/* late: so long ago we should have done something, and this process did not run. */
static void report_lost(struct actor *a, int64_t late)
{
    char since[ERROR_DURATION], missed[ERROR_DURATION];
    if (a->machine.lease.reason == SIMBA_EVICTED)
        log_put(&a->client->log, SIMBA_LOG_WARN,
                "mutex '%s' on %.150s: lost by %s: the store has ended the tenure (evicted, or its "
                "data were deleted)",
                a->by_mutex.name, actor_store(a), actor_id(a));
    else if (a->machine.lease.reason == SIMBA_STALLED)
        log_put(&a->client->log, SIMBA_LOG_WARN,
                "mutex '%s' on %.150s: lost by %s: stalled, it reported no progress for %s",
                a->by_mutex.name, actor_store(a), actor_id(a),
                error_duration(a->machine.extra->watchdog.limit, since));
    else if (late >= LATE)
        log_put(
            &a->client->log, SIMBA_LOG_WARN,
            "mutex '%s' on %.150s: lost by %s: no renewal for %s (this process%s did not run in "
            "the last %s: was it stopped?)",
            a->by_mutex.name, actor_store(a), actor_id(a),
            error_duration(clock_now() - a->renewed_at, since),
            a->client->no_thread ? ", or its loop," : "", error_duration(late, missed));
    else
        log_put(&a->client->log, SIMBA_LOG_WARN,
                "mutex '%s' on %.150s: lost by %s: no renewal for %s (%s)", a->by_mutex.name,
                actor_store(a), actor_id(a), error_duration(clock_now() - a->renewed_at, since),
                a->failure != NULL ? a->failure : "the store does not answer");
}

/* The option's note. Once in a tenure; r: the answer, if it has come. */
void report_unpublished(struct actor *a, int code, const struct request *r)
{
    const char *text = code == SIMBA_ETIMEOUT         ? "the store does not answer"
                       : r != NULL && r->text != NULL ? r->text
                                                      : simba_strerror(code);
    trace_note_failed(a, code, text);
    log_put(&a->client->log, SIMBA_LOG_WARN,
            "mutex '%s' on %.150s: the note was not published: %s; %s", a->by_mutex.name,
            actor_store(a), text,
            failure_is_ours(code) ? "giving up" : "trying again with each renewal");
}

void report_published_late(struct actor *a)
{
    trace_note_published(a);
    log_put(&a->client->log, SIMBA_LOG_INFO, "mutex '%s' on %.150s: the note is published now",
            a->by_mutex.name, actor_store(a));
}

void report_news(struct actor *a, const struct handle_update *up, int64_t late)
{
    struct log *log = &a->client->log;
    const char *mutex = a->by_mutex.name;
    const struct lease *l = &a->machine.lease;
    if (up->news == LEASE_BEGAN)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s' on %.150s: acquired by %s, token %llu", mutex,
                actor_store(a), actor_id(a), (unsigned long long)l->token);
    else if (up->news == LEASE_LOST)
        report_lost(a, late);
    else if (up->news == LEASE_GIVEN || up->news == LEASE_GONE)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s' on %.150s: %s by %s", mutex, actor_store(a),
                up->news == LEASE_GIVEN ? "released" : "already lost when released", actor_id(a));
    else if (up->news == LEASE_FAILED && up->failure == SIMBA_ETIMEOUT &&
             l->failures == (l->state == LEASE_HOLDING ? RENEWALS_LATE : 1))
        report_failure(a, up->failure, up->failure, "the store does not answer");
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Once, until it is another or has passed. */
void report_answer(struct actor *a, const struct request *r)
{
    const char *now = r->text != NULL ? r->text : simba_strerror(r->code);
    if (request_has_failed(r) && !same(now, a->failure))
        report_failure(a, r->code, r->trouble, now);
}

/* since: when what has failed began to. Of a renewal, when the one before it was sent. */
void report_works(struct actor *a, bool renewed, int64_t since)
{
    char text[ERROR_DURATION];
    struct log *log = &a->client->log;
    if (!a->is_failing_reported)
        return;
    if (renewed)
        since = a->renewed_at;
    trace_works(a, since);
    if (renewed)
        log_put(log, SIMBA_LOG_INFO, "mutex '%s' on %.150s: renewed again after %s without renewal",
                a->by_mutex.name, actor_store(a), error_duration(clock_now() - since, text));
    else if (actor_waits(a))
        log_put(log, SIMBA_LOG_INFO, "mutex '%s' on %.150s: the store answers again",
                a->by_mutex.name, actor_store(a));
}
