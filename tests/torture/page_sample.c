/* page_sample KIND [SEED [TENURES]]: prints the page of a torture run that never was, for the tests
 * of the page.
 *
 *     good     as it should be
 *     bad      with two overlaps, of which one was seen for a moment only, a token that falls, a
 *              takeover that is late, and a known limit
 *     empty    nobody ever owned anything
 *     hostile  texts that try to be markup, code or no text at all
 */
#include <signal.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "lab/torture/fault.h"
#include "lab/torture/history.h"

#define WORKERS 6
#define MUTEXES 3
#define TENURES_MAX 100000
#define MS INT64_C(1000000)
#define BEGIN (INT64_C(90000) * 1000 * MS) /* a machine that has been up for a day */
#define FIRST_TOKEN 1794844800000000u      /* as stores begin at the clock */
#define BOUND (680 * MS)
#define CALM (600 * MS)
#define FAULTS_BESIDES 64
#define HOSTILE \
    "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ]]> \"'&amp; \\u003c"

static const char *const worker_kinds[WORKERS] = {
    "contender", "locker", "asynchronous locker", "contender without a thread",
    "contender", "locker"};

static const char *hostile_names[FAULT_KINDS];

static struct tenure_seen *tenures;
static struct takeover *takeovers;
static struct entry *faults;
static struct judge_finding findings[5];
static struct run_history run = {
    .begin = BEGIN,
    .workers = WORKERS,
    .mutexes = MUTEXES,
    .lease_ms = 500,
    .bound_ms = BOUND / MS,
    .store = "redis://db1.example:6379/0?ttl=300ms&transition=200ms",
    .fault_names = fault_done,
    .fault_name_count = FAULT_KINDS,
    .worker_kinds = worker_kinds,
};
static uint64_t rng;

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static int64_t between_us(int64_t low, int64_t high)
{
    return rng_between(&rng, low * 1000, high * 1000);
}

static void add_fault(enum fault detail, uint16_t worker, int64_t from, int64_t length)
{
    faults[run.fault_count++] = (struct entry){.kind = ENTRY_FAULT,
                                               .detail = (uint8_t)detail,
                                               .worker = worker,
                                               .before = from,
                                               .after = from + length};
}

/* Most leave by themselves; one of these takes the others away. */
static const enum fault lost_to[] = {FAULT_KILL,   FAULT_KILL,   FAULT_KILL,   FAULT_KILL,
                                     FAULT_FREEZE, FAULT_FREEZE, FAULT_FREEZE, FAULT_SWALLOW,
                                     FAULT_STALL,  FAULT_RESET};
#define LOST (int64_t)(sizeof lost_to / sizeof *lost_to)

/* Ends a tenure at its `last`. When the next one begins. */
static int64_t end_tenure(struct tenure_seen *t)
{
    struct takeover *next = &takeovers[run.takeover_count++];
    *next = (struct takeover){.mutex = t->mutex, .kind = TAKEOVER_EXPIRY, .bound = BOUND};
    int64_t how = rng_between(&rng, 0, 100);
    if (how >= LOST) { /* some need a few tries */
        next->kind = TAKEOVER_HANDOVER;
        next->ns = between_us(200, 900) << rng_between(&rng, 0, how > 95 ? 6 : 2);
        t->left = t->last + 5000;
        t->reason = SIMBA_RELEASED;
        return t->last + next->ns;
    }
    next->ns = between_us(260000, 560000);
    next->bound = lost_to[how] == FAULT_STALL ? 0 : BOUND;
    t->reason = lost_to[how] == FAULT_KILL ? SIMBA_UNCHANGED : SIMBA_EXPIRED;
    int64_t at = t->last + MS;
    add_fault(lost_to[how], t->worker, at,
              lost_to[how] == FAULT_RESET ? 0 : between_us(50000, 900000));
    struct entry death = {
        .kind = ENTRY_DEATH, .detail = DEATH_BY_US, .code = SIGKILL, .before = at};
    death.worker = t->worker;
    death.life = t->life;
    if (lost_to[how] == FAULT_KILL)
        faults[run.fault_count++] = death;
    return t->last + next->ns;
}

static int64_t fill_mutex(uint16_t mutex, size_t count)
{
    int64_t now = BEGIN + between_us(1000, 40000);
    uint64_t token = FIRST_TOKEN + mutex * 1000u;
    uint16_t lives[WORKERS] = {0};
    for (size_t i = 0; i < count; i++) {
        uint16_t worker = (uint16_t)rng_between(&rng, 0, WORKERS);
        struct tenure_seen *t = &tenures[run.tenure_count++];
        token += (uint64_t)rng_between(&rng, 1, 90000);
        *t = (struct tenure_seen){.token = token,
                                  .mutex = mutex,
                                  .worker = worker,
                                  .life = lives[worker],
                                  .first = now,
                                  .last = now + between_us(300, 90000)};
        if (i % 37 == 5)
            t->last = t->first - 2000; /* one answer */
        run.answers += t->last < t->first ? 1 : 2 + (uint64_t)(t->last - t->first) / 100000;
        now = end_tenure(t);
        lives[worker] = (uint16_t)(lives[worker] + (t->reason == SIMBA_UNCHANGED));
    }
    return now;
}

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->before < y->before ? -1 : x->before > y->before;
}

