/* bench.c: simba-bench, which simba bench starts: how fast this store is from here: a free mutex, a hand-over, renewals; and
 * how many mutexes it would keep at which ttl. It uses the store as programs do, on mutexes of its
 * own, and no faster than --rate says.
 *
 * Stores remember the last token of a name for ever, so the names are drawn from a few sets.
 * Whoever owns the mutex simba-bench-N has the set simba-bench-N.*; the clients of one run are
 * three: one measures, one waits for it, one keeps many. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands/bench.h"
#include "cli/frame.h"
#include "cli/messages.h"
#include "cli/run/signals.h"
#include "cli/shown.h"
#include "lab/bench/bench_report.h"

#define SETS 16
#define KEPT 100 /* mutexes, to measure renewals */
#define FOR_MS 10000
#define FOR_LEAST_MS 1000
#define FOR_MOST_MS 3600000
#define RATE 1000 /* operations of the store per second */
#define RATE_MAX 1000000
#define PHASES 3
#define PAIR_OPERATIONS 2
#define HANDOVER_OPERATIONS 5   /* two acquired, one refused, two released */
#define ASLEEP_US INT64_C(1000) /* until a waiter waits: at least, and at most */
#define ASLEEP_MAX_US INT64_C(200000)
#define RENEW_LEAST_MS 50
#define STATUS_US INT64_C(200000)

struct bench {
    struct cli *c;
    int64_t for_ms;
    long rate;
    struct bench_report report;
    char set[32];
    simba_client *second;
    simba_locker *guard, *one, *other;
    bool on_terminal;
    int64_t status_at;
};

static volatile sig_atomic_t stopped; /* by this signal */

static void on_signal(int number)
{
    stopped = number;
}

/* The first one ends the measurement; a second one does what it always does. */
static void take_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction before, ours = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ending[i], &ours, NULL);
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
    return clock_now() / 1000;
}

/* A signal that ends the measurement ends it, too. */
static void sleep_until(int64_t at)
{
    for (int64_t left; stopped == 0 && (left = at - now_us()) > 0;) {
        struct timespec t = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
        nanosleep(&t, NULL);
    }
}

/* So many operations were begun at that time: when is the next one allowed? */
static int64_t next_at(const struct bench *b, int64_t began, int operations)
{
    return b->rate > 0 ? began + operations * INT64_C(1000000) / b->rate : began;
}

static void show_phase(struct bench *b, const char *what, int64_t until)
{
    int64_t now = now_us();
    char left[24];
    if (!b->on_terminal || now < b->status_at)
        return;
    b->status_at = now + STATUS_US;
    print_status(b->c, "%s, another %s", what,
                 show_duration(until > now ? (until - now + 999) / 1000 : 0, left));
}

/* ---- a free mutex -------------------------------------------------------------------------- */

static int measure_pairs(struct bench *b, int64_t until)
{
    struct samples *s = &b->report.pairs;
    for (int64_t began; stopped == 0 && (began = now_us()) < until && !samples_full(s);) {
        int rc = simba_locker_acquire(b->one, ANSWER_MS);
        if (rc == 0)
            rc = simba_locker_release(b->one);
        if (rc != 0)
            return rc;
        samples_add(s, now_us() - began);
        show_phase(b, "acquire and release", until);
        sleep_until(next_at(b, began, PAIR_OPERATIONS));
    }
    return 0;
}

/* ---- a hand-over --------------------------------------------------------------------------- */

/* The one that waits, on a thread and a client of its own. */
struct bench_waiter {
    simba_locker *locker;
    sem_t go, done;
    bool is_over;
    int code;
    int64_t got_at;
    char why[512];
};

static void *wait_for_mutex(void *arg)
{
    struct bench_waiter *w = arg;
    for (;;) {
        while (sem_wait(&w->go) != 0)
            ;
        if (w->is_over)
            return NULL;
        w->code = simba_locker_acquire(w->locker, ANSWER_MS);
        w->got_at = now_us();
        if (w->code == 0)
            w->code = simba_locker_release(w->locker);
        if (w->code != 0)
            snprintf(w->why, sizeof w->why, "%s", simba_error_text());
        sem_post(&w->done);
    }
}

