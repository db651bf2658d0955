/* worker.c: a process that contends, and writes down what it is told. Which mutex it wants when,
 * and for how long, is drawn from the seed. */
#include "lab/torture/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/rng.h"
#include "cli/messages.h"
#include "lab/torture/network.h"
#include "lab/torture/plan.h"
#include "lab/torture/resources.h"

#define PULSE (3 * NS_PER_MS)
#define CLOSE_MS 5000
#define EVICT_MS 2000
#define WARM_MS 1000
#define READ_MS 5000
#define ASK_STEPS 20 /* of STEP: how often the operator asks the store */

/* ---- what is written down ------------------------------------------------------------------ */

void worker_add(struct torture_worker *w, struct entry e)
{
    e.worker = (uint16_t)w->number;
    e.life = (uint16_t)w->life;
    record_add(w->record, &e);
}

bool worker_says_yes(struct torture_worker *w, unsigned mutex, uint64_t token,
                     bool (*owns)(void *, uint64_t), void *handle)
{
    int64_t before = clock_now();
    bool is_yes = owns(handle, token);
    int64_t after = clock_now();
    if (is_yes) {
        worker_add(w, (struct entry){.kind = ENTRY_YES,
                                     .mutex = (uint16_t)mutex,
                                     .token = token,
                                     .before = before,
                                     .after = after});
        atomic_store(&w->t->control->mutex[mutex].owned_at, after);
    }
    return is_yes;
}

void worker_began(struct torture_worker *w, unsigned mutex)
{
    atomic_fetch_add(&w->t->control->mutex[mutex].tenures, 1);
}

void worker_wants(struct torture_worker *w, unsigned mutex, bool wants)
{
    int64_t now = clock_now();
    worker_add(w, (struct entry){.kind = ENTRY_WANT,
                                 .detail = wants,
                                 .mutex = (uint16_t)mutex,
                                 .before = now,
                                 .after = now});
}

void worker_add_callback(struct torture_worker *w, unsigned mutex, int64_t handle,
                         enum callback_kind kind, const struct simba_state *state, int64_t before)
{
    uint64_t token = state == NULL               ? 0
                     : kind == CALLBACK_ACQUIRED ? state->after.token
                                                 : state->before.token;
    worker_add(w, (struct entry){.kind = ENTRY_CALLBACK,
                                 .detail = (uint8_t)kind,
                                 .mutex = (uint16_t)mutex,
                                 .token = token,
                                 .limit = handle,
                                 .code = state != NULL ? (int32_t)state->reason : 0,
                                 .before = before,
                                 .after = clock_now()});
}

/* ---- what it is asked for ------------------------------------------------------------------ */

bool worker_must_end(const struct torture_worker *w)
{
    return atomic_load(&w->t->control->worker[w->number].last_life) > w->life;
}

bool worker_take_order(struct torture_worker *w, enum fault *fault, unsigned *mutex)
{
    uint64_t order = atomic_load(&w->t->control->worker[w->number].order);
    if (order == w->order)
        return false;
    w->order = order;
    *fault = (enum fault)(order >> 16 & 0xffff);
    *mutex = (unsigned)(order & 0xffff);
    return true;
}

