/* poller.c: see poller.h. */
#include "backend/sql/poller.h"

#include <stdlib.h>
#include <string.h>

#include "backend/sql/sql.h"
#include "base/hash_table.h"
#include "base/rng.h"

#define BEHIND_MS 5000    /* between polls where the server notifies */
#define EVICTIONS_MS 1000 /* between polls of the row of evictions, if nothing else is polled */
#define EARLY_MS 4  /* the first poll of something new: many locks are held for a moment only */
#define SOON_MS 16  /* the next: by then whoever owns it for longer has its queue lock */
#define LEAST_MS 10 /* between polls that have found something */

/* What was last seen of a mutex. */
enum { SEEN_OURS_UNTIL, SEEN_KNOWN, SEEN_TOKEN, SEEN_OWNER };

/* ---- what a poll means --------------------------------------------------------------------- */

bool sql_poller_is_ours(const struct simba_watched *w, int64_t now)
{
    return w->seen[SEEN_OURS_UNTIL] > now;
}

void sql_poller_set_ours(struct simba_watched *w, int64_t until)
{
    w->seen[SEEN_OURS_UNTIL] = until;
}

bool sql_poller_needs_poll(const struct simba_watched *w, int64_t now)
{
    return w->interest == SIMBA_OBSERVES || !sql_poller_is_ours(w, now);
}

bool sql_poller_is_news(struct simba_watched *w, const char *owner, uint64_t token)
{
    bool is_free = owner[0] == '\0';
    int64_t hash = is_free ? 0 : hash_text(owner) | 1;
    bool changed = w->seen[SEEN_KNOWN] == 0 || w->seen[SEEN_OWNER] != hash ||
                   w->seen[SEEN_TOKEN] != (int64_t)token;
    w->seen[SEEN_KNOWN] = 1;
    w->seen[SEEN_OWNER] = hash;
    w->seen[SEEN_TOKEN] = (int64_t)token;
    /* One who waits for a free mutex is told once; should that come to nothing, it tries by itself. */
    return w->interest == SIMBA_WAITS ? is_free && changed : changed;
}

int sql_poller_evictions(struct sql_poller *p, uint64_t count)
{
    /* Before the first poll it is 0, as where nobody was ever evicted: what was counted since we
     * own anything must not be taken for old. */
    uint64_t news = count - p->evictions;
    p->evictions = count;
    return news == 0 ? 0 : news == 1 ? 1 : 2;
}

bool sql_poller_digest(struct sql_poller *p, uint64_t digest)
{
    bool changed = !p->digest_known || p->digest != digest;
    p->digest_known = true;
    p->digest = digest;
    return changed;
}

/* ---- one mutex ----------------------------------------------------------------------------- */

struct sighting {
    const char *owner;
    uint64_t token;
    bool is_news;
};

static void see(void *data, struct simba_watched *w)
{
    struct sighting *sighting = data;
    sighting->is_news = sql_poller_is_news(w, sighting->owner, sighting->token);
}

bool sql_poller_saw(struct sql *s, const char *mutex, const char *owner, uint64_t token)
{
    struct sighting sighting = {.owner = owner, .token = token};
    s->host->watched(s->host, mutex, see, &sighting);
    if (sighting.is_news)
        s->host->hint(s->host, mutex);
    return sighting.is_news;
}

static void set_ours(void *data, struct simba_watched *w)
{
    sql_poller_set_ours(w, *(const int64_t *)data);
}

void sql_poller_ours(struct sql *s, const char *mutex, int64_t until)
{
    s->host->watched(s->host, mutex, set_ours, &until);
}

static void forget(void *data, struct simba_watched *w)
{
    (void)data;
    w->seen[SEEN_KNOWN] = 0;
}

static void note_wait(void *data, struct simba_watched *w)
{
    *(bool *)data = w->interest == SIMBA_WAITS;
}

bool sql_poller_waits(struct sql *s, const char *mutex)
{
    bool waits = false;
    s->host->watched(s->host, mutex, note_wait, &waits);
    return waits;
}

static void note_ours(void *data, struct simba_watched *w)
{
    *(bool *)data = sql_poller_is_ours(w, simba_now());
}

bool sql_poller_owns(struct sql *s, const char *mutex)
{
    bool owns = false;
    s->host->watched(s->host, mutex, note_ours, &owns);
    return owns;
}

/* ---- all of them --------------------------------------------------------------------------- */

struct selection {
    int64_t now;
    bool ours;   /* those that are, to which evictions matter; else those to be polled */
    size_t room; /* for so many; without a job they are only counted */
    struct sql_job *job;
};

static void pick(void *data, struct simba_watched *w)
{
    struct selection *p = data;
    if (p->ours ? !sql_poller_is_ours(w, p->now) : !sql_poller_needs_poll(w, p->now))
        return;
    if (p->job == NULL)
        p->room++;
    else if (p->job->count < p->room)
        sql_job_add(p->job, w->mutex, NULL);
}

static size_t count_watched(struct sql *s, int64_t now, bool ours)
{
    struct selection p = {.now = now, .ours = ours};
    s->host->watched(s->host, NULL, pick, &p);
    return p.room;
}

/* Their names in a job, which has room for one more. NULL: out of memory. */
static struct sql_job *collect(struct sql *s, int64_t now, bool ours)
{
    struct selection p = {.now = now, .ours = ours, .room = count_watched(s, now, ours)};
    p.job = sql_job_new(SQL_POLL, p.room + 1);
    if (p.job != NULL)
        s->host->watched(s->host, NULL, pick, &p);
    return p.job;
}

