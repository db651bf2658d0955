/* main.c: runs worlds, many of them, and shows what they went through.
 *
 *   sim [--seed S] [--runs N] [--events E] [--clients C] [--seconds T] [--trace] [--quiet]
 *
 * Seeds S, S+1, … each make one world. A broken promise prints its seed and the end of its trace;
 * `sim --seed THAT --runs 1 --trace` shows it whole. Every 64th world runs twice and must give the
 * same hash both times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

#define TRACE_LINES 60
#define TWICE_EVERY 64

struct settings {
    uint64_t seed, runs, events;
    unsigned clients;
    double seconds; /* 0: no limit */
    bool trace, quiet;
};

static char last_lines[TRACE_LINES][200];
static size_t lines;

#define LINE_FORMAT "[%12.6f] %s"

static void keep_line(void *data, int64_t now, const char *text)
{
    (void)data;
    snprintf(last_lines[lines++ % TRACE_LINES], sizeof last_lines[0], LINE_FORMAT,
             (double)now / 1e9, text);
}

static void print_line(void *data, int64_t now, const char *text)
{
    (void)data;
    printf(LINE_FORMAT "\n", (double)now / 1e9, text);
}

static unsigned clients_of(const struct settings *s, uint64_t seed)
{
    uint64_t random = seed;
    return s->clients != 0 ? s->clients : (unsigned)rng_between(&random, 2, 8);
}

static bool run_world(const struct settings *s, uint64_t seed, struct tally *tally, uint64_t *hash,
                      void (*trace)(void *, int64_t, const char *), char *failure, size_t size)
{
    struct world *w = world_make(seed, clients_of(s, seed), s->events, tally);
    w->tracing = trace != NULL;
    w->trace = trace;
    bool ok = world_run(w);
    snprintf(failure, size, "%s", w->failure);
    *hash = w->hash;
    world_free(w);
    return ok;
}

static void show_failure(const struct settings *s, uint64_t seed)
{
    struct tally unused = {.events = 0};
    char failure[200];
    uint64_t hash;
    lines = 0;
    run_world(s, seed, &unused, &hash, keep_line, failure, sizeof failure);
    for (size_t i = lines > TRACE_LINES ? lines - TRACE_LINES : 0; i < lines; i++)
        printf("  %s\n", last_lines[i % TRACE_LINES]);
    printf("BROKEN with seed %" PRIu64 ": %s\n", seed, failure);
    printf("again: sim --seed %" PRIu64 " --runs 1 --events %" PRIu64 " --trace\n", seed,
           s->events);
}

/* Cells that cannot be filled: what an idle or ended machine does not have cannot be hurt. */
static bool is_impossible(enum fault f, enum column c)
{
    switch (f) {
    case FAULT_LOSE_REQUEST:
    case FAULT_FAIL:
    case FAULT_DELAY_REQUEST:
    case FAULT_DUPLICATE: /* strike when a request is sent; these two send none */
        return c == COLUMN_IDLE || c == COLUMN_ENDED;
    case FAULT_LATE_CALLBACK: /* on_acquired in HOLDING, on_released in DRAINING and ENDED, on_closed
                                 in IDLE; on_stopped hardly ever in another one */
    case FAULT_SLOW_CALLBACK:
    case FAULT_HANG_CALLBACK:
    case FAULT_REENTER:
        return c == COLUMN_CONTENDING || c == COLUMN_RETURNING;
    case FAULT_LEAVE: /* who waits contends, or what it had before is kept or being given back */
        return c == COLUMN_IDLE || c == COLUMN_HOLDING;
    case FAULT_STALL: /* of an owner */
    case FAULT_RESIGN:
        return c != COLUMN_HOLDING;
    case FAULT_KEEP_NODE: /* who holds or drains has nothing to delete, or hardly ever */
        return c != COLUMN_CONTENDING && c != COLUMN_RETURNING;
    default:
        return false;
    }
}

