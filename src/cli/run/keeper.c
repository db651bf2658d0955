/* keeper.c: see keeper.h. The library renews the lease on its own threads; the keeper moves the
 * guard's deadline, passes signals on, hears how commands end, and acts instead of a guard that
 * dies or does nothing in time. */
#include "cli/run/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/guard.h"
#include "cli/run/listen.h"
#include "cli/run/outage.h"
#include "cli/run/process_tree.h"
#include "cli/run/relay.h"
#include "cli/run/run_options.h"
#include "cli/run/service_watchdog.h"
#include "cli/run/spawn.h"

#define PAUSE_LEAST_MS 5
#define GUARD_GRACE_MS 200          /* for a guard that should have ended CMD … */
#define ON_RELEASED_GRACE_MS 1000   /* … or on_released */
#define ROUNDING_NS (2 * NS_PER_MS) /* the library says in whole milliseconds what is left */

struct step keeper_begin(struct keeper *k, const struct run_options *opts)
{
    k->opts = opts;
    k->channel = -1;
    opts->c->drops_lines = true;
    opts->c->mutex = opts->mutex;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    opts->c->outage = outage_new();
    service_watchdog_take();
    bool has_commands = opts->argv != NULL || opts->on_released != NULL || opts->check != NULL;
    if (k->wake < 0 || opts->c->outage == NULL || (has_commands && !relay_fork(opts->c)) ||
        !signals_take(&opts->running->signals) ||
        (has_commands && (k->guard = guard_fork(opts, &k->channel)) < 0))
        return print_error(opts->c, "cannot start the processes that guard CMD: %s",
                           strerror(errno));
    k->guard_was = k->guard;
    getrlimit(RLIMIT_NOFILE, &opts->running->files);
    struct step step = listen_open(opts);
    step = AND_THEN(step, cli_open(opts->c));
    if (!step.ends)
        service_watchdog_begin(opts->c->client);
    cli_forget_url(opts->c);
    return step;
}

