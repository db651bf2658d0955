/* doctor.c: simba doctor: does the store answer, how fast, may we write, does anything break a
 * guarantee; and then which of them hold, and why. It uses the store as any program would, on a
 * mutex of its own. */
#include <assert.h>
#include <pthread.h>
#include <simba/backend.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/lease_policy.h"
#include "cli/shown.h"
#include "cli/terminal.h"
#include "core/period.h"

#define TIMEOUT_MS ANSWER_MS
#define READS 20
/* An answer that takes more of what a renewal has for an attempt is near to be too late. */
#define MEDIAN_PART 4
#define SLOWEST_PART 2
#define EXIT_ILL 1
#define TEXT_MAX 4096
#define PUSH_MS 400 /* what is handed over sooner was pushed; who looks by itself takes longer */

enum level { OK, NOTE, BAD, LEVELS };

struct doctor {
    struct cli *c;
    struct period period; /* as contenders have it */
    int worst;
    int64_t median_us;
    uint64_t tokens[2];
    int64_t handover_ms; /* -1: unknown */
    enum level taking;   /* how bad it is that a mutex could not be taken twice; OK: it could */
    bool can_write;      /* it could once */
    bool two_may_own;    /* so the store says, under a condition */
    int64_t lease;       /* as the store keeps it */
    int64_t outage;      /* it may be away for so long */
};

__attribute__((format(printf, 4, 5))) static void find(struct doctor *d, enum level level,
                                                       const char *topic, const char *format, ...)
{
    static const char *const names[LEVELS] = {"ok", "note", "BAD"};
    static const char *const colours[LEVELS] = {"\033[32m", "\033[33m", "\033[31m"};
    bool colour = wants_colour();
    char text[TEXT_MAX], shown[TEXT_MAX];
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
               colour ? "\033[0m" : "", topic, show_name(text, shown, sizeof shown));
}

/* ---- the store ----------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t now_us(void)
{
    return clock_now() / 1000;
}

/* What takes most of an attempt today takes more than all of it when the store has more to do. */
static void tell_of_round_trip(struct doctor *d, const int64_t took[READS])
{
    int64_t attempt_us = d->period.attempt / (NS_PER_MS / 1000), slowest = took[READS - 1];
    bool is_late = slowest > attempt_us;
    bool is_slow = slowest > attempt_us / SLOWEST_PART || d->median_us > attempt_us / MEDIAN_PART;
    char figures[256];
    snprintf(
        figures, sizeof figures,
        "%.2f ms; of %d at least %.2f, at most %.2f ms; a renewal has %lld ms for each attempt",
        (double)d->median_us / 1000, READS, (double)took[0] / 1000, (double)slowest / 1000,
        (long long)(attempt_us / 1000));
    if (!is_slow && !is_late)
        find(d, OK, "round trip", "%s", figures);
    else
        find(
            d, is_late ? BAD : NOTE, "round trip",
            "%s, and the slowest took %lld %% of it: %s, and tenures are lost. Use a store that is "
            "nearer or less busy, or a longer ttl (an attempt has an eighth of it, and at most "
            "command_timeout)",
            figures, (long long)(slowest * 100 / attempt_us),
            is_late ? "renewals fail at such times" : "if the store gets slower, renewals fail");
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
    tell_of_round_trip(d, took);
    return true;
}

/* Two tenures of one mutex, by two clients; the second waits for the first. */
struct trial {
    simba_locker *locker;
    pthread_t thread;
    int code;
    int64_t got_at;
    char why[TEXT_MAX];
};

static void *take_mutex(void *arg)
{
    struct trial *t = arg;
    t->code = simba_locker_acquire(t->locker, TIMEOUT_MS);
    if (t->code == SIMBA_ETIMEOUT) /* it may just have become free */
        t->code = simba_locker_acquire(t->locker, 0);
    t->got_at = simba_now();
    if (t->code != 0)
        snprintf(t->why, sizeof t->why, "%s", simba_error_text());
    return NULL;
}

static bool fail(struct doctor *d, int code, const char *why)
{
    d->taking = BAD;
    find(d, BAD, code == SIMBA_EDENIED ? "rights" : "use", "%s", why);
    return false;
}

/* Who holds the mutex of all doctors is most likely one of them, or one that was killed and
 * whose lease runs out; and a store that may have forgotten owners grants nothing for a while.
 * Neither is a fault. */