static int show_summary(const struct tally *t)
{
    static const char *const columns[] = {"idle",     "contending", "holding",
                                          "draining", "ended",      "returning"};
    int empty = 0;
    printf("%-32s", "fault in state");
    for (int c = 0; c < COLUMN_COUNT; c++)
        printf("%12s", columns[c]);
    for (int f = 0; f < FAULT_COUNT; f++) {
        printf("\n%-32s", fault_text[f]);
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (t->fault[f][c] != 0)
                printf("%12" PRIu64, t->fault[f][c]);
            else if (is_impossible((enum fault)f, (enum column)c))
                printf("%12s", "-");
            else
                printf("%12s", "EMPTY"), empty++;
        }
    }
    printf("\n");
    return empty;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void show_sum(const struct settings *s, const struct tally *t, uint64_t runs, double took)
{
    printf("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " worlds, %.1f million events, "
           "%.1f %% faults, %.0f simulated hours, %.1f million events per second\n",
           s->seed, s->seed + runs - 1, runs, (double)t->events / 1e6,
           100.0 * (double)t->faults / (double)t->events, (double)t->simulated / 3600e9,
           (double)t->events / 1e6 / took);
    printf("%" PRIu64 " tenures, %" PRIu64 " lost, %" PRIu64 " times user code began under one, "
           "%" PRIu64 " reads of is_owner, %" PRIu64 " takeovers from a killed owner in time\n",
           t->tenures, t->losses, t->handovers, t->reads, t->takeovers);
    printf("%" PRIu64 " resignations, %" PRIu64 " tenures stalled, %" PRIu64 " takeovers from a "
           "stalled owner in time, %" PRIu64 " warnings by on_endangered\n",
           t->resignations, t->stalls, t->stall_takeovers, t->warnings);
    printf("%" PRIu64 " ticks run, %" PRIu64 " times one was claimed\n", t->ticks, t->claims);
}

static int usage(void)
{
    fputs("usage: sim [--seed S] [--runs N] [--events E] [--clients C] [--seconds T] [--trace] "
          "[--quiet]\n",
          stderr);
    return 64;
}

static int parse(int argc, char **argv, struct settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            s->trace = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            s->quiet = true;
        } else if (i + 1 == argc) {
            return usage();
        } else if (strcmp(argv[i], "--seed") == 0) {
            s->seed = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--runs") == 0) {
            s->runs = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--events") == 0) {
            s->events = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--clients") == 0) {
            s->clients = (unsigned)strtoul(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            s->seconds = strtod(argv[++i], NULL);
        } else {
            return usage();
        }
    }
    return s->clients > NODES_MAX || s->runs == 0 ? usage() : 0;
}

int main(int argc, char **argv)
{
    struct settings s = {.seed = 1, .runs = 4000, .events = 5000};
    if (parse(argc, argv, &s) != 0)
        return 64;
    static struct tally tally;
    char failure[200];
    double start = seconds_now();
    uint64_t run = 0;
    for (; run < s.runs && (s.seconds == 0 || seconds_now() - start < s.seconds); run++) {
        uint64_t hash, again;
        if (!run_world(&s, s.seed + run, &tally, &hash, s.trace ? print_line : NULL, failure,
                       sizeof failure)) {
            show_failure(&s, s.seed + run);
            puts("0 passed, 1 failed");
            return 1;
        }
        struct tally unused = {.events = 0};
        if (run % TWICE_EVERY == 0 &&
            run_world(&s, s.seed + run, &unused, &again, NULL, failure, sizeof failure) &&
            hash != again) {
            printf("seed %" PRIu64 " gave two different runs\n0 passed, 1 failed\n", s.seed + run);
            return 1;
        }
    }
    int empty = s.quiet ? 0 : show_summary(&tally);
    show_sum(&s, &tally, run, seconds_now() - start);
    if (empty > 0)
        printf("%d cells of the table are empty: these worlds did not go through them\n", empty);
    printf("%d passed, %d failed\n", 1, empty > 0);
    return empty > 0;
}