/* 0, or an error; of the waiter's, its text is in w->why. */
static int hand_over(struct bench *b, struct bench_waiter *w, int64_t asleep_us)
{
    int rc = simba_locker_acquire(b->one, ANSWER_MS);
    if (rc != 0)
        return rc;
    sem_post(&w->go);
    sleep_until(now_us() + asleep_us);
    int64_t began = now_us();
    rc = simba_locker_release(b->one);
    while (sem_wait(&w->done) != 0)
        ;
    if (rc == 0 && w->code == 0 && stopped == 0)
        samples_add(&b->report.handovers, w->got_at - began);
    return rc != 0 ? rc : w->code;
}

static int measure_handovers(struct bench *b, int64_t until, struct bench_waiter *w)
{
    int64_t asleep = 4 * samples_quantile(&b->report.pairs, 0.5);
    pthread_t thread;
    int rc = 0;
    asleep = asleep < ASLEEP_US ? ASLEEP_US : asleep > ASLEEP_MAX_US ? ASLEEP_MAX_US : asleep;
    w->locker = b->other;
    sem_init(&w->go, 0, 0);
    sem_init(&w->done, 0, 0);
    if (pthread_create(&thread, NULL, wait_for_mutex, w) != 0)
        return SIMBA_ELIMIT;
    for (int64_t began; rc == 0 && stopped == 0 && (began = now_us()) < until;) {
        rc = hand_over(b, w, asleep);
        show_phase(b, "hand-over between two clients", until);
        sleep_until(next_at(b, began, HANDOVER_OPERATIONS));
    }
    w->is_over = true;
    sem_post(&w->go);
    pthread_join(thread, NULL);
    return rc;
}

/* ---- renewals ------------------------------------------------------------------------------ */

static void on_event(void *data, const struct simba_event *e)
{
    struct bench_report *r = data;
    if (e->kind != SIMBA_EVENT_EXCHANGE || strcmp(e->name, "renew") != 0 || e->code != 0)
        return;
    samples_add(&r->renewals, e->duration_us);
    bench_report_renewed(r, e->began_us, e->began_us + e->duration_us);
}