static bool explain(struct doctor *d, const char *mutex, const struct trial *first,
                    const struct trial *failed)
{
    struct simba_owner owner;
    bool late = failed->code == SIMBA_ETIMEOUT || failed->code == SIMBA_EHELD ||
                failed->code == SIMBA_ENOTYET;
    if (!late || simba_read(d->c->client, mutex, TIMEOUT_MS, &owner) != 0)
        return fail(d, failed->code, failed->why);
    bool is_free = owner.id[0] == '\0';
    bool is_ours = strcmp(owner.id, simba_locker_id(first->locker)) == 0 ||
                   strcmp(owner.id, simba_locker_id(failed->locker)) == 0;
    if (d->can_write && (is_free || is_ours))
        return fail(d, failed->code, failed->why);
    d->taking = NOTE;
    if (is_free)
        find(d, NOTE, "rights",
             "not tried: nobody owns %s, but the store grants nothing yet; see store", mutex);
    else
        find(d, NOTE, "rights", "not tried%s: %s is held by %s, perhaps another doctor; ask again",
             d->can_write ? " to the end" : "", mutex, owner.id);
    return false;
}

static bool hand_over(struct doctor *d, const char *mutex, struct trial *first,
                      struct trial *second)
{
    const struct timespec pause = {.tv_nsec = 300000000}; /* until it waits; else it is no test */
    take_mutex(first);
    if (first->code != 0)
        return explain(d, mutex, first, first);
    d->can_write = true;
    d->tokens[0] = simba_locker_token(first->locker);
    if (pthread_create(&second->thread, NULL, take_mutex, second) != 0)
        return fail(d, SIMBA_ELIMIT, "cannot start a thread");
    nanosleep(&pause, NULL);
    int64_t began = simba_now();
    int released = simba_locker_release(first->locker);
    if (released != 0)
        fail(d, released, simba_error_text());
    pthread_join(second->thread, NULL);
    if (released != 0)
        return false;
    if (second->code != 0)
        return explain(d, mutex, first, second);
    d->handover_ms = second->got_at - began;
    d->tokens[1] = simba_locker_token(second->locker);
    released = simba_locker_release(second->locker);
    return released == 0 || fail(d, released, simba_error_text());
}

static void tell_of_hand_over(struct doctor *d)
{
    find(d, OK, "rights", "a mutex was taken, handed over and given back");
    if (d->handover_ms <= PUSH_MS)
        find(d, OK, "hand-over",
             "%lld ms from a release to the next owner: the store woke it, or it has just polled",
             (long long)d->handover_ms);
    else
        find(
            d, NOTE, "hand-over",
            "%lld ms from a release to the next owner: the store did not wake it, waiters poll; or "
            "another doctor came in between",
            (long long)d->handover_ms);
}

static void use(struct doctor *d, const char *mutex)
{
    struct trial first = {.code = 0}, second = {.code = 0};
    simba_client *other = d->c->client;
    struct step step = cli_open(d->c); /* a second client, as another process would be */
    int created = step.ends ? SIMBA_ESTORE : 0;
    if (created == 0)
        created = simba_locker_create(other, mutex, NULL, &first.locker);
    if (created == 0)
        created = simba_locker_create(d->c->client, mutex, NULL, &second.locker);
    if (created != 0)
        fail(d, created, simba_error_text());
    else if (hand_over(d, mutex, &first, &second))
        tell_of_hand_over(d);
    simba_locker_destroy(first.locker);
    simba_locker_destroy(second.locker);
    if (!step.ends)
        simba_close(d->c->client, TIMEOUT_MS);
    d->c->client = other;
}

/* Decides by the kind, the level and the figures; the text is only shown. */
static void on_finding(void *data, const struct simba_finding *f)
{
    struct doctor *d = data;
    d->two_may_own = d->two_may_own || f->kind == SIMBA_FINDING_TWO_OWNERS;
    if (f->kind == SIMBA_FINDING_LEASE) {
        d->lease = f->lease_ms * NS_PER_MS;
        if (f->outage_ms * NS_PER_MS < d->outage)
            d->outage = f->outage_ms * NS_PER_MS;
    }
    find(d,
         f->level == SIMBA_LOG_ERROR  ? BAD
         : f->level == SIMBA_LOG_WARN ? NOTE
                                      : OK,
         "store", "%s", f->text);
}

static void ask_store(struct doctor *d)
{
    int rc = simba_examine(d->c->client, TIMEOUT_MS, on_finding, d);
    if (rc != 0)
        find(d, rc == SIMBA_EUNSUPPORTED ? NOTE : BAD, "store", "%s", simba_error_text());
}

/* ---- ourselves ----------------------------------------------------------------------------- */

static void check_settings(struct doctor *d)
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

static void conclude_exclusion(struct doctor *d)
{
    int64_t lease = d->lease < d->period.lease ? d->lease : d->period.lease;
    if (d->worst == BAD)
        find(d, BAD, "exclusion", "not promised: see what is BAD above");
    else if (d->two_may_own)
        find(d, NOTE, "exclusion", "at most one owner at a time, but for what is noted above");
    else
        find(d, OK, "exclusion",
             "at most one owner at a time: the store applies one operation at a time, and an owner "
             "stops before its lease of %lld ms ends",
             (long long)(lease / NS_PER_MS));
}

