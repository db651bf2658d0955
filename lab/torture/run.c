/* run.c: starts workers, strikes them as the plan says, and puts everything right again. Nobody
 * outlives it: workers die with their parent, and on every way out each one is ended by its
 * number. */
#include "lab/torture/run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/messages.h"
#include "lab/torture/children.h"
#include "lab/torture/network.h"
#include "lab/torture/plan.h"

#define END_NS (30000 * NS_PER_MS)        /* workers have so long to end in order … */
#define INTERRUPTED_NS (2000 * NS_PER_MS) /* … and so long after Ctrl-C */
#define SHOW_NS (200 * NS_PER_MS)         /* the line on a terminal is that old at most */
#define NOTE_NS (10000 * NS_PER_MS)       /* elsewhere there is a line so often */
#define ENTRIES_MAX 1000000               /* of the torturer's own record */

/* ---- faults -------------------------------------------------------------------------------- */

static void order(struct run *r, unsigned number, const struct strike *s)
{
    uint64_t value = ++r->orders << 32 | (uint64_t)s->fault << 16 | s->mutex;
    atomic_store(&r->t->control->worker[number].order, value);
}

static void go(struct run *r, const struct strike *s, int64_t now)
{
    struct child *k = &r->children[s->worker];
    k->gone_at = now;
    k->fault = s->fault;
    k->restart_at = now + s->lasts;
    if (s->fault == FAULT_KILL)
        child_kill(k);
    else
        child_end(r, s->worker);
}

static void cut_network(struct run *r, const struct strike *s, int64_t now)
{
    struct child *k = &r->children[s->worker];
    if (k->net_since != 0)
        return; /* one at a time */
    r->has_lost_proxy |= !network_set(r->t, s->worker, (enum fault)s->fault, s->amount);
    k->net_since = now;
    k->net_until = now + s->lasts;
    k->net_fault = s->fault;
}

static void strike_server(struct run *r, const struct strike *s, int64_t now)
{
    if (server_begin(r->t->server, (enum fault)s->fault)) {
        r->server_until = now + s->lasts;
        r->done++;
    }
}

/* When it is to be asked again. */
static int64_t follow_server(struct run *r, int64_t now)
{
    struct entry e;
    if (r->t->server == NULL || !server_is_busy(r->t->server))
        return NEVER;
    if (now >= r->server_until)
        server_end(r->t->server);
    if (server_poll(r->t->server, &e)) {
        record_add(r->record, &e);
        return NEVER;
    }
    return now + 5 * NS_PER_MS;
}

/* One that is gone or on its way is left alone. */
static void strike(struct run *r, const struct strike *s, int64_t now)
{
    struct child *k = &r->children[s->worker == FAULT_ON_ALL ? 0 : s->worker];
    if (fault_group_of((enum fault)s->fault) == GROUP_SERVER) {
        strike_server(r, s, now);
        return;
    }
    if (k->pid == 0 || k->is_killed || k->is_ending)
        return;
    r->done++;
    switch (s->fault) {
    case FAULT_KILL:
    case FAULT_RESTART:
        go(r, s, now);
        break;
    case FAULT_FREEZE:
        child_freeze(k, now, now + s->lasts);
        break;
    case FAULT_EVICT:
    case FAULT_EVICT_FORCED:
        order(r, (unsigned)r->t->workers, s); /* the operator writes it down */
        break;
    case FAULT_STOP:
    case FAULT_RESIGN:
    case FAULT_CLOSE:
        order(r, s->worker, s);
        run_add(r, ENTRY_FAULT, s->worker, k->life, s->fault, now, now);
        break;
    default:
        cut_network(r, s, now);
        break;
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is due: faults, and their ends. When something is due next. */
static int64_t act(struct run *r, int64_t now)
{
    int64_t next = follow_server(r, now);
    while (!r->is_calm && r->next_strike < r->strikes &&
           r->begin + r->plan[r->next_strike].at <= now)
        strike(r, &r->plan[r->next_strike++], now);
    if (!r->is_calm && r->next_strike < r->strikes)
        next = earlier(next, r->begin + r->plan[r->next_strike].at);
    for (unsigned i = 0; i <= r->t->workers; i++) {
        struct child *k = &r->children[i];
        if (k->frozen_at != 0 && k->thaw_at <= now)
            child_thaw(r, i, now);
        if (k->frozen_at != 0)
            next = earlier(next, k->thaw_at);
        if (k->net_since != 0 && k->net_until <= now)
            child_mend_network(r, i);
        if (k->net_since != 0)
            next = earlier(next, k->net_until);
        if (k->pid == 0 && k->restart_at != 0 && k->restart_at <= now)
            child_restart(r, i, now);
        if (k->pid == 0 && k->restart_at != 0)
            next = earlier(next, k->restart_at);
    }
    return next;
}

/* Everything is as it should be from here on. */
static void calm_down(struct run *r)
{
    int64_t now = clock_now();
    struct entry e;
    r->is_calm = true;
    for (unsigned i = 0; i <= r->t->workers; i++) {
        struct child *k = &r->children[i];
        child_thaw(r, i, now);
        child_mend_network(r, i);
        if (k->restart_at > now)
            k->restart_at = now;
    }
    if (r->t->server != NULL && server_settle(r->t->server, &e))
        record_add(r->record, &e);
    act(r, clock_now());
}

/* ---- waiting ------------------------------------------------------------------------------- */

static uint64_t count_tenures(const struct torture *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->mutexes; i++)
        sum += atomic_load(&t->control->mutex[i].tenures);
    return sum;
}

static void show(struct run *r, int64_t now)
{
    const struct torture *t = r->t;
    long long seconds = (now - r->begin) / 1000000000, all = t->length / 1000000000;
    unsigned long long tenures = count_tenures(t);
    if (t->c->quiet || now - r->shown_at < (r->is_terminal ? SHOW_NS : NOTE_NS))
        return;
    r->shown_at = now;
    if (r->is_terminal && r->is_calm)
        print_status(t->c, "the faults have ended; %llu tenures, %zu faults", tenures, r->done);
    else if (r->is_terminal)
        print_status(t->c, "%lld of %lld s: %llu tenures, %zu faults", seconds, all, tenures,
                     r->done);
    else
        print_note(t->c, "%lld of %lld s: %llu tenures, %zu faults", seconds, all, tenures,
                   r->done);
}

static void take_signals(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals.fd, &info, sizeof info) == sizeof info) {
        if (signal_ends((int)info.ssi_signo))
            r->signal = (int)info.ssi_signo;
    }
}