static int keep(const struct bench *b, simba_client *client, int64_t renew_ms)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = b->c->ttl_ms;
    o.transition_ms = b->c->transition_ms;
    o.renew_ms = renew_ms < o.ttl_ms / 2 ? renew_ms : o.ttl_ms / 2;
    for (int i = 0; i < KEPT; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        simba_contender *one = NULL;
        snprintf(mutex, sizeof mutex, "%s.%d", b->set, i);
        int rc = simba_contender_create(client, mutex, &o, &one);
        if (rc == 0)
            rc = simba_contender_start(one);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The client is closed before the samples are looked at: then nobody adds to them. */
static int measure_renewals(struct bench *b, int64_t until)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *client = NULL;
    int64_t renew_ms = b->rate > 0 ? (int64_t)KEPT * 1000 / b->rate : 0;
    o.trace = on_event;
    o.trace_data = &b->report;
    int rc = simba_open(b->c->setting[SET_URL].value, &o, &client);
    if (rc == 0)
        rc = keep(b, client, renew_ms > RENEW_LEAST_MS ? renew_ms : RENEW_LEAST_MS);
    while (rc == 0 && stopped == 0 && now_us() < until) {
        show_phase(b, "renewals", until);
        int64_t next = now_us() + STATUS_US;
        sleep_until(next < until ? next : until);
    }
    int closed = simba_close(client, ANSWER_MS);
    return rc != 0 ? rc : closed;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* A set that nobody else measures with. */
static int reserve(struct bench *b)
{
    unsigned first = 0;
    int rc = SIMBA_EHELD;
    (void)!getrandom(&first, sizeof first, 0);
    for (unsigned i = 0; rc == SIMBA_EHELD && i < SETS; i++) {
        snprintf(b->set, sizeof b->set, "simba-bench-%u", (first + i) % SETS);
        simba_locker_destroy(b->guard);
        rc = simba_locker_create(b->c->client, b->set, NULL, &b->guard);
        if (rc == 0)
            rc = simba_locker_acquire(b->guard, 0);
    }
    return rc;
}

static struct step prepare(struct bench *b)
{
    char mutex[SIMBA_MUTEX_MAX + 1];
    simba_client *first = b->c->client;
    int rc = reserve(b);
    if (rc == SIMBA_EHELD)
        return print_error(b->c,
                           "all of simba-bench-0 to simba-bench-%d are held: try again when "
                           "others have measured",
                           SETS - 1);
    if (rc != 0)
        return end_with(cli_fail(b->c, rc));
    struct step step = cli_open(b->c); /* a second client, as another process would be */
    b->second = !step.ends ? b->c->client : NULL;
    b->c->client = first;
    if (step.ends)
        return step;
    snprintf(mutex, sizeof mutex, "%s.one", b->set);
    if ((rc = simba_locker_create(first, mutex, NULL, &b->one)) != 0 ||
        (rc = simba_locker_create(b->second, mutex, NULL, &b->other)) != 0)
        return end_with(cli_fail(b->c, rc));
    return GO_ON;
}

static struct step measure(struct bench *b)
{
    static struct bench_waiter w;
    int64_t began = now_us(), part = b->for_ms * 1000 / PHASES;
    int rc = measure_pairs(b, began + part);
    if (rc == 0 && stopped == 0)
        rc = measure_handovers(b, began + 2 * part, &w);
    if (rc == 0 && stopped == 0)
        rc = measure_renewals(b, began + PHASES * part);
    if (b->on_terminal)
        print_status(b->c, "%s", "");
    if (rc != 0)
        return w.why[0] != '\0' ? print_error(b->c, "%s", w.why) : end_with(cli_fail(b->c, rc));
    b->report.ms = (now_us() - began) / 1000;
    return GO_ON;
}

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct bench *b = data;
    char *end;
    if (id == OPT_RATE) {
        errno = 0;
        b->rate = strtol(value, &end, 10);
        if (errno != 0 || end == value || *end != '\0' || b->rate < 0 || b->rate > RATE_MAX)
            return usage(c, "--rate needs a number from 0 to %d, not '%.40s'", RATE_MAX, value);
        return GO_ON;
    }
    struct step step = cli_take_duration(c, "--for", value, &b->for_ms);
    if (!step.ends && (b->for_ms < FOR_LEAST_MS || b->for_ms > FOR_MOST_MS))
        return usage(c, "--for needs a duration from 1s to 1h, not '%.40s'", value);
    return step;
}

static int run(struct cli *c)
{
    static struct bench b = {.for_ms = FOR_MS, .rate = RATE};
    b.c = c;
    struct step step = cli_take(c, take_option, cli_take_url, &b);
    step = AND_THEN(step, cli_configure(c));
    if (step.ends)
        return step.code;
    if (!bench_report_init(&b.report))
        return print_error(c, "out of memory").code;
    take_signals();
    b.on_terminal = !c->quiet && isatty(STDERR_FILENO) != 0;
    b.report.rate = b.rate;
    step = cli_open(c);
    step = AND_THEN(step, prepare(&b));
    step = AND_THEN(step, measure(&b));
    simba_close(b.second, ANSWER_MS);
    simba_close(c->client, ANSWER_MS); /* gives back what is held */
    if (!step.ends)
        bench_report_print(c, &b.report, stopped != 0);
    bench_report_free(&b.report);
    if (stopped != 0)
        die_of(stopped);
    return step.code;
}

const struct subcommand *const commands[] = {&bench_command, NULL};

int main(int argc, char **argv)
{
    return frame_main(argc, argv, true, run);
}
