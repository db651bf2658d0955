/* listen.c: see listen.h. */
#include "cli/run/listen.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/json.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/metrics_page.h"
#include "cli/run/hindrance.h"
#include "cli/run/outage.h"
#include "cli/run/responder.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define TICKS_PER_TTL 8
#define TICK_LEAST_MS 25
#define TICK_MOST_MS 1250
#define READ_EVERY_TICKS 4   /* half a ttl, as often as an owner renews */
#define READ_TIMEOUT_MS 1000 /* so long at most the end has to wait for the probe */
#define OVERDUE_MS 2000      /* a probe that is so late does not run */
#define ROUNDING_MS 2        /* the library says in whole milliseconds what is left */
#define FAILURE_MAX 600

struct listen {
    const struct run_options *opts;
    struct responder *responder;
    simba_contender *contender; /* one of these two … */
    simba_locker *locker;
    simba_observer *observer; /* … and with a locker, which does not say who has the lock */
    int64_t tick_ms;

    pthread_t probe;
    bool has_probe;
    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t changed;
    bool is_ending;
    int64_t ticked_at;         /* the probe last ran */
    int64_t ask_at;            /* it asks the store again; 0: now */
    int64_t answered_at;       /* the store last answered it; 0: never */
    char failure[FAILURE_MAX]; /* why it did not, the last time; "": it did */
    struct simba_owner owner;  /* as it was when it answered */
    struct simba_note note;    /* the same */
    uint64_t token;            /* the tenure whose renewals are watched … */
    int64_t hold_until;        /* … which lasts until then … */
    int64_t renewed_at;        /* … since it was renewed, or began */
};

/* ---- what the library knows at once -------------------------------------------------------- */

static uint64_t token_now(const struct listen *l)
{
    return l->contender != NULL ? simba_contender_token(l->contender)
                                : simba_locker_token(l->locker);
}

static int64_t remaining_ms(const struct listen *l)
{
    return l->contender != NULL ? simba_contender_remaining(l->contender)
                                : simba_locker_remaining(l->locker);
}

static const char *own_id(const struct listen *l)
{
    return l->contender != NULL ? simba_contender_id(l->contender) : simba_locker_id(l->locker);
}

static struct simba_state state_heard(const struct listen *l)
{
    struct simba_state state = {.reason = SIMBA_UNCHANGED};
    if (l->contender != NULL)
        simba_contender_state(l->contender, &state);
    else if (l->observer != NULL)
        simba_observer_state(l->observer, &state);
    return state;
}

/* ---- the probe ----------------------------------------------------------------------------- */

/* Under the lock: a tenure ended without an answer of the store, so that it does not answer, as far as
 * is known. The probe finds out. */
static void suspect_store(struct listen *l)
{
    char why[OUTAGE_TEXT_MAX];
    snprintf(l->failure, sizeof l->failure, "the lease was lost: %s; the store is being asked",
             outage_explain(l->opts->c->outage, 0, why));
    l->ask_at = 0;
    pthread_cond_signal(&l->changed);
}

/* Under the lock. */
static void watch_renewals(struct listen *l, int64_t now)
{
    uint64_t token = token_now(l);
    int64_t until = now + remaining_ms(l);
    bool is_over = l->token != 0 && token == 0;
    if (is_over && (l->opts->c->outage->is_on || now + ROUNDING_MS >= l->hold_until))
        suspect_store(l);
    if (token != l->token || until > l->hold_until + ROUNDING_MS) {
        l->token = token;
        l->hold_until = until;
        l->renewed_at = now;
    }
}

