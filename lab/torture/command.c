/* command.c: simba-torture, which simba torture starts: processes that contend on a store while they are killed, frozen and
 * cut off; a judge then says whether two ever owned a mutex at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/schemes.h"
#include "base/text.h"
#include "cli/commands/torture.h"
#include "cli/data.h"
#include "cli/frame.h"
#include "cli/messages.h"
#include "cli/run/signals.h"
#include "lab/torture/judge.h"
#include "lab/torture/network.h"
#include "lab/torture/report.h"

#define EXIT_WRONG 1
#define TTL_MS 1000 /* short leases: much happens in a minute */
#define TRANSITION_MS 500
#define LENGTH_MS 60000
#define LENGTH_MAX_MS INT64_C(86400000) /* a day */
#define COMMANDS_MAX 16
#define PROCESSES 6
#define MUTEXES 3
#define LIE "SIMBA_TORTURE_PLANT" /* for tests: a worker says that it owns what it does not */

struct torture_options {
    struct torture t;
    bool is_plan;
    struct server_options server;
    const char *commands[COMMANDS_MAX];
};

static struct step take_number(const struct cli *c, const char *option, const char *value,
                               uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || n < low || n > high)
        return usage(c, "%s %.40s: not a number from %llu to %llu", option, value,
                     (unsigned long long)low, (unsigned long long)high);
    *out = n;
    return GO_ON;
}

static struct step take_faults(const struct cli *c, const char *list, fault_set *out)
{
    const char *names[FAULT_CHOICES];
    char unknown[40];
    if (faults_parse(list, out, unknown, sizeof unknown))
        return GO_ON;
    fault_choices(names);
    const char *near = text_nearest(unknown, names, FAULT_CHOICES);
    if (near != NULL)
        return usage(c, "--faults: unknown fault '%s'; did you mean %s?", unknown, near);
    return usage(c, "--faults: unknown fault '%s'", unknown);
}

static struct step take_server(const struct cli *c, struct torture_options *r, int id,
                               const char *value)
{
    if (id == OPT_SERVER_PID)
        r->server.pid = value;
    else if (id == OPT_SERVER_START)
        r->server.start = value;
    else if (r->server.command_count == COMMANDS_MAX)
        return usage(c, "more than %d times --server-fault", COMMANDS_MAX);
    else
        r->commands[r->server.command_count++] = value;
    return GO_ON;
}

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct torture_options *r = data;
    struct torture *t = &r->t;
    uint64_t n = 0;
    int64_t ms;
    struct step step = GO_ON;
    switch (id) {
    case OPT_PROCESSES:
        step = take_number(c, "--processes", value, 2, WORKERS_MAX, &n);
        t->workers = n;
        break;
    case OPT_MUTEXES:
        step = take_number(c, "--mutexes", value, 1, MUTEXES_MAX, &n);
        t->mutexes = n;
        break;
    case OPT_SEED:
        return take_number(c, "--seed", value, 0, INT64_MAX, &t->seed);
    case OPT_FOR:
        step = cli_take_duration(c, "--for", value, &ms);
        if (!step.ends && (ms <= 0 || ms > LENGTH_MAX_MS))
            return usage(c, "--for %.40s: not between 1ms and 24h", value);
        t->length = ms * NS_PER_MS;
        break;
    case OPT_FAULTS:
        t->faults_text = value;
        return take_faults(c, value, &t->faults);
    case OPT_PLAN:
        r->is_plan = true;
        break;
    case OPT_LIMITS:
        t->has_limits = true;
        break;
    case OPT_SAME_ID:
        t->is_same_id = true;
        break;
    case OPT_STRICT:
        t->is_strict = true;
        break;
    case OPT_HTML:
        t->html = value;
        break;
    default:
        return take_server(c, r, id, value);
    }
    return step;
}

/* What cannot be done here is not drawn. */
static struct step choose_faults(struct torture_options *r)
{
    struct torture *t = &r->t;
    char why[256];
    bool has_server =
        r->server.pid != NULL || r->server.start != NULL || r->server.command_count > 0;
    r->server.commands = r->commands;
    if (t->faults_text == NULL)
        t->faults = (FAULT_BIT(FAULT_KINDS) - 1) & ~faults_of(GROUP_LIMIT);
    if (t->has_limits)
        t->faults |= faults_of(GROUP_LIMIT);
    if (has_server && (t->server = server_open(&r->server, why, sizeof why)) == NULL)
        return usage(t->c, "%s", why);
    fault_set possible = t->server != NULL ? server_faults(t->server) : 0;
    t->faults &= ~faults_of(GROUP_SERVER) | possible;
    return GO_ON;
}