void sql_poller_hint_ours(struct sql *s)
{
    struct sql_job *names = collect(s, simba_now(), true);
    for (size_t i = 0; names != NULL && i < names->count; i++)
        s->host->hint(s->host, names->item[i].mutex);
    free(names);
}

/* ---- polling ------------------------------------------------------------------------------- */

static bool observes_all(const struct sql *s)
{
    return s->host->interest(s->host, "") == SIMBA_OBSERVES;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct sql_item *)a)->mutex, ((const struct sql_item *)b)->mutex);
}

/* One statement for all that is watched, and the row of evictions. */
static void poll_rows(struct sql *s, int64_t now)
{
    struct sql_job *job = collect(s, now, false);
    if (job == NULL)
        return;
    sql_job_add(job, "", NULL);
    qsort(job->item, job->count, sizeof job->item[0], compare_items);
    s->poller.is_under_way = true;
    sql_job_append(s, job);
}

static bool append(struct sql *s, int op)
{
    struct sql_job *job = sql_job_new(op, 0);
    if (job != NULL)
        sql_job_append(s, job);
    return job != NULL;
}

static void poll_now(struct sql *s)
{
    int64_t now = simba_now();
    bool notified = s->connection->session.notifies;
    if (notified && !s->listens) {
        append(s, SQL_LISTEN);
        return; /* and poll when that is done */
    }
    if (notified && s->host->interest(s->host, NULL) == SIMBA_OBSERVES)
        append(s, SQL_OBSERVE);
    if (s->poller.poll_ms == 0 && !s->poller.missed)
        return;
    s->poller.missed = false;
    if (count_watched(s, now, false) > 0 || (!notified && count_watched(s, now, true) > 0))
        poll_rows(s, now);
    if (observes_all(s) && append(s, SQL_DIGEST))
        s->poller.is_under_way = true;
}

static int64_t jittered(struct sql *s, int64_t ms)
{
    return rng_between(&s->reconnect.rng, ms - ms / 8, ms + ms / 8 + 1);
}

/* 0: none. */
static int64_t next_pause(struct sql *s)
{
    struct sql_poller *p = &s->poller;
    if (p->pause_ms < LEAST_MS)
        p->pause_ms = LEAST_MS;
    if (p->pause_ms > p->poll_ms)
        p->pause_ms = p->poll_ms;
    if (s->listens)
        return BEHIND_MS;
    bool only_evictions = p->pause_ms > 0 && p->pause_ms < EVICTIONS_MS && !observes_all(s) &&
                          count_watched(s, simba_now(), false) == 0;
    return only_evictions ? EVICTIONS_MS : p->pause_ms;
}

static void on_poll_timer(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    s->poller.is_set = false;
    if (s->host->interest(s->host, NULL) == SIMBA_NO_INTEREST)
        return;
    if (s->connection == NULL)
        sql_connection_begin(s);
    else if (!s->poller.is_under_way)
        poll_now(s);
    int64_t pause = next_pause(s);
    if (pause > 0 && !s->poller.is_set)
        sql_poller_poll_in(s, jittered(s, pause));
    sql_connection_pump(s);
}

void sql_poller_poll_in(struct sql *s, int64_t ms)
{
    if (s->closing)
        return;
    s->poller.is_set = true;
    handles_start_timer(&s->poller.timer, on_poll_timer, ms);
}

/* Polls that find nothing become rarer, up to the time that was asked for. */
void sql_poller_done(struct sql *s, bool news)
{
    s->poller.is_early = false;
    s->poller.pause_ms = news ? s->poller.pause_ms / 2 : s->poller.pause_ms * 2;
}

/* Whether the next poll is further off than the pause: then nothing was to be polled. */
static bool is_idle(const struct sql_poller *p)
{
    return !p->is_set || (int64_t)uv_timer_get_due_in(&p->timer) > p->pause_ms + p->pause_ms / 8;
}

static void poll_soon(struct sql *s)
{
    struct sql_poller *p = &s->poller;
    p->pause_ms = SOON_MS < p->poll_ms ? SOON_MS : p->poll_ms;
    p->is_early = p->pause_ms > EARLY_MS;
    sql_poller_poll_in(s, jittered(s, p->is_early ? EARLY_MS : p->pause_ms));
}

void sql_poller_refused(struct sql *s, const char *mutex)
{
    if (s->poller.poll_ms > 0 && !s->listens && is_idle(&s->poller) && sql_poller_waits(s, mutex))
        poll_soon(s);
}

void sql_watch(void *store, const char *mutex, enum simba_interest interest)
{
    struct sql *s = store;
    if (mutex == NULL)
        s->poller.digest_known = false;
    else
        s->host->watched(s->host, mutex, forget, NULL);
    if (mutex != NULL && interest == SIMBA_NO_INTEREST)
        sql_queue_left(s, mutex);
    bool notifies =
        s->connection != NULL ? s->connection->session.notifies : s->dialect->can_notify;
    if (interest == SIMBA_NO_INTEREST || (s->poller.poll_ms == 0 && !notifies))
        return;
    if (notifies && (!s->listens || interest == SIMBA_OBSERVES)) {
        sql_poller_poll_in(s, 0);
    } else if (s->listens) {
        if (!s->poller.is_set)
            sql_poller_poll_in(s, jittered(s, BEHIND_MS));
    } else if (s->poller.pause_ms > SOON_MS || is_idle(&s->poller)) {
        poll_soon(s);
    }
}