static void fill(size_t count)
{
    tenures = need(calloc(count + 1, sizeof *tenures));
    takeovers = need(calloc(count + 1, sizeof *takeovers));
    faults = need(calloc(2 * count + FAULTS_BESIDES, sizeof *faults));
    run.tenures = tenures, run.takeovers = takeovers, run.faults = faults, run.findings = findings;
    for (uint16_t mutex = 0; mutex < MUTEXES; mutex++) {
        int64_t end = fill_mutex(mutex, count / MUTEXES + (mutex < count % MUTEXES));
        run.end = end > run.end ? end : run.end;
    }
    run.end += CALM / 2;
    run.calm = run.end - CALM;
    for (int64_t at = BEGIN, i = 0; at < run.calm - 4000 * MS && i < FAULTS_BESIDES;
         i++, at += between_us(2000000, 9000000))
        add_fault(i % 2 == 0 ? FAULT_SERVER_FREEZE : FAULT_DELAY, i % 2 == 0 ? FAULT_ON_ALL : 3, at,
                  between_us(100000, 500000));
    qsort(faults, run.fault_count, sizeof *faults, by_time);
}

static void find(enum finding_kind kind, struct tenure_seen *t, int64_t at, const char *text)
{
    struct judge_finding *f = &findings[run.finding_count++];
    *f = (struct judge_finding){
        .kind = kind, .at = at, .worker = t->worker, .mutex = t->mutex, .token = t->token};
    (void)snprintf(f->text, sizeof f->text, "%s", text);
    t->is_wrong = kind == FINDING_WRONG;
}

static void spoil(size_t count)
{
    size_t i = count / 2; /* in the second mutex */
    while (tenures[i].left == 0 || tenures[i].worker == tenures[i + 1].worker ||
           tenures[i].last < tenures[i].first ||
           tenures[i + 1].last < tenures[i + 1].first + 10 * MS)
        i++;
    struct tenure_seen *t = &tenures[i + 1];
    tenures[i].last = t->first + 3 * MS;
    find(FINDING_WRONG, t, t->first, "two owners at once, for 3 ms");
    tenures[i].is_wrong = true;
    t = &tenures[count - 9];
    t->token = t[-1].token - 7;
    find(FINDING_WRONG, t, t->first, "its token is not above that of the tenure before");
    takeovers[count / 4].kind = TAKEOVER_EXPIRY;
    takeovers[count / 4].bound = BOUND;
    takeovers[count / 4].ns = BOUND * 14 / 10;
    find(FINDING_LATE, &tenures[count / 4 + 1], tenures[count / 4 + 1].first,
         "owned 952 ms after the end of the last tenure, 680 ms are allowed");
    while (tenures[i].last < tenures[i].first + 10 * MS ||
           tenures[i + 1].last > tenures[i + 1].first)
        i++;
    t = &tenures[i + 1]; /* one answer: between `last` and `first` */
    t->last = tenures[i].first + 2 * MS;
    t->first = t->last + 2000;
    find(FINDING_WRONG, t, t->first, "two owners at once, seen for a moment");
    find(FINDING_LIMIT, &tenures[5], tenures[5].first,
         "two owners at once after an eviction by force");
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    run.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    size_t count = argc > 3 ? strtoul(argv[3], NULL, 0) : 1000;
    rng = run.seed;
    bool is_bad = strcmp(kind, "bad") == 0, is_hostile = strcmp(kind, "hostile") == 0,
         is_empty = strcmp(kind, "empty") == 0;
    if ((!is_bad && !is_hostile && !is_empty && strcmp(kind, "good") != 0) || count > TENURES_MAX ||
        count < 40) {
        (void)fprintf(stderr,
                      "usage: page_sample good|bad|empty|hostile [SEED [40 to %d TENURES]]\n",
                      TENURES_MAX);
        return 64;
    }
    fill(is_empty ? 0 : count);
    if (is_bad || is_hostile)
        spoil(count);
    (void)snprintf(run.command, sizeof run.command, "simba torture '%s' --seed %llu", run.store,
                   (unsigned long long)run.seed);
    if (is_hostile) {
        (void)snprintf(run.store, sizeof run.store, "%s", HOSTILE);
        (void)snprintf(run.command, sizeof run.command, "\xff\xc0\x80\x1b[31m\xe2\x80\xae\n%s",
                       HOSTILE);
        (void)snprintf(findings[0].text, sizeof findings[0].text,
                       "%s \xed\xa0\x80 \xf0\x9f\x92\xa5", HOSTILE);
        for (size_t i = 0; i < FAULT_KINDS; i++)
            hostile_names[i] = i % 2 == 0 ? HOSTILE : NULL;
        run.fault_names = hostile_names;
        run.seed = UINT64_MAX;
        findings[1].token = tenures[count - 9].token = UINT64_MAX;
    }
    int code = page_write(stdout, &run);
    if (code != 0)
        perror("page_sample");
    free(tenures);
    free(takeovers);
    free(faults);
    return code == 0 ? 0 : 1;
}