void keeper_wake(struct keeper *k)
{
    (void)!write(k->wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* ---- handing over a command ---------------------------------------------------------------- */

/* These three under the lock. False: there is nobody to run it. */
static bool want(struct keeper *k, enum job kind, uint64_t token)
{
    if (k->channel < 0)
        return false;
    memset(&k->job, 0, sizeof k->job);
    k->job.kind = kind;
    k->job.token = token;
    k->job.is_wanted = true;
    keeper_wake(k);
    return true;
}

static void wait_for_end(struct keeper *k)
{
    while (!k->job.is_over && !k->is_guard_dead)
        pthread_cond_wait(&k->changed, &k->lock);
    k->job.is_wanted = false;
}

static struct outcome outcome_of(const struct keeper *k)
{
    struct outcome o = {.is_run = false, .why = ""};
    int status = k->job.status;
    if (!k->job.is_over)
        return o;
    o.is_run = k->job.is_sent;
    o.is_lost = k->job.term_sent;
    o.is_signaled = k->has_ending_signal || k->is_stopping;
    if (o.is_lost)
        o.why = k->job.reason == SIMBA_STALLED ? ", because it made no progress"
                                               : ", because the lease was lost";
    o.error = k->job.error;
    if (o.error != 0)
        o.code = o.error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    else
        o.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return o;
}

void keeper_start_only(struct keeper *k, uint64_t token)
{
    pthread_mutex_lock(&k->lock);
    want(k, JOB_CMD, token);
    k->job.is_only = true;
    pthread_mutex_unlock(&k->lock);
}

static struct outcome perform(struct keeper *k, enum job kind, uint64_t token,
                              enum simba_reason reason, int64_t tick)
{
    struct outcome o = {.is_run = false, .why = ""};
    pthread_mutex_lock(&k->lock);
    if (want(k, kind, token)) {
        k->job.reason = reason;
        k->job.tick = tick;
        wait_for_end(k);
        o = outcome_of(k);
    }
    pthread_mutex_unlock(&k->lock);
    return o;
}

struct outcome keeper_perform(struct keeper *k, enum job kind, uint64_t token,
                              enum simba_reason reason)
{
    return perform(k, kind, token, reason, 0);
}

struct outcome keeper_perform_tick(struct keeper *k, uint64_t token, int64_t tick)
{
    return perform(k, JOB_CMD, token, SIMBA_UNCHANGED, tick);
}

void keeper_launch(struct keeper *k, uint64_t token)
{
    pthread_mutex_lock(&k->lock);
    if (want(k, JOB_CMD, token)) {
        k->job.is_detached = true;
        while (!k->job.is_sent && !k->job.is_over && !k->is_guard_dead)
            pthread_cond_wait(&k->changed, &k->lock);
    }
    pthread_mutex_unlock(&k->lock);
}

void keeper_await(struct keeper *k, uint64_t token, enum simba_reason reason)
{
    pthread_mutex_lock(&k->lock);
    if (k->job.is_wanted && k->job.token == token) {
        if (reason_is_loss(reason))
            k->job.reason = reason; /* so the command is asked to end */
        keeper_wake(k);
        wait_for_end(k);
    }
    pthread_mutex_unlock(&k->lock);
}

enum simba_reason keeper_reason(struct keeper *k, uint64_t token, enum simba_reason reason)
{
    pthread_mutex_lock(&k->lock);
    if (reason == SIMBA_RELEASED && k->ended_by_guard == token)
        reason = k->ended_reason;
    pthread_mutex_unlock(&k->lock);
    return reason;
}

/* ---- the command, on the main thread, under the lock --------------------------------------- */

static bool is_under_way(const struct keeper *k)
{
    return k->job.is_wanted && k->job.is_sent && !k->job.is_over;
}

static void finish(struct keeper *k)
{
    k->job.is_over = true;
    if (k->job.is_detached) {
        struct outcome o = outcome_of(k);
        k->on_outcome(k->data, &o);
    }
    pthread_cond_broadcast(&k->changed);
}

/* The clock is read before the library is asked, so the result is early, never late. */
static bool move_deadline(struct keeper *k)
{
    int64_t now = clock_now(), left = k->remaining_ms(k->data, k->tenure);
    if (left <= 0 || now + left * NS_PER_MS <= k->hold_until + ROUNDING_NS)
        return false;
    *k->opts->running->deadline = k->hold_until = now + left * NS_PER_MS;
    k->right = k->right > left * NS_PER_MS ? k->right : left * NS_PER_MS;
    k->opts->c->outage->renewed_at = k->hold_until - k->right;
    return true;
}

static void on_guard_gone(struct keeper *k, const char *what);

/* A START that cannot be sent is never heard of again: then there is as good as no guard. */
static bool send_start(struct keeper *k, const struct message *m, int pass)
{
    bool is_sent = channel_send(k->channel, m, pass);
    if (!is_sent)
        on_guard_gone(k, "cannot be reached");
    return is_sent;
}

static void send_cmd(struct keeper *k)
{
    struct message m = {.kind = MESSAGE_START,
                        .job = JOB_CMD,
                        .token = k->job.token,
                        .tick = k->job.tick,
                        .is_only = k->job.is_only};
    k->hold_until = 0;
    k->tenure = k->job.token;
    bool is_late = k->has_ending_signal && k->opts->argv != NULL; /* nobody would tell it */
    if (is_late || !move_deadline(k)) {                           /* over before it began */
        k->tenure = 0;
        finish(k);
        return;
    }
    snprintf(m.id, sizeof m.id, "%s", k->id);
    snprintf(m.store, sizeof m.store, "%s", k->opts->c->store);
    if (k->opts->progress != 0)
        *k->opts->running->progress_until = clock_now() + k->opts->progress;
    if (!send_start(k, &m, simba_liveness_fd(k->opts->c->client)))
        return;
    k->on_released_due = true;
    k->job.is_sent = true;
    pthread_cond_broadcast(&k->changed);
}

/* Where another may own it; if that is over, late is better than never. */
static int64_t on_released_until(const struct keeper *k)
{
    int64_t margin = run_options_lease_margin(k->opts->c), now = clock_now();
    int64_t until = k->hold_until + margin;
    return until >= now ? until : now + k->opts->kill_after + margin;
}

static void send_on_released(struct keeper *k)
{
    struct message m = {.kind = MESSAGE_START,
                        .job = JOB_ON_RELEASED,
                        .token = k->job.token,
                        .number = (int)k->job.reason};
    if (!k->on_released_due || k->tenure != k->job.token || k->on_released_done == k->tenure) {
        k->job.is_sent = k->on_released_done == k->job.token;
        finish(k); /* not to be run, or the guard has */
        return;
    }
    k->job.until = on_released_until(k);
    k->job.is_sent = send_start(k, &m, -1);
}

static void send_job(struct keeper *k)
{
    if (k->channel < 0 || !k->job.is_wanted || k->job.is_sent || k->job.is_over)
        return;
    if (k->job.kind == JOB_CMD)
        send_cmd(k);
    else
        send_on_released(k);
}

/* Under the lock. */
static void report_loss(struct keeper *k, enum simba_reason reason, const char *next)
{
    const struct run_options *opts = k->opts;
    char why[OUTAGE_TEXT_MAX];
    print_loss(opts->c, reason_name(reason), "lost '%s' on %s: %s; %s", opts->mutex, opts->c->store,
               outage_why(opts->c->outage, reason, (int)getpid(), why), next);
}

void keeper_report_loss(struct keeper *k, uint64_t token, enum simba_reason reason)
{
    pthread_mutex_lock(&k->lock);
    bool is_said = k->loss_reported == token || k->ended_by_guard == token;
    bool is_for_guard = k->channel >= 0 && k->job.kind == JOB_CMD && k->job.is_wanted &&
                        k->job.is_sent && !k->job.is_over;
    if (!is_said && !is_for_guard) {
        k->loss_reported = token;
        report_loss(k, reason,
                    k->opts->on_released != NULL ? "running --on-released" : "staying a candidate");
    }
    pthread_mutex_unlock(&k->lock);
}

static void on_channel(struct keeper *k);

/* The library has said so, or cannot, because its thread waits for the command: then it is asked. */
static bool is_lost(struct keeper *k)
{
    return k->channel >= 0 && is_under_way(k) && k->job.kind == JOB_CMD && !k->job.term_sent &&
           !k->is_stopping &&
           (k->job.reason != SIMBA_UNCHANGED || k->remaining_ms(k->data, k->tenure) <= 0);
}

/* Before it is said: CMD may have ended by itself while we stood still, stopped or without a turn. */
static void check_loss(struct keeper *k)
{
    if (is_lost(k))
        on_channel(k);
    if (!is_lost(k))
        return;
    if (k->job.reason == SIMBA_UNCHANGED)
        k->job.reason = clock_now() < k->hold_until ? SIMBA_EVICTED : SIMBA_EXPIRED;
    k->job.term_sent = true;
    k->loss_reported = k->tenure;
    char next[48];
    snprintf(next, sizeof next, "sending %s to CMD", signal_name(k->opts->signal));
    report_loss(k, k->job.reason, next);
    channel_send(k->channel, &(struct message){.kind = MESSAGE_LOST, .number = (int)k->job.reason},
                 -1);
}

/* ---- the guard ----------------------------------------------------------------------------- */

/* Whoever runs CMD has ended it, or has to. */
static void end_tenure(struct keeper *k, uint64_t token, enum simba_reason reason)
{
    k->ended_by_guard = token;
    k->ended_reason = reason;
    if (k->job.kind == JOB_CMD && k->job.token == token)
        k->job.reason = reason;
}

/* There is no other: a guard has to be forked before there are threads. So this is the end, in
 * order. */
static void on_guard_gone(struct keeper *k, const char *what)
{
    enum simba_reason reason = SIMBA_RELEASED; /* else it is still ours, until it is released */
    if (k->tenure != 0 && k->ended_by_guard == k->tenure)
        reason = k->ended_reason;
    else if (k->job.kind == JOB_CMD && k->job.reason != SIMBA_UNCHANGED)
        reason = k->job.reason;
    print_loss(k->opts->c, reason_name(reason),
               "mutex '%s' on %s: the process simba-guard, %d, %s; killing CMD", k->opts->mutex,
               k->opts->c->store, (int)k->guard_was, what);
    process_tree_kill(k->guard, k->opts,
                      reason == SIMBA_RELEASED ? ", and the mutex is not free"
                                               : ", and another may own the mutex beside it");
    k->guard = 0;
    if (k->on_released_due && k->opts->on_released != NULL && k->on_released_done != k->tenure) {
        k->on_released_done = k->tenure;
        struct cmd_tenure t = {.id = k->id,
                               .store = k->opts->c->store,
                               .reason = reason_name(reason),
                               .token = k->tenure};
        spawn_on_released(k->opts, &t,
                          on_released_until(k) - run_options_lease_margin(k->opts->c) / 10);
    }
    k->on_released_due = false;
    close(k->channel);
    k->channel = -1;
    k->is_guard_dead = true;
    pthread_cond_broadcast(&k->changed);
}

/* When the guard must have ended the command; *grace_ms: how long it then has to say so. Where
 * on_released may follow, that is a quarter of the margin later than it should have been, and
 * another quarter: then half of it is left for on_released, before another can own the mutex. */
static int64_t guard_due_at(const struct keeper *k, int *grace_ms)
{
    int64_t quarter = run_options_lease_margin(k->opts->c) / 4;
    if (k->job.kind == JOB_ON_RELEASED) {
        *grace_ms = ON_RELEASED_GRACE_MS;
        return k->job.until;
    }
    *grace_ms = k->job.is_only ? GUARD_GRACE_MS : (int)(quarter / NS_PER_MS);
    return k->hold_until + (k->job.is_only ? 0 : quarter);
}

/* When the guard must have noticed that there is no progress, and have acted; 0: nobody asks. It
 * has nearly a lease for that, so the mutex is another's a lease after the end of the patience. */
static int64_t stall_due_at(const struct keeper *k)
{
    const struct cli *c = k->opts->c;
    int64_t until =
        k->opts->progress != 0 && k->tenure != 0 ? *k->opts->running->progress_until : 0;
    int64_t lease = (c->ttl_ms + c->transition_ms) * NS_PER_MS;
    return until != 0 ? until + lease - run_options_lease_margin(c) : 0;
}

static void check_guard(struct keeper *k)
{
    int grace_ms = GUARD_GRACE_MS;
    struct pollfd fd = {k->channel, POLLIN, 0};
    if (k->channel < 0 || k->job.is_denied)
        return;
    int64_t now = clock_now(), stall_due = stall_due_at(k);
    bool is_stalled = stall_due != 0 && now > stall_due;
    if (!is_stalled && (!is_under_way(k) || now <= guard_due_at(k, &grace_ms)))
        return;
    if (is_stalled)
        end_tenure(k, k->tenure, SIMBA_STALLED);
    k->job.term_sent = k->job.term_sent || k->job.kind == JOB_CMD;
    process_tree_signal(SIGKILL, k->guard, NULL);
    if (poll(&fd, 1, grace_ms) == 0)
        on_guard_gone(k, "did not end CMD in time: was it stopped?");
}

static void on_empty(struct keeper *k, const struct message *m)
{
    if (m->job == JOB_ON_RELEASED) {
        k->on_released_done = m->token;
        k->on_released_due = k->on_released_due && m->token != k->tenure;
    }
    if (!is_under_way(k) || k->job.kind != m->job || k->job.token != m->token)
        return;
    k->job.status = m->number;
    finish(k);
}

static void on_message(struct keeper *k, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_STARTED:
        if (!k->opts->in_background)
            spawn_drop_stdio();
        return;
    case MESSAGE_FAILED:
        k->job.error = m->number;
        return;
    case MESSAGE_ENDED:
        k->job.left_behind = m->number;
        k->job.left_since = clock_now();
        return;
    case MESSAGE_TERM_SENT:
        k->job.term_sent = true;
        end_tenure(k, m->token, (enum simba_reason)m->number);
        return;
    case MESSAGE_DENIED:
        k->job.is_denied = is_under_way(k) && k->job.kind == m->job && k->job.token == m->token;
        return;
    case MESSAGE_EMPTY:
        on_empty(k, m);
        return;
    default:
        return;
    }
}

/* After an only command the guard has ended, too. */
static void on_channel(struct keeper *k)
{
    struct message m;
    int none, rc;
    while ((rc = channel_receive(k->channel, &m, &none)) > 0)
        on_message(k, &m);
    if (rc == 0 && !(k->job.is_only && k->job.is_over))
        on_guard_gone(k, "was killed");
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* What the terminal sends, it sends to CMD as well if that is in our group: the guard knows. */
static void pass_on(const struct keeper *k, int signal, bool from_terminal)
{
    struct message m = {.kind = MESSAGE_SIGNAL, .number = signal, .from_terminal = from_terminal};
    if (is_under_way(k))
        channel_send(k->channel, &m, -1);
}

void keeper_stop(struct keeper *k)
{
    k->is_stopping = true;
    if (!k->has_ending_signal && k->job.kind == JOB_CMD)
        pass_on(k, k->opts->signal, false);
}

static void on_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    while (read(k->opts->running->signals.fd, &info, sizeof info) == sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD) {
            process_tree_reap(&k->guard);
            continue;
        }
        pass_on(k, signal, signal_is_from_terminal(&info));
        k->has_ending_signal = k->has_ending_signal || signal_ends(signal);
    }
}