/* Until then, or a signal. If we run much later, the record says so: the bounds allow for it. */
static void wait_until(struct run *r, int64_t until)
{
    struct pollfd fd = {r->signals.fd, POLLIN, 0};
    int64_t now = clock_now(), due = until;
    if (due > now + SHOW_NS)
        due = now + SHOW_NS;
    int64_t left = due > now ? due - now : 0;
    int rc = ppoll(&fd, 1, &(struct timespec){left / 1000000000, left % 1000000000}, NULL);
    now = clock_now();
    if (rc == 0 && now - due > DELAY_LEAST)
        run_add(r, ENTRY_DELAYED, FAULT_ON_ALL, 0, 0, due, now);
    take_signals(r);
    children_reap(r, false);
    show(r, now);
}

static void torment(struct run *r)
{
    int64_t over = r->begin + r->t->length, now;
    while (r->signal == 0 && (now = clock_now()) < over) {
        int64_t next = act(r, now);
        wait_until(r, next < over ? next : over);
    }
}

/* Has each mutex been owned since the faults ended? */
static bool is_alive(const struct run *r)
{
    for (size_t i = 0; i < r->t->mutexes; i++) {
        if (atomic_load(&r->t->control->mutex[i].owned_at) <= r->calm)
            return false;
    }
    return true;
}

/* Longer than the bound, to tell late from never. */
static void await_life(struct run *r, int64_t bound)
{
    int64_t now = clock_now(), until = now + 2 * bound + 5000 * NS_PER_MS;
    r->calm = now;
    run_add(r, ENTRY_CALM, FAULT_ON_ALL, 0, 0, now, now);
    while (r->signal == 0 && !is_alive(r) && (now = clock_now()) < until) {
        int64_t next = act(r, now), soon = now + 20 * NS_PER_MS;
        wait_until(r, next < soon ? next : soon);
    }
}

static void end_all(struct run *r)
{
    int64_t now = clock_now(), until = now + (r->signal != 0 ? INTERRUPTED_NS : END_NS);
    int before = r->signal;
    for (unsigned i = 0; i <= r->t->workers; i++) {
        r->children[i].restart_at = NEVER;
        child_thaw(r, i, now);
        child_end(r, i);
    }
    while (children_are_there(r) && clock_now() < until && r->signal == before)
        wait_until(r, clock_now() + 20 * NS_PER_MS);
    for (unsigned i = 0; i <= r->t->workers; i++)
        child_kill(&r->children[i]);
    while (children_are_there(r)) {
        children_reap(r, r->signal == 0);
        struct timespec pause = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause, NULL);
    }
}

static bool start_all(struct run *r)
{
    for (unsigned i = 0; i <= r->t->workers; i++) {
        if (!child_start(r, i))
            return false;
    }
    return true;
}

bool run_all(struct torture *t, int64_t live, struct run_outcome *out)
{
    static struct run r;
    char path[PATH_MAX];
    struct plan_options o = torture_plan(t);
    r = (struct run){.t = t, .is_terminal = isatty(STDERR_FILENO) != 0};
    snprintf(path, sizeof path, "%s/torturer", t->folder);
    r.record = record_create(path, ENTRIES_MAX);
    r.plan = plan_draw(&o, &r.strikes);
    bool is_ready = r.record != NULL && r.plan != NULL && signals_take(&r.signals);
    r.begin = r.shown_at = clock_now();
    bool is_started = is_ready && start_all(&r);
    if (is_started) {
        torment(&r);
        calm_down(&r);
        if (r.signal == 0)
            await_life(&r, live);
    }
    if (is_ready) {
        end_all(&r);
        if (r.is_terminal && !t->c->quiet)
            print_status(t->c, "%s", "");
        signals_give_back(&r.signals);
        close(r.signals.fd);
    }
    *out = (struct run_outcome){r.begin, clock_now(), r.signal, r.has_lost_proxy};
    if (r.record != NULL)
        record_close(r.record);
    free(r.plan);
    return is_started;
}