static void conclude_fencing(struct doctor *d)
{
    bool rise = d->tokens[1] > d->tokens[0];
    if (!d->can_write)
        find(d, d->taking, "fencing", "not tried: no mutex could be taken");
    else if (d->tokens[1] == 0)
        find(d, d->taking, "fencing", "not tried: a mutex could be taken only once");
    else
        find(d, rise ? OK : BAD, "fencing", "tokens %s: %llu, then %llu",
             rise ? "rise" : "do not rise", (unsigned long long)d->tokens[0],
             (unsigned long long)d->tokens[1]);
}

/* "850 ms", "7.5 s", rounded down; out holds at least 24 bytes. */
static const char *show_least(int64_t ns, char *out)
{
    long long ms = (long long)(ns / NS_PER_MS);
    if (ms < 1000)
        snprintf(out, 24, "%lld ms", ms > 0 ? ms : 0);
    else
        snprintf(out, 24, "%lld.%lld s", ms / 1000, ms % 1000 / 100);
    return out;
}

/* Who holds a lease by the library may renew until its end; a command is told to end before. */
static void conclude_blips(struct doctor *d)
{
    int64_t kill_after = policy_kill_after(d->period.ttl, d->period.transition);
    char tenure[24], command[24], before[24];
    find(d, OK, "blips",
         "a store that is away for less than %s costs no tenure of a program that uses the "
         "library; under simba lock, elect and schedule it is %s, since CMD is told to end %s "
         "(--kill-after) before its lease does",
         show_least(d->outage, tenure), show_least(d->outage - kill_after, command),
         show_least(kill_after, before));
}

static void conclude_liveness(struct doctor *d)
{
    long long ms = (long long)(policy_takeover(&d->period, d->lease) / NS_PER_MS) + 99;
    if (d->can_write)
        find(d, OK, "liveness",
             "after a crash another owns within %lld.%lld s of the last renewal, and one exchange",
             ms / 1000, ms % 1000 / 100);
    else
        find(d, d->taking, "liveness", "not promised: no mutex could be taken");
}

/* Never better than it is: an outage is rounded down, a wait up. */
static void conclude(struct doctor *d)
{
    conclude_exclusion(d);
    conclude_fencing(d);
    conclude_liveness(d);
    conclude_blips(d);
}

/* As the client that was just opened has it, which has checked it. */
static void find_period(struct doctor *d)
{
    const struct cli *c = d->c;
    struct period_options o = {c->ttl_ms, c->transition_ms, -1, -1, -1, -1, -1};
    char *timeout = config_in_url(c->setting[SET_URL].value, "command_timeout");
    const char *why;
    if (timeout != NULL)
        simba_duration_parse(timeout, &o.command_timeout_ms);
    free(timeout);
    int rc = period_init(&d->period, &o, &why);
    assert(rc == 0);
    d->lease = d->period.lease; /* unless the store says otherwise */
    d->outage = policy_outage(&d->period);
}

static int run(struct cli *c)
{
    struct doctor d = {.c = c, .handover_ms = -1};
    char mutex[SIMBA_MUTEX_MAX + 1];
    struct step step = cli_take(c, NULL, cli_take_url, NULL);
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, cli_open(c));
    if (step.ends)
        return step.code;
    /* The same each time, since stores remember the last token of a name for ever; and one that
     * does not grow in number with containers, as names of hosts do. */
    snprintf(mutex, sizeof mutex, "simba.doctor.%lu", (unsigned long)geteuid());
    find_period(&d);
    check_settings(&d);
    bool reached = reach(&d, mutex);
    if (reached)
        use(&d, mutex);
    ask_store(&d); /* it may know why it cannot be reached */
    if (reached)
        conclude(&d);
    simba_close(c->client, TIMEOUT_MS);
    return !reached ? EXIT_TROUBLE : d.worst == BAD ? EXIT_ILL : 0;
}

const struct subcommand doctor_command = {
    .name = "doctor",
    .operands = "[URL]",
    .summary = "is the store fit for use, and what is guaranteed",
    .help =
        "Reaches the store, measures round trips, takes and hands over a mutex of its own "
        "(simba.doctor.UID),\nasks the store how it is set up, and says which guarantees hold, and "
        "why. Each "
        "line is ok, a note,\nor BAD: something breaks a guarantee.\n"
        "--json: result (ok, note, bad), topic, text, store.\n\n"
        "Exit status: 0 fit; 1 something is BAD; 125 the store does not answer; 64 wrong usage.\n\n"
        "Examples:\n"
        "  simba doctor\n"
        "  simba doctor redis://locks.example.org/0 --ttl 5s\n",
    .run = run,
};