/* One line for each fault. */
static struct step show_plan(const struct torture *t)
{
    struct plan_options o = torture_plan(t);
    size_t count;
    struct strike *plan = plan_draw(&o, &count);
    if (plan == NULL)
        return print_error(t->c, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct strike *s = &plan[i];
        if (t->c->json)
            print_json("{s:f, s:s, s:f, s:i, s:i}", "at_s", (double)s->at / 1e9, "fault",
                       fault_names[s->fault], "lasts_s", (double)s->lasts / 1e9, "worker",
                       s->worker == FAULT_ON_ALL ? -1 : (int)s->worker, "mutex", (int)s->mutex);
        else if (s->worker == FAULT_ON_ALL)
            printf("%8.3f s  %-14s for %.3f s\n", (double)s->at / 1e9, fault_names[s->fault],
                   (double)s->lasts / 1e9);
        else
            printf("%8.3f s  %-14s for %.3f s, worker %u, mutex %u\n", (double)s->at / 1e9,
                   fault_names[s->fault], (double)s->lasts / 1e9, s->worker, s->mutex);
    }
    free(plan);
    return GO_ON;
}

static struct step write_page(const struct torture *t, const struct run_history *h)
{
    FILE *out = fopen(t->html, "we");
    if (out == NULL)
        return print_error(t->c, "cannot write %s: %s", t->html, strerror(errno));
    int rc = page_write(out, h), error = errno;
    if (fclose(out) != 0 && rc == 0) {
        rc = -1;
        error = errno;
    }
    if (rc != 0)
        return print_error(t->c, "cannot write %s: %s", t->html, strerror(error));
    return GO_ON;
}

static void name_things(const struct torture *t, struct run_history *h, const char **kinds)
{
    static const char *const names[] = {
#define X(name, text) text,
        WORKER_KINDS_OF(X)
#undef X
    };
    for (unsigned i = 0; i < t->workers; i++)
        kinds[i] = names[torture_kind(t, i)];
    h->worker_kinds = kinds;
    h->fault_names = fault_done;
    h->fault_name_count = FAULT_KINDS;
    h->seed = t->seed;
    snprintf(h->store, sizeof h->store, "%.255s", t->c->store);
    snprintf(h->command, sizeof h->command,
             "simba torture '%.200s' --ttl %lldms --transition %lldms --processes %zu --mutexes "
             "%zu --for %lldms --seed %llu%s%.120s%s%s%s",
             t->c->store, (long long)t->c->ttl_ms, (long long)t->c->transition_ms, t->workers,
             t->mutexes, (long long)(t->length / NS_PER_MS), (unsigned long long)t->seed,
             t->faults_text != NULL ? " --faults " : "",
             t->faults_text != NULL ? t->faults_text : "", t->has_limits ? " --limits" : "",
             t->is_same_id ? " --same-id" : "",
             t->server != NULL ? ", and what may be done to the server" : "");
}

static int conclude(struct torture *t, struct run_history *h)
{
    const char *kinds[WORKERS_MAX];
    name_things(t, h, kinds);
    report_print(t, h);
    struct step written = t->html != NULL ? write_page(t, h) : GO_ON;
    if (h->tenure_count == 0)
        return EXIT_TROUBLE;
    bool is_bad =
        history_count(h, FINDING_WRONG) > 0 || (t->is_strict && history_count(h, FINDING_LATE) > 0);
    return is_bad ? EXIT_WRONG : written.code;
}

static struct step configure(struct torture_options *r)
{
    struct torture *t = &r->t;
    struct cli *c = t->c;
    const char *url = c->setting[SET_URL].value, *lie = getenv(LIE);
    /* Not on the default store by mistake: names stay behind. */
    if (url == NULL)
        return usage(c, "missing URL, the store to torture: simba torture sqlite:/tmp/new.db");
    if (scheme_kind(url) == STORE_MEMORY)
        return usage(c, "memory: is a store within one process: here processes contend");
    c->ttl_ms = TTL_MS;
    c->transition_ms = TRANSITION_MS;
    struct step step = choose_faults(r);
    if (step.ends)
        return step;
    t->is_lying = lie != NULL && strcmp(lie, "lie") == 0;
    if (t->is_lying)
        print_note(c, LIE " is set: worker 0 says that it owns what it does not");
    if (!(step = cli_configure(c)).ends)
        network_find(t);
    return step;
}

static int run(struct cli *c)
{
    static struct torture_options r;
    struct torture *t = &r.t;
    struct run_history h = {.begin = 0};
    int signal = 0;
    *t = (struct torture){.c = c, .workers = PROCESSES, .mutexes = MUTEXES};
    t->length = LENGTH_MS * NS_PER_MS;
    t->seed = rng_seed() % 1000000;
    struct step step = cli_take(c, take_option, cli_take_url, &r);
    step = AND_THEN(step, configure(&r));
    if (step.ends)
        return step.code;
    if (r.is_plan)
        return show_plan(t).code;
    step = torture_run(t, &h, &signal);
    int code = step.ends ? step.code : conclude(t, &h);
    history_free(&h);
    if (t->server != NULL)
        server_close(t->server);
    if (signal != 0 && code != EXIT_WRONG)
        die_of(signal);
    return code;
}

const struct subcommand *const commands[] = {&torture_command, NULL};

int main(int argc, char **argv)
{
    return frame_main(argc, argv, true, run);
}
