/* torture.c: what comes before a run and after it: the store is tried, names and a folder are
 * made; then all records are read, and judged. */
#include "lab/torture/torture.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <simba/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/lease_policy.h"
#include "cli/messages.h"
#include "lab/torture/judge.h"
#include "lab/torture/network.h"
#include "lab/torture/run.h"

#define ANSWERS_PER_SECOND 1000
#define SECONDS_AROUND 120 /* beside the faults: the calm, and a slow end */

const char *torture_mutex(const struct torture *t, unsigned mutex, char *out)
{
    snprintf(out, SIMBA_MUTEX_MAX + 1, "%s-%u", t->prefix, mutex);
    return out;
}

void torture_record_path(const struct torture *t, unsigned worker, unsigned life, char *out,
                         size_t size)
{
    snprintf(out, size, "%s/worker-%u-%u", t->folder, worker, life);
}

struct plan_options torture_plan(const struct torture *t)
{
    int64_t lease = (t->c->ttl_ms + t->c->transition_ms) * NS_PER_MS;
    return (struct plan_options){t->seed, t->workers, t->mutexes, t->length, lease, t->faults};
}

/* Two with one id are of the kind that keeps what it is told. */
enum worker_kind torture_kind(const struct torture *t, unsigned worker)
{
    if (worker == t->workers || (t->is_same_id && worker < 2))
        return WORKER_CONTENDER;
    return (enum worker_kind)(worker % WORKER_KINDS);
}

/* ---- the store ----------------------------------------------------------------------------- */

static void on_finding(void *data, const struct simba_finding *f)
{
    struct control *control = data;
    if (f->kind == SIMBA_FINDING_LEASE)
        control->lease_ms = f->lease_ms;
}

/* In a process of its own, since who has opened a client must not fork any more. */
static _Noreturn void try_store(struct torture *t)
{
    struct cli *c = t->c;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct step step = cli_open(c);
    if (step.ends)
        _exit(step.code);
    int rc = cli_ask(c, t->prefix);
    if (rc != 0)
        _exit(cli_fail(c, rc));
    snprintf(t->control->store, sizeof t->control->store, "%s", c->store);
    simba_examine(c->client, ANSWER_MS, on_finding, t->control);
    simba_close(c->client, ANSWER_MS);
    _exit(0);
}

static struct step reach_store(struct torture *t)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        try_store(t);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return print_error(t->c, "cannot start a process: %s", strerror(errno));
    if (WIFSIGNALED(status))
        return print_error(t->c, "the process that tried the store crashed: %s",
                           strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return end_with(WEXITSTATUS(status));
    snprintf(t->c->store, sizeof t->c->store, "%s", t->control->store);
    t->lease = t->control->lease_ms * NS_PER_MS;
    if (t->lease < t->period.lease)
        t->lease = t->period.lease;
    return GO_ON;
}

/* ---- before ------------------------------------------------------------------------------- */

/* The jitter of waiters is in proportion to the lease, so that takeovers are quick. */
static void find_period(struct torture *t)
{
    const struct cli *c = t->c;
    int64_t lease_ms = c->ttl_ms + c->transition_ms;
    struct period_options o = {c->ttl_ms, c->transition_ms, -1,          -1,
                               -1,        lease_ms / 10,    lease_ms / 4};
    char *timeout = config_in_url(c->setting[SET_URL].value, "command_timeout");
    const char *why;
    if (timeout != NULL)
        simba_duration_parse(timeout, &o.command_timeout_ms);
    free(timeout);
    int rc = period_init(&t->period, &o, &why);
    assert(rc == 0); /* cli_configure() has checked it */
}

