/* doctor.c: simba doctor: does the store answer, how fast, may we write, does anything break a
 * guarantee; and then which of them hold, and why. It uses the store as any program would, on a mutex
 * of its own. */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define TIMEOUT_MS 5000
#define READS 20
#define EXIT_ILL 1
#define TEXT_MAX 4096
#define SLOW_PART \
    8 /* an answer should come within this part of the ttl: it is an attempt's timeout */
#define PUSH_MS 400 /* what is handed over sooner was pushed; who looks by itself takes longer */

enum level { OK, NOTE, BAD, LEVELS };

struct doctor {
    struct cli *c;
    int worst;
    int64_t median_us;
    uint64_t tokens[2];
    int64_t handover_ms; /* -1: unknown */
    bool can_write, tokens_rise;
};

__attribute__((format(printf, 4, 5))) static void find(struct doctor *d, enum level level,
                                                       const char *topic, const char *format, ...)
{
    static const char *const names[LEVELS] = {"ok", "note", "BAD"};
    static const char *const colours[LEVELS] = {"\033[32m", "\033[33m", "\033[31m"};
    bool colour = wants_colour();
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if ((int)level > d->worst)
        d->worst = (int)level;
    if (d->c->json)
        print_json("{s:s, s:s, s:s, s:s}", "result", level == BAD ? "bad" : names[level], "topic",
                   topic, "text", text, "store", d->c->store);
    else
        printf("%s%-4s%s  %-10s  %s\n", colour ? colours[level] : "", names[level],
               colour ? "\033[0m" : "", topic, text);
}

/* ---- the store ----------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool reach(struct doctor *d, const char *mutex)
{
    int64_t took[READS] = {0};
    struct simba_owner owner;
    for (int i = -1; i < READS; i++) { /* the first one connects */
        int64_t began = now_us();
        if (simba_read(d->c->client, mutex, TIMEOUT_MS, &owner) != 0) {
            find(d, BAD, "reach", "%s", simba_error_text());
            return false;
        }
        if (i < 0)
            find(d, OK, "reach", "%s answers, the first time after %.1f ms", d->c->store,
                 (double)(now_us() - began) / 1000);
        else
            took[i] = now_us() - began;
    }
    qsort(took, READS, sizeof *took, by_size);
    d->median_us = took[READS / 2];
    find(d, took[READS - 1] / 1000 * SLOW_PART > d->c->ttl_ms ? BAD : OK, "round trip",
         "%.2f ms; of %d at least %.2f, at most %.2f ms; a renewal has %lld ms for each attempt",
         (double)d->median_us / 1000, READS, (double)took[0] / 1000, (double)took[READS - 1] / 1000,
         (long long)d->c->ttl_ms / SLOW_PART);
    return true;
}

/* Two tenures of one mutex, by two clients; the second waits for the first. */
struct waiter {
    pthread_t thread;
    simba_locker *l;
    int code;
    int64_t got_at;
    char why[TEXT_MAX];
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    w->code = simba_locker_acquire(w->l, TIMEOUT_MS);
    w->got_at = simba_now();
    if (w->code != 0)
        snprintf(w->why, sizeof w->why, "%s", simba_error_text());
    return NULL;
}

/* False: why is what went wrong on another thread; "": it was on this one. */
static bool hand_over(struct doctor *d, simba_locker *first, simba_locker *second, char *why)
{
    struct waiter w = {.l = second};
    const struct timespec pause = {.tv_nsec = 300000000}; /* until it waits; else it is no test */
    if (simba_locker_acquire(first, TIMEOUT_MS) != 0)
        return false;
    d->can_write = true;
    d->tokens[0] = simba_locker_token(first);
    if (pthread_create(&w.thread, NULL, wait_for_it, &w) != 0)
        return false;
    nanosleep(&pause, NULL);
    int64_t began = simba_now();
    bool done = simba_locker_release(first) == 0;
    pthread_join(w.thread, NULL);
    snprintf(why, TEXT_MAX, "%s", done ? w.why : "");
    if (!done || w.code != 0)
        return false;
    d->handover_ms = w.got_at - began;
    d->tokens[1] = simba_locker_token(second);
    d->tokens_rise = d->tokens[1] > d->tokens[0];
    return simba_locker_release(second) == 0;
}

static void use(struct doctor *d, const char *mutex)
{
    simba_locker *first = NULL, *second = NULL;
    simba *other = d->c->client;
    char why[TEXT_MAX] = "";
    int code = cli_open(d->c); /* a second client, as another process would be */
    bool done = code == 0 && simba_locker_create(other, mutex, NULL, &first) == 0 &&
                simba_locker_create(d->c->client, mutex, NULL, &second) == 0 &&
                hand_over(d, first, second, why);
    if (!done)
        find(d, BAD, "rights", "%s", why[0] != '\0' ? why : simba_error_text());
    else
        find(d, OK, "rights", "a mutex was taken, handed over and given back");
    if (done && d->handover_ms <= PUSH_MS)
        find(d, OK, "hand-over",
             "%lld ms from a release to the next owner: it was told, or has just looked",
             (long long)d->handover_ms);
    else if (done)
        find(d, NOTE, "hand-over",
             "%lld ms from a release to the next owner: nobody told it, who waits asks by itself",
             (long long)d->handover_ms);
    simba_locker_destroy(first);
    simba_locker_destroy(second);
    if (code == 0)
        simba_close(d->c->client, TIMEOUT_MS);
    d->c->client = other;
}