static void ask_store(struct listen *l)
{
    struct simba_owner owner = {.token = 0};
    struct simba_note note = {.token = 0};
    const struct run_options *opts = l->opts;
    int rc = simba_read_note(opts->c->client, opts->mutex, READ_TIMEOUT_MS, &note, &owner);
    if (rc == SIMBA_EUNSUPPORTED || rc == SIMBA_ESCHEMA) /* there are no notes, or not yet */
        rc = simba_read(opts->c->client, opts->mutex, READ_TIMEOUT_MS, &owner);
    pthread_mutex_lock(&l->lock);
    if (rc == 0) {
        l->answered_at = simba_now();
        l->owner = owner;
        l->note = note;
    }
    snprintf(l->failure, sizeof l->failure, "%s", rc == 0 ? "" : simba_error_cause());
    pthread_mutex_unlock(&l->lock);
}

/* An owner's renewals ask the store as often. */
static void *probe(void *arg)
{
    struct listen *l = arg;
    prctl(PR_SET_NAME, "simba-probe");
    pthread_mutex_lock(&l->lock);
    while (!l->is_ending) {
        l->ticked_at = simba_now();
        watch_renewals(l, l->ticked_at);
        if (l->token == 0 && l->ticked_at >= l->ask_at) {
            l->ask_at = l->ticked_at + READ_EVERY_TICKS * l->tick_ms;
            pthread_mutex_unlock(&l->lock);
            ask_store(l);
            pthread_mutex_lock(&l->lock);
        }
        if (!l->is_ending && (l->ask_at != 0 || l->token != 0))
            thread_wait_ms(&l->changed, &l->lock, l->tick_ms);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- /leader ------------------------------------------------------------------------------- */

static void begin_answer(const struct listen *l, bool is_leader, struct json_buffer *t)
{
    json_buffer_add(t, "{");
    json_buffer_bool_of(t, "leader", is_leader);
    json_buffer_string_of(t, "mutex", l->opts->mutex);
    json_buffer_string_of(t, "id", own_id(l));
}

static void end_answer(const struct listen *l, struct json_buffer *t)
{
    json_buffer_string_of(t, "store", l->opts->c->store);
    json_buffer_add(t, "}\n");
}

/* Under the lock: the owner, as far as we have heard or the probe has read, whichever is the later tenure.
 * What we have heard of may have ended since: then nobody owns, unless the probe has read of another. */
static struct simba_owner owner_known(const struct listen *l)
{
    struct simba_state heard = state_heard(l);
    uint64_t token =
        heard.after.token > heard.before.token ? heard.after.token : heard.before.token;
    return l->owner.token > token ? l->owner : heard.after;
}

/* Not ourselves, since our tenure is over. */
static void write_owner(struct listen *l, struct json_buffer *t)
{
    pthread_mutex_lock(&l->lock);
    struct simba_owner o = owner_known(l);
    json_buffer_name(t, "owner");
    if (o.id[0] == '\0' || simba_owner_is(&o, own_id(l))) {
        json_buffer_add(t, "null");
    } else {
        json_buffer_add(t, "{");
        json_buffer_string_of(t, "id", o.id);
        json_buffer_token_of(t, "token", o.token);
        if (o.acquired_at != 0)
            json_buffer_number_of(t, "held_ms", true, simba_now() - o.acquired_at);
        if (l->note.token == o.token && o.token != 0)
            json_buffer_string_of(t, "note", l->note.text);
        json_buffer_add(t, "}");
    }
    pthread_mutex_unlock(&l->lock);
}

/* All is made ready first, so that the question comes last: between it and the first byte of the
 * answer there is nothing but the server's own work. */
static void on_leader(void *data, struct response *out)
{
    struct listen *l = data;
    struct json_buffer t = {0};
    uint64_t token = token_now(l);
    if (token != 0) {
        begin_answer(l, true, &t);
        json_buffer_token_of(&t, "token", token);
        json_buffer_number_of(&t, "remaining_ms", true, remaining_ms(l));
        end_answer(l, &t);
        if (!t.failed && token_now(l) == token) {
            *out = (struct response){200, HTTP_JSON, t.at, t.length};
            return;
        }
        free(t.at);
        t = (struct json_buffer){0};
    }
    begin_answer(l, false, &t);
    write_owner(l, &t);
    end_answer(l, &t);
    if (!t.failed)
        *out = (struct response){503, HTTP_JSON, t.at, t.length};
    else
        free(t.at);
}

/* ---- /healthz ------------------------------------------------------------------------------ */

/* Under the lock. "": nothing is wrong. */
static void explain_owner(const struct listen *l, int64_t now, char *out, size_t size)
{
    const struct cli *c = l->opts->c;
    char age[24], due[24], why[OUTAGE_TEXT_MAX];
    int64_t late = c->ttl_ms - l->tick_ms, since = now - l->renewed_at;
    out[0] = '\0';
    if (c->outage->is_on)
        snprintf(out, size, "renewals fail: %s", outage_explain(c->outage, 0, why));
    else if (l->renewed_at != 0 && since > late)
        snprintf(out, size, "renewals are late: the last was %s ago, and one is due every %s",
                 show_duration(since, age), show_duration(c->ttl_ms / 2, due));
}

static void explain_candidate(const struct listen *l, int64_t now, char *out, size_t size)
{
    char since[24];
    struct simba_trouble t = {.code = 0};
    int64_t silent = now - l->ticked_at - l->tick_ms - READ_TIMEOUT_MS;
    if (l->contender != NULL)
        simba_contender_trouble(l->contender, &t);
    else
        simba_locker_trouble(l->locker, &t);
    out[0] = '\0';
    if (l->failure[0] != '\0')
        snprintf(out, size, "%s", l->failure);
    else if (hindrance_is_away(&t))
        snprintf(out, size, "attempts to acquire fail: %s", t.text);
    else if (l->answered_at == 0)
        snprintf(out, size, "the store has not answered yet");
    else if (silent > OVERDUE_MS)
        snprintf(out, size, "the store was not asked for %s: was this process stopped?",
                 show_duration(silent, since));
}

/* Of a schedule that leads: nothing runs, or it has to be told the time. "": neither. */
static void explain_clocks(const struct listen *l, bool *is_blocked, char *out, size_t size)
{
    struct simba_metrics m = SIMBA_METRICS_INIT;
    int rc = simba_metrics_read(l->opts->c->client, &m);
    *is_blocked = rc == 0 && m.schedules_blocked > 0;
    out[0] = '\0';
    if (*is_blocked)
        snprintf(out, size,
                 "nothing runs: a tick is claimed that is still long to come. Set the clocks, or "
                 "have it forgotten: simba release --note %s",
                 l->opts->mutex);
    else if (rc == 0 && m.schedules_apart > 0)
        snprintf(out, size,
                 "; but the clock of this machine is not the store's, by which ticks go");
}

static void on_healthz(void *data, struct response *out)
{
    struct listen *l = data;
    const struct run_options *opts = l->opts;
    bool is_blocked;
    char why[FAILURE_MAX + 64], clocks[FAILURE_MAX], text[FAILURE_MAX + 2 * URL_MAX],
        raw[FAILURE_MAX + 2 * URL_MAX];
    char prefix[URL_MAX + SIMBA_MUTEX_MAX + 32];
    int64_t now = simba_now();
    pthread_mutex_lock(&l->lock);
    watch_renewals(l, now);
    bool is_owner = l->token != 0;
    if (is_owner)
        explain_owner(l, now, why, sizeof why);
    else
        explain_candidate(l, now, why, sizeof why);
    pthread_mutex_unlock(&l->lock);
    explain_clocks(l, &is_blocked, clocks, sizeof clocks);
    if (why[0] == '\0' && is_blocked)
        snprintf(why, sizeof why, "%s", clocks);
    snprintf(prefix, sizeof prefix, "mutex '%s' on %s: ", opts->mutex, opts->c->store);
    if (why[0] == '\0')
        snprintf(raw, sizeof raw, "ok: %s%s%s", prefix,
                 is_owner ? "renewals are on time" : "the store answers", clocks);
    else
        snprintf(raw, sizeof raw, "%s%s", prefix, why);
    size_t length = strlen(show_name(raw, text, sizeof text - 1));
    text[length] = '\n';
    text[length + 1] = '\0';
    *out = (struct response){why[0] == '\0' ? 200 : 503, HTTP_TEXT, strdup(text), length + 1};
}

/* ---- /metrics ------------------------------------------------------------------------------ */

static void on_metrics(void *data, struct response *out)
{
    const struct listen *l = data;
    const char *why;
    size_t length;
    char *page = metrics_page(l->opts->c->client, SIMBA_PER_HANDLE, &length, &why);
    if (page != NULL)
        *out = (struct response){200, METRICS_PAGE_TYPE, page, length};
    else
        *out = (struct response){503, HTTP_TEXT, strdup(why), strlen(why)};
}

/* ---- the beginning and the end ------------------------------------------------------------- */

static const struct responder_route routes[] = {
    {"/leader", on_leader},
    {"/healthz", on_healthz},
    {"/metrics", on_metrics},
    {NULL, NULL},
};

struct step listen_open(const struct run_options *opts)
{
    const struct setting *s = &opts->c->setting[SET_LISTEN];
    if (s->value == NULL)
        return GO_ON;
    struct listen *l = calloc(1, sizeof *l);
    if (l == NULL)
        return print_error(opts->c, "cannot listen on '%.200s': out of memory", s->value);
    l->opts = opts;
    struct step step = responder_open(opts->c, s->where, s->by_flag, s->value, &l->responder);
    if (step.ends)
        free(l);
    else
        opts->running->listen = l;
    return step;
}

static struct step start_probe(struct listen *l)
{
    int64_t tick = l->opts->c->ttl_ms / TICKS_PER_TTL;
    l->tick_ms = tick < TICK_LEAST_MS ? TICK_LEAST_MS : tick > TICK_MOST_MS ? TICK_MOST_MS : tick;
    pthread_mutex_init(&l->lock, NULL);
    thread_condition_init(&l->changed);
    int rc = pthread_create(&l->probe, NULL, probe, l);
    l->has_probe = rc == 0;
    if (rc == 0)
        return GO_ON;
    return print_error(l->opts->c, "cannot watch the store for --listen: %s", strerror(rc));
}

/* Its state is asked for, so there is nothing to do. */
static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

struct step listen_begin(const struct run_options *opts, simba_contender *contender,
                         simba_locker *locker)
{
    struct listen *l = opts->running->listen;
    const struct setting *s = &opts->c->setting[SET_LISTEN];
    struct simba_handle_options watch = SIMBA_HANDLE_OPTIONS_INIT;
    watch.on_changed = on_changed;
    if (l == NULL)
        return GO_ON;
    l->contender = contender;
    l->locker = locker;
    if (locker != NULL &&
        simba_observer_create(opts->c->client, opts->mutex, &watch, &l->observer) != 0)
        return print_error(opts->c, "%s", simba_error_text());
    struct step step = start_probe(l);
    step = AND_THEN(
        step, responder_start(l->responder, routes, l, opts->c->setting[SET_SERVE_HOST].value));
    size_t length = strlen(s->value);
    bool is_chosen = length >= 2 && strcmp(s->value + length - 2, ":0") == 0;
    if (!step.ends && (opts->c->verbose > 0 || is_chosen))
        print_level(opts->c, SIMBA_LOG_INFO, "mutex '%s': listening on %s%s", opts->mutex,
                    responder_address(l->responder)->text,
                    address_others(responder_address(l->responder)));
    return step;
}

void listen_end(const struct run_options *opts)
{
    struct listen *l = opts->running->listen;
    if (l == NULL)
        return;
    responder_stop(l->responder);
    if (l->has_probe) {
        pthread_mutex_lock(&l->lock);
        l->is_ending = true;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->probe, NULL);
    }
    opts->running->listen = NULL;
    free(l);
}