void worker_sleep(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* A thread that does nothing but find out how late this process runs. */
static void *pulse(void *arg)
{
    struct torture_worker *w = arg;
    while (!atomic_load(&w->is_over)) {
        int64_t due = clock_now() + PULSE;
        worker_sleep(PULSE);
        int64_t now = clock_now();
        if (now - due > DELAY_LEAST)
            worker_add(w, (struct entry){.kind = ENTRY_DELAYED, .before = due, .after = now});
    }
    return NULL;
}

/* ---- what it draws ------------------------------------------------------------------------- */

/* Most are short; some need renewals; some are longer than the lease. */
int64_t worker_draw_hold(struct torture_worker *w)
{
    int64_t of_twenty = rng_between(&w->random, 0, 20), lease = w->t->period.lease;
    if (of_twenty < 17)
        return rng_between(&w->random, 0, lease / 50);
    return of_twenty < 19 ? rng_between(&w->random, 0, lease)
                          : rng_between(&w->random, lease, 3 * lease);
}

int64_t draw_callback(const struct torture_worker *w, uint64_t *random)
{
    int64_t of_ten = rng_between(random, 0, 10), lease = w->t->period.lease;
    return of_ten < 6 ? 0 : rng_between(random, 0, of_ten < 9 ? lease / 100 : lease / 5);
}

/* ---- its client ---------------------------------------------------------------------------- */

void worker_open(struct torture_worker *w)
{
    struct cli *c = w->t->c;
    c->is_driven = w->kind == WORKER_LOOP;
    struct step step = cli_open(c);
    if (step.ends)
        _exit(step.code);
    w->client = c->client;
}

/* Nothing is freed before that has succeeded, so it is asked again; the torturer ends it. */
void worker_close(struct torture_worker *w)
{
    int rc;
    do {
        int64_t before = clock_now();
        rc = simba_close(w->client, CLOSE_MS);
        worker_add(w, (struct entry){.kind = ENTRY_CALL,
                                     .detail = CALL_CLOSE,
                                     .limit = CLOSE_MS * NS_PER_MS,
                                     .code = rc,
                                     .before = before,
                                     .after = clock_now()});
    } while (rc == SIMBA_ETIMEOUT);
    if (rc != 0) {
        fprintf(stderr, "simba torture: worker %u: %s\n", w->number, simba_error_text());
        _exit(EXIT_TROUBLE);
    }
}

void worker_options(const struct torture_worker *w, struct simba_handle_options *o)
{
    const struct period *p = &w->t->period;
    *o = (struct simba_handle_options)SIMBA_HANDLE_OPTIONS_INIT;
    o->jitter_early_ms = p->early / NS_PER_MS;
    o->jitter_late_ms = p->late / NS_PER_MS;
    if (w->t->is_same_id && w->number < 2)
        o->id = w->t->prefix;
}

/* ---- what it leaves behind ----------------------------------------------------------------- */

/* Libraries keep some things from their first use on: so there is one before it is counted. */
static bool warm_up(struct torture_worker *w, struct resources *r)
{
    struct simba_owner owner;
    char name[SIMBA_MUTEX_MAX + 1];
    worker_open(w);
    int rc = simba_read(w->client, torture_mutex(w->t, 0, name), WARM_MS, &owner);
    worker_close(w);
    resources_await_threads(w->threads);
    resources_count(r);
    return rc == 0 && r->threads <= w->threads;
}

static void add_resources(struct torture_worker *w, const struct resources *before)
{
    static struct resources now;
    char to[PATH_MAX];
    resources_count(&now);
    for (int fd = -1; (fd = resources_added(before, &now, fd, to, sizeof to)) >= 0;)
        print_note(w->t->c, "worker %u has left descriptor %d open: %s", w->number, fd, to);
    worker_add(w, (struct entry){.kind = ENTRY_RESOURCES,
                                 .token = now.bytes > before->bytes ? now.bytes - before->bytes : 0,
                                 .limit = now.descriptors - before->descriptors,
                                 .code = (int32_t)(now.threads - before->threads),
                                 .before = clock_now(),
                                 .after = clock_now()});
}

/* ---- the operator -------------------------------------------------------------------------- */

static void evict(struct torture_worker *w, enum fault fault, unsigned mutex)
{
    char name[SIMBA_MUTEX_MAX + 1];
    int64_t before = clock_now();
    int rc = simba_evict(w->client, torture_mutex(w->t, mutex, name), NULL,
                         fault == FAULT_EVICT_FORCED, EVICT_MS);
    struct entry e = {.kind = ENTRY_CALL,
                      .detail = CALL_EVICT,
                      .mutex = (uint16_t)mutex,
                      .limit = EVICT_MS * NS_PER_MS,
                      .code = rc,
                      .before = before,
                      .after = clock_now()};
    worker_add(w, e);
    if (rc == SIMBA_ELOST)
        return;           /* nobody owned it */
    e.kind = ENTRY_FAULT; /* also if it is not known whether the store has heard of it */
    e.detail = (uint8_t)fault;
    e.worker = FAULT_ON_ALL;
    record_add(w->record, &e);
}

/* Nothing strikes this process: so it finds out how late the store answers. */
static void ask_store(struct torture_worker *w)
{
    struct simba_owner owner;
    char name[SIMBA_MUTEX_MAX + 1];
    int64_t before = clock_now();
    simba_read(w->client, torture_mutex(w->t, 0, name), READ_MS, &owner);
    int64_t now = clock_now();
    if (now - before > DELAY_LEAST)
        worker_add(w, (struct entry){.kind = ENTRY_DELAYED,
                                     .detail = DELAY_OF_STORE,
                                     .before = before,
                                     .after = now});
}

static void operator_run(struct torture_worker *w)
{
    enum fault fault;
    unsigned mutex;
    for (unsigned i = 0; !worker_must_end(w); i++) {
        if (worker_take_order(w, &fault, &mutex))
            evict(w, fault, mutex);
        if (i % ASK_STEPS == 0)
            ask_store(w);
        worker_sleep(STEP);
    }
}

/* ---- a life -------------------------------------------------------------------------------- */

static void *do_nothing(void *arg)
{
    return arg;
}

/* With the one that ThreadSanitizer starts together with the first of a process. */
static int64_t count_own_threads(void)
{
    pthread_t first;
    if (pthread_create(&first, NULL, do_nothing, NULL) == 0)
        pthread_join(first, NULL);
    worker_sleep(STEP); /* until the kernel has forgotten it */
    return resources_threads();
}

static void become_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* of the terminal: the torturer asks us to end */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

_Noreturn void worker_main(const struct torture *t, unsigned number, unsigned life)
{
    static struct torture_worker w;
    char path[PATH_MAX];
    static struct resources before;
    pid_t parent = getppid();
    become_child();
    if (getppid() != parent)
        _exit(EXIT_TROUBLE);
    w.t = t;
    w.number = number;
    w.life = life;
    w.kind = torture_kind(t, number);
    w.random = plan_worker_seed(t->seed, number, life);
    w.order = atomic_load(&t->control->worker[number].order);
    w.threads = count_own_threads();
    network_take_route(t, number);
    torture_record_path(t, number, life, path, sizeof path);
    if ((w.record = record_create(path, t->record_entries)) == NULL) {
        perror("simba torture: cannot write the record");
        _exit(EXIT_TROUBLE);
    }
    bool is_counted = warm_up(&w, &before);
    worker_open(&w);
    worker_add(&w, (struct entry){.kind = ENTRY_START,
                                  .detail = (uint8_t)w.kind,
                                  .before = clock_now(),
                                  .after = clock_now()});
    if (pthread_create(&w.pulse, NULL, pulse, &w) != 0)
        _exit(EXIT_TROUBLE);
    if (number == t->workers)
        operator_run(&w);
    else if (w.kind == WORKER_LOCKER)
        lockers_run(&w);
    else if (w.kind == WORKER_ASYNC)
        async_lockers_run(&w);
    else
        contenders_run(&w);
    worker_close(&w);
    atomic_store(&w.is_over, true);
    pthread_join(w.pulse, NULL);
    /* One that connects when its client is closed is left behind, and ends by itself. */
    resources_await_threads(w.threads);
    if (is_counted)
        add_resources(&w, &before);
    worker_add(&w, (struct entry){.kind = ENTRY_END, .before = clock_now(), .after = clock_now()});
    record_close(w.record);
    exit(0); /* so that a sanitizer finds what leaks */
}