static void on_finding(void *data, enum simba_level level, const char *line)
{
    find(data,
         level == SIMBA_LOG_ERROR  ? BAD
         : level == SIMBA_LOG_WARN ? NOTE
                                   : OK,
         "store", "%s", line);
}

static void ask_store(struct doctor *d)
{
    int rc = simba_diagnose(d->c->client, TIMEOUT_MS, on_finding, d);
    if (rc != 0)
        find(d, rc == SIMBA_EUNSUPPORTED ? NOTE : BAD, "store", "%s", simba_error_text());
}

/* ---- ourselves ----------------------------------------------------------------------------------- */

static void look_at_settings(struct doctor *d)
{
    const struct cli *c = d->c;
    long long ttl = (long long)c->ttl_ms, transition = (long long)c->transition_ms;
    find(d, OK, "lease", "ttl %lld ms from %s, transition %lld ms from %s", ttl,
         c->setting[SET_TTL].where, transition, c->setting[SET_TRANSITION].where);
    if (transition == 0)
        find(d, NOTE, "lease",
             "transition is 0: a renewal that is late by anything costs the tenure");
    if (ttl + transition < 2000)
        find(
            d, NOTE, "lease",
            "shorter than 2 s: on a busy machine tenures are lost often, though never overlapping");
    if (c->setting[SET_ID].value != NULL)
        find(d, NOTE, "id",
             "set by %s: it must be unique; with two of the same a lost answer takes a lease to be "
             "resolved",
             c->setting[SET_ID].where);
}

static void conclude(struct doctor *d)
{
    double lease = (double)d->c->ttl_ms + (double)d->c->transition_ms, ttl = (double)d->c->ttl_ms;
    double quarter = (double)d->c->transition_ms / 4;
    double margin = quarter > lease / 10 ? quarter : lease / 10;
    margin = margin < 1000 ? margin : 1000;
    if (d->worst == BAD)
        find(d, BAD, "exclusion", "not promised: see what is BAD above");
    else
        find(d, OK, "exclusion",
             "at most one owner at a time: the store applies one operation at a time, and an owner "
             "stops before its lease of %.0f ms ends",
             lease);
    find(d, d->tokens_rise ? OK : BAD, "fencing", "tokens %s: %llu, then %llu",
         d->tokens_rise ? "rise" : "do not rise", (unsigned long long)d->tokens[0],
         (unsigned long long)d->tokens[1]);
    find(d, d->can_write ? OK : BAD, "liveness",
         "after a crash another owns within %.1f s at the latest", lease * 1.01 / 1000 + 1.5);
    find(d, OK, "blips", "a store that is away for less than %.1f s costs no tenure",
         (lease * 0.99 - margin - ttl / 2 - ttl / 4) / 1000);
}

static int run(struct cli *c)
{
    struct doctor d = {.c = c, .handover_ms = -1};
    char mutex[SIMBA_MUTEX_MAX + 1];
    int code = cli_take(c, NULL, cli_take_url, NULL);
    if (code < 0)
        code = cli_configure(c);
    if (code >= 0)
        return code;
    if ((code = cli_open(c)) != 0)
        return code;
    snprintf(mutex, sizeof mutex, "simba.doctor.%lld.%d", (long long)simba_now(), (int)getpid());
    look_at_settings(&d);
    bool reached = reach(&d, mutex);
    if (reached)
        use(&d, mutex);
    ask_store(&d); /* it may know why it cannot be reached */
    if (reached)
        conclude(&d);
    simba_close(c->client, TIMEOUT_MS);
    return !reached ? EXIT_TROUBLE : d.worst == BAD ? EXIT_ILL : 0;
}

const struct command doctor_command = {
    .name = "doctor",
    .words = "[URL]",
    .summary = "is the store fit for use, and what is guaranteed",
    .help =
        "Reaches the store, measures round trips, takes and hands over a mutex of its own "
        "(simba.doctor.…),\nasks the store how it is set up, and says which guarantees hold, and "
        "why. Each "
        "line is ok, a note,\nor BAD: something breaks a guarantee.\n"
        "--json: result (ok, note, bad), topic, text, store.\n\n"
        "Exit status: 0 fit; 1 something is BAD; 125 the store does not answer; 64 wrong usage.\n\n"
        "Examples:\n"
        "  simba doctor\n"
        "  simba doctor redis://locks.example.org/0 --ttl 5s\n",
    .run = run,
};