static struct step prepare(struct torture *t)
{
    const char *parent = getenv("TMPDIR");
    uint32_t random;
    t->control =
        mmap(NULL, sizeof *t->control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t->control == MAP_FAILED || getrandom(&random, sizeof random, 0) != sizeof random)
        return print_error(t->c, "out of memory");
    snprintf(t->prefix, sizeof t->prefix, "simba-torture-%08x", random);
    find_period(t);
    struct step step = reach_store(t);
    step = AND_THEN(step, network_start(t));
    if (step.ends)
        return step;
    t->record_entries =
        (size_t)(t->length / 1000000000 + SECONDS_AROUND) * ANSWERS_PER_SECOND * (t->mutexes + 2);
    int n = snprintf(t->folder, sizeof t->folder, "%s/simba-torture.XXXXXX",
                     parent != NULL && parent[0] == '/' ? parent : "/tmp");
    if (n >= (int)sizeof t->folder || mkdtemp(t->folder) == NULL)
        return print_error(t->c, "cannot make a folder for the records, %s: %s", t->folder,
                           n >= (int)sizeof t->folder ? "TMPDIR is too long" : strerror(errno));
    return GO_ON;
}

/* ---- after -------------------------------------------------------------------------------- */

struct entries {
    struct entry *at;
    size_t count, dropped;
};

static bool read_record(struct entries *all, const char *path)
{
    size_t count, dropped;
    struct entry *some = record_read(path, &count, &dropped);
    if (some == NULL)
        return errno == EINVAL; /* killed before it had begun */
    struct entry *more = realloc(all->at, (all->count + count + 1) * sizeof *more);
    if (more != NULL) {
        memcpy(more + all->count, some, count * sizeof *some);
        all->at = more;
        all->count += count;
        all->dropped += dropped;
    }
    free(some);
    return more != NULL;
}

/* Also removes them. */
static bool read_records(const struct torture *t, struct entries *all)
{
    char path[PATH_MAX];
    DIR *folder = opendir(t->folder);
    bool is_whole = folder != NULL;
    for (const struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", t->folder, e->d_name);
        is_whole = read_record(all, path) && is_whole;
        unlink(path);
    }
    if (folder != NULL)
        closedir(folder);
    rmdir(t->folder);
    return is_whole;
}

static void find_rules(const struct torture *t, const struct run_outcome *o, struct judge_rules *r)
{
    const struct period *p = &t->period;
    /* C7: the lease with the drift, the jitter of waiters, and one exchange. */
    int64_t takeover = policy_takeover(p, t->lease) + p->patience;
    *r = (struct judge_rules){.workers = t->workers,
                              .mutexes = t->mutexes,
                              .begin = o->begin,
                              .end = o->end,
                              .lease = t->lease,
                              .margin = p->margin,
                              .takeover = takeover,
                              .is_same_id = t->is_same_id};
    /* A waiter that could not reach the store pauses for up to a ttl, and a request that it applied
     * after everybody had given up costs a lease (C8). */
    r->live = takeover + p->backoff_max + t->lease;
}

struct step torture_run(struct torture *t, struct run_history *h, int *signal)
{
    struct judge_rules rules;
    struct run_outcome outcome;
    struct entries all = {.at = NULL};
    struct step step = prepare(t);
    if (step.ends) {
        network_stop(t);
        return step;
    }
    find_rules(t, &(struct run_outcome){0}, &rules);
    int64_t live = rules.live;
    bool is_run = run_all(t, live, &outcome);
    int error = errno;
    network_stop(t);
    bool is_read = read_records(t, &all);
    if (!is_run)
        step = print_error(t->c, "cannot start the workers: %s", strerror(error));
    else if (outcome.has_lost_proxy)
        step = print_error(t->c, "a proxy has ended before the run: the network cannot be struck");
    else if (t->server != NULL && server_error(t->server)[0] != '\0')
        step =
            print_error(t->c, "a fault of the server cannot be done: %s", server_error(t->server));
    else if (!is_read)
        step = print_error(t->c, "cannot read the records: out of memory");
    if (!step.ends) {
        find_rules(t, &outcome, &rules);
        rules.dropped = all.dropped;
        if (!judge_records(all.at, all.count, &rules, h))
            step = print_error(t->c, "cannot judge the records: out of memory");
    }
    *signal = outcome.signal;
    free(all.at);
    munmap(t->control, sizeof *t->control);
    return step;
}