/* A renewal shows within a quarter of what is left, so the guard hears of it in time. */
static int pause_ms(const struct keeper *k, int64_t most)
{
    int64_t ms = most, now = clock_now(), part = k->opts->c->ttl_ms / 8;
    int unused;
    if (k->channel >= 0 && k->tenure != 0) {
        int64_t quarter = (k->hold_until - k->opts->kill_after - now) / NS_PER_MS / 4;
        ms = part < ms ? part : ms;
        ms = quarter > 0 && quarter < ms ? quarter : ms;
    }
    if (k->channel >= 0 && is_under_way(k) && !k->job.is_denied) {
        int64_t due = (guard_due_at(k, &unused) - now) / NS_PER_MS + 1;
        ms = due < ms ? due : ms;
    }
    int64_t stall = k->channel >= 0 && !k->job.is_denied ? stall_due_at(k) : 0;
    if (stall != 0 && (stall - now) / NS_PER_MS + 1 < ms)
        ms = (stall - now) / NS_PER_MS + 1;
    return (int)(ms > PAUSE_LEAST_MS ? ms : PAUSE_LEAST_MS);
}

static void wait_for_events(struct keeper *k, int ms)
{
    struct pollfd fds[] = {
        {k->opts->running->signals.fd, POLLIN, 0}, {k->wake, POLLIN, 0}, {k->channel, POLLIN, 0}};
    uint64_t times;
    pthread_mutex_unlock(&k->lock);
    int n = poll(fds, 3, ms);
    pthread_mutex_lock(&k->lock);
    if (n > 0 && fds[1].revents != 0)
        (void)!read(k->wake, &times, sizeof times);
    if (n > 0 && fds[0].revents != 0)
        on_signals(k);
    if (n > 0 && k->channel >= 0 && fds[2].revents != 0)
        on_channel(k);
}

struct outcome keeper_run(struct keeper *k)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pthread_mutex_lock(&k->lock);
    for (;;) {
        if (k->channel >= 0 && k->tenure != 0)
            move_deadline(k);
        send_job(k);
        check_loss(k);
        check_guard(k);
        int most = 0;
        if (!k->on_turn(k->data, &most))
            break;
        wait_for_events(k, service_watchdog_turn(pause_ms(k, most)));
    }
    service_watchdog_leave();
    struct outcome o = outcome_of(k);
    pthread_mutex_unlock(&k->lock);
    return o;
}
