/* series.c: the keeper of elect and schedule: commands one after the other, by one guard that was
 * forked before any thread.
 *
 * The main thread has the link to the guard, the signals and the time. A callback that wants a command
 * run leaves it in `job`. elect does not wait for it before on_released, which the library calls as soon
 * as the tenure is lost; the work of schedule waits, so there the main thread sees a loss by asking.
 * The library keeps the tenure until on_released, or the work, returns. */
#include "cli/run/series.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/owner_table.h"
#include "cli/run/channel.h"
#include "cli/run/clock.h"
#include "cli/run/guard.h"
#include "cli/run/keeper.h"
#include "cli/run/notify.h"
#include "cli/run/plan.h"
#include "cli/run/process_tree.h"
#include "cli/run/relay.h"

#define LOOK_MS 100       /* how soon it is seen that a tenure was lost under schedule's work … */
#define LOOK_IDLE_MS 1000 /* … otherwise the library calls us, but the guard wants feeding */
#define LOOK_STOPPING_MS 10 /* how soon it is seen that all is over */
#define GUARD_GRACE_MS 1000 /* at most, for a guard that should have acted */
#define ROUNDING_NS (2 * NS_PER_MS)
#define CONNECT_TIMEOUT_MS 5000
#define SILENCE_MS 1000
#define READ_TIMEOUT_MS 1000
#define CLOSE_TIMEOUT_MS 5000
#define ENVIRONMENT_MAX 4096 /* variables */
#define OWN_VARIABLES 5

int series_begin(struct series *s, struct plan *p)
{
    s->p = p;
    s->link = -1;
    p->in_background = true;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->done, NULL);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool has_commands = p->argv != NULL || p->on_released != NULL;
    if (s->wake < 0 || (has_commands && !relay_fork(p->c)) || !signals_take(&p->signals) ||
        (has_commands && (s->guard = guard_fork(p, &s->link)) < 0)) {
        print_error(p->c, "cannot start: %s", strerror(errno));
        return EXIT_TROUBLE;
    }
    return 0;
}

/* ---- on the library's threads ---------------------------------------------------------------- */

static void wake(struct series *s)
{
    (void)!write(s->wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* Under the lock, and so is the next one. */
static void want_job(struct series *s, enum job kind, uint64_t token)
{
    memset(&s->job, 0, sizeof s->job);
    s->job.kind = kind;
    s->job.token = token;
    s->job.is_wanted = true;
    wake(s);
}

static struct outcome outcome_of(const struct series *s)
{
    struct outcome o = {.is_run = false};
    if (!s->job.is_over)
        return o;
    o.is_run = s->job.is_sent;
    o.is_lost = s->job.is_told;
    o.error = s->job.error;
    o.code = o.error == 0        ? exit_code_of(s->job.status)
             : o.error == ENOENT ? EXIT_NOT_FOUND
                                 : EXIT_CANNOT_RUN;
    return o;
}

struct outcome series_perform(struct series *s, enum job kind, uint64_t token,
                              enum simba_reason reason)
{
    if (s->link < 0)
        return (struct outcome){.is_run = false};
    pthread_mutex_lock(&s->lock);
    want_job(s, kind, token);
    s->job.reason = reason;
    while (!s->job.is_over && !s->is_dead)
        pthread_cond_wait(&s->done, &s->lock);
    struct outcome o = outcome_of(s);
    s->job.is_wanted = false;
    pthread_mutex_unlock(&s->lock);
    return o;
}

void series_launch(struct series *s, uint64_t token)
{
    if (s->link < 0)
        return;
    pthread_mutex_lock(&s->lock);
    want_job(s, JOB_CMD, token);
    s->job.is_detached = true;
    while (!s->job.is_sent && !s->job.is_over && !s->is_dead)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void series_await(struct series *s, uint64_t token, enum simba_reason reason)
{
    pthread_mutex_lock(&s->lock);
    if (s->job.is_wanted && s->job.token == token) {
        if (reason_is_loss(reason))
            s->job.reason = reason; /* so the command is told to end */
        wake(s);
        while (!s->job.is_over && !s->is_dead)
            pthread_cond_wait(&s->done, &s->lock);
        s->job.is_wanted = false;
    }
    pthread_mutex_unlock(&s->lock);
}

enum simba_reason series_reason(struct series *s, uint64_t token, enum simba_reason reason)
{
    pthread_mutex_lock(&s->lock);
    if (reason == SIMBA_RELEASED && s->ended_by_guard == token)
        reason = SIMBA_EXPIRED;
    pthread_mutex_unlock(&s->lock);
    return reason;
}

void series_end(struct series *s, int code)
{
    pthread_mutex_lock(&s->lock);
    s->is_end = true;
    s->code = code;
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

void series_flush(struct series *s)
{
    if (fflush(stdout) == 0)
        return;
    if (errno != EPIPE)
        print_error(s->p->c, "cannot write to stdout: %s", strerror(errno));
    series_end(s, errno == EPIPE ? EXIT_NO_READER : EXIT_TROUBLE);
}

/* ---- the job, on the main thread, under the lock ------------------------------------------------ */

static void finish_job(struct series *s)
{
    s->job.is_over = true;
    if (s->job.is_detached) {
        struct outcome o = outcome_of(s);
        if (!s->judge(s->data, &o))
            s->step = STEP_DOWN;
    }
    pthread_cond_broadcast(&s->done);
}

/* The clock is read before the library is asked, so the result is early, never late. */
static void look_at_lease(struct series *s)
{
    int64_t now = now_ns(), left = simba_contender_remaining(s->contender);
    if (left > 0 && simba_contender_owns(s->contender, s->tenure) &&
        now + left * NS_PER_MS > s->hold_until + ROUNDING_NS)
        s->hold_until = now + left * NS_PER_MS;
}

static void feed(struct series *s)
{
    int64_t before = s->hold_until;
    if (s->link < 0 || s->tenure == 0)
        return;
    look_at_lease(s);
    if (s->hold_until > before)
        *s->p->deadline = s->hold_until;
}

static void send_cmd(struct series *s)
{
    struct message m = {.kind = MESSAGE_START, .job = JOB_CMD, .token = s->job.token};
    s->hold_until = 0;
    s->tenure = s->job.token;
    look_at_lease(s);
    if (s->hold_until == 0) { /* over before it began */
        s->tenure = 0;
        finish_job(s);
        return;
    }
    *s->p->deadline = s->hold_until;
    snprintf(m.id, sizeof m.id, "%s", simba_contender_id(s->contender));
    snprintf(m.store, sizeof m.store, "%s", s->p->c->store);
    s->is_led = true;
    s->job.is_sent = true;
    channel_send(s->link, &m, simba_liveness_fd(s->p->c->client));
    pthread_cond_broadcast(&s->done);
}

/* Where another may own it; if that is over, late is better than never. */
static int64_t last_until(const struct series *s)
{
    int64_t until = s->hold_until + plan_lease_margin(s->p->c), now = now_ns();
    return until >= now ? until : now + s->p->kill_after + plan_lease_margin(s->p->c);
}

static void send_last(struct series *s)
{
    struct message m = {.kind = MESSAGE_START,
                        .job = JOB_ON_RELEASED,
                        .token = s->job.token,
                        .number = (int)s->job.reason};
    if (!s->is_led || s->tenure != s->job.token || s->last_done == s->tenure) {
        s->job.is_sent = s->last_done == s->job.token;
        finish_job(s); /* not to be run, or the guard has */
        return;
    }
    s->job.until = last_until(s);
    s->job.is_sent = true;
    channel_send(s->link, &m, -1);
}

static void tend_job(struct series *s)
{
    if (!s->job.is_wanted || s->job.is_sent || s->job.is_over)
        return;
    if (s->job.kind == JOB_CMD)
        send_cmd(s);
    else
        send_last(s);
}

static bool is_under_way(const struct series *s)
{
    return s->job.is_wanted && s->job.is_sent && !s->job.is_over;
}

/* The library has said so, or cannot, because its thread waits for the command: then it is asked. */
static void look_for_loss(struct series *s)
{
    if (!is_under_way(s) || s->job.kind != JOB_CMD || s->job.is_told || s->is_stopping ||
        (s->job.reason == SIMBA_UNCHANGED && simba_contender_owns(s->contender, s->tenure)))
        return;
    if (s->job.reason == SIMBA_UNCHANGED)
        s->job.reason = now_ns() < s->hold_until ? SIMBA_EVICTED : SIMBA_EXPIRED;
    s->job.is_told = true;
    print_error(s->p->c, "mutex '%s' on %s: lost (%s); CMD is told to end", s->p->mutex,
                s->p->c->store, reason_name(s->job.reason));
    channel_send(s->link, &(struct message){.kind = MESSAGE_LOST, .number = (int)s->job.reason},
                 -1);
}

/* ---- the guard ----------------------------------------------------------------------------------- */

/* The environment of last, for which the guard has set it. */
static void environment_of(const struct series *s, char *out[ENVIRONMENT_MAX], char (*own)[URL_MAX])
{
    const char *const name[OWN_VARIABLES] = {"SIMBA_MUTEX", "SIMBA_CONTENDER_ID", "SIMBA_STORE",
                                             "SIMBA_REASON", "SIMBA_FENCING_TOKEN"};
    const char *const value[] = {s->p->mutex, simba_contender_id(s->contender), s->p->c->store,
                                 reason_name(SIMBA_RELEASED)}; /* we still own it */
    size_t n = 0, count = OWN_VARIABLES;
    for (; n < count; n++) {
        if (n + 1 < count)
            snprintf(own[n], URL_MAX, "%s=%s", name[n], value[n]);
        else
            snprintf(own[n], URL_MAX, "%s=%llu", name[n], (unsigned long long)s->tenure);
        out[n] = own[n];
    }
    for (char **e = environ; *e != NULL && n + 1 < ENVIRONMENT_MAX; e++) {
        bool is_ours = false;
        for (size_t i = 0; i < count; i++)
            is_ours = is_ours ||
                      (strncmp(*e, name[i], strlen(name[i])) == 0 && (*e)[strlen(name[i])] == '=');
        if (!is_ours)
            out[n++] = *e;
    }
    out[n] = NULL;
}

/* Without a guard: last is run by ourselves, and ended before another can own the mutex; the library
 * renews meanwhile. There are threads, so it is spawned, not forked. */
static void run_last_here(struct series *s)
{
    static char own[OWN_VARIABLES][URL_MAX], *environment[ENVIRONMENT_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t pid;
    int64_t until = last_until(s) - plan_lease_margin(s->p->c) / 10;
    if (!s->is_led || s->p->on_released == NULL || s->last_done == s->tenure)
        return;
    s->last_done = s->tenure;
    s->is_led = false;
    environment_of(s, environment, own);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (s->p->to_stderr)
        posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &s->p->signals.mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawn(&pid, s->p->on_released[0], &files, &attributes, s->p->on_released,
                         environment);
    if (rc != 0)
        print_error(s->p->c, "cannot run %s: %s", s->p->on_released[2], strerror(rc));
    while (rc == 0 && now_ns() < until && waitpid(pid, NULL, WNOHANG) == 0)
        poll(NULL, 0, LOOK_STOPPING_MS);
    process_tree_kill(0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
}

/* There is no other: a guard has to be forked before there are threads. So this is the end, in order. */
static void on_guard_gone(struct series *s, const char *what)
{
    print_error(s->p->c, "mutex '%s': the guard %s; CMD was killed", s->p->mutex, what);
    process_tree_kill(s->guard);
    s->guard = 0;
    run_last_here(s);
    close(s->link);
    s->link = -1;
    s->is_dead = true;
    s->is_end = true;
    s->code = EXIT_TROUBLE;
    pthread_cond_broadcast(&s->done);
}

/* A quarter of the margin later than it should have been, and another quarter: then half of it is left for
 * last, before another can own it. */
static void look_at_guard(struct series *s)
{
    bool is_cmd = s->job.kind == JOB_CMD;
    int64_t quarter = plan_lease_margin(s->p->c) / 4;
    int64_t at = is_cmd ? s->hold_until + quarter : s->job.until;
    int64_t grace = is_cmd ? quarter / NS_PER_MS : GUARD_GRACE_MS;
    struct pollfd fd = {s->link, POLLIN, 0};
    if (!is_under_way(s) || now_ns() < at)
        return;
    process_tree_signal(SIGKILL, s->guard);
    if (poll(&fd, 1, (int)(grace < GUARD_GRACE_MS ? grace : GUARD_GRACE_MS)) == 0)
        on_guard_gone(s, "did not act");
}

static void on_empty(struct series *s, const struct message *m)
{
    if (m->job == JOB_ON_RELEASED) {
        s->last_done = m->token;
        s->is_led = s->is_led && m->token != s->tenure;
    }
    if (!is_under_way(s) || s->job.kind != m->job || s->job.token != m->token)
        return;
    s->job.status = m->number;
    finish_job(s);
}

static void on_message(struct series *s, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_FAILED:
        s->job.error = m->number;
        return;
    case MESSAGE_TERM_SENT: /* it has begun to wind up the tenure, so it must not go on */
        s->job.is_told = true;
        s->ended_by_guard = m->token;
        if (s->step == STAY && s->p->on_released != NULL)
            s->step = STEP_ASIDE;
        return;
    case MESSAGE_EMPTY:
        on_empty(s, m);
        return;
    default:
        return;
    }
}

static void on_link(struct series *s)
{
    struct message m;
    int none, rc;
    while ((rc = channel_receive(s->link, &m, &none)) > 0)
        on_message(s, &m);
    if (rc == 0)
        on_guard_gone(s, "died");
}

/* ---- the life ------------------------------------------------------------------------------------ */

static void stop(struct series *s)
{
    if (s->is_stopping)
        return;
    s->is_stopping = true;
    s->again_at = 0;
    simba_contender_stop(s->contender); /* fails only if it is stopped already */
}

static void on_signals(struct series *s)
{
    struct signalfd_siginfo info;
    while (read(s->p->signals.fd, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD) {
            process_tree_reap(&s->guard);
            continue;
        }
        if (is_under_way(s))
            channel_send(s->link, &(struct message){.kind = MESSAGE_SIGNAL, .number = number}, -1);
        if (signal_ends(number))
            stop(s);
    }
}

/* It is stopped by us; or by itself, when a scheduler has got no thread for its work. */
static void tend_contender(struct series *s)
{
    int64_t now = now_ns(), later = now + s->p->c->ttl_ms * NS_PER_MS;
    bool is_idle = simba_contender_status(s->contender) == SIMBA_INITIAL;
    if (s->is_end)
        stop(s);
    if (s->is_stopping)
        return;
    if (s->step != STAY && s->again_at == 0) {
        s->again_at = s->step == STEP_DOWN ? later : now;
        simba_contender_stop(s->contender);
    } else if (is_idle && s->again_at == 0) {
        s->again_at = later;
    } else if (is_idle && now >= s->again_at) {
        s->again_at = 0;
        simba_contender_start(s->contender);
    }
    s->step = STAY;
}

static int pause_ms(const struct series *s)
{
    int64_t ms = LOOK_IDLE_MS;
    if (s->is_stopping)
        return LOOK_STOPPING_MS;
    if ((is_under_way(s) && !s->job.is_detached) || s->again_at != 0)
        ms = LOOK_MS;
    if (s->link >= 0 && s->tenure != 0) { /* a renewal shows within a quarter of what is left */
        int64_t left = (s->hold_until - s->p->kill_after - now_ns()) / NS_PER_MS / 4;
        if (left <= 0 && is_under_way(s))
            left = LOOK_MS; /* the guard has to act */
        ms = left > 0 && left < ms ? left : ms;
        ms = ms < s->p->c->ttl_ms / 8 ? ms : s->p->c->ttl_ms / 8;
    }
    return (int)(ms > 5 ? ms : 5);
}

/* Says what is wrong with a store that does not answer; from then on only that it does. */
static void *herald(void *arg)
{
    struct series *s = arg;
    struct simba_owner owner;
    int64_t patience = simba_now() + CONNECT_TIMEOUT_MS;
    for (bool has_said = false;;) {
        int rc = simba_contender_wait(s->contender, SIMBA_RUNNING,
                                      has_said          ? SIMBA_FOREVER
                                      : s->p->fail_fast ? CONNECT_TIMEOUT_MS
                                                        : SILENCE_MS);
        if (rc == 0) {
            notify_service_manager("READY=1");
            if (has_said)
                print_note(s->p->c, "%s answers now", s->p->c->store);
            return NULL;
        }
        if (rc != SIMBA_ETIMEOUT)
            return NULL;
        rc = simba_read(s->p->c->client, s->p->mutex, READ_TIMEOUT_MS, &owner);
        if (rc == 0 || (rc == SIMBA_ETIMEOUT && simba_now() < patience))
            continue;
        has_said = true;
        print_error(s->p->c, "%s%s", simba_error_text(),
                    s->p->fail_fast ? "" : "; it is tried again");
        if (s->p->fail_fast) {
            series_end(s, EXIT_TROUBLE);
            return NULL;
        }
    }
}

static void turn(struct series *s)
{
    feed(s);
    tend_job(s);
    look_for_loss(s);
    if (s->link >= 0)
        look_at_guard(s);
    tend_contender(s);
}

int series_run(struct series *s)
{
    pthread_t thread;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    simba_contender_start(s->contender);
    if (pthread_create(&thread, NULL, herald, s) == 0)
        pthread_detach(thread);
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping || simba_contender_status(s->contender) != SIMBA_INITIAL) {
        struct pollfd fds[] = {
            {s->p->signals.fd, POLLIN, 0}, {s->wake, POLLIN, 0}, {s->link, POLLIN, 0}};
        int ms = pause_ms(s);
        uint64_t times;
        pthread_mutex_unlock(&s->lock);
        int n = poll(fds, 3, ms);
        pthread_mutex_lock(&s->lock);
        if (n > 0 && fds[1].revents != 0)
            (void)!read(s->wake, &times, sizeof times);
        if (n > 0 && fds[0].revents != 0)
            on_signals(s);
        if (n > 0 && s->link >= 0 && fds[2].revents != 0)
            on_link(s);
        turn(s);
    }
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    simba_close(s->p->c->client, CLOSE_TIMEOUT_MS);
    guard_end(s->guard);
    return code;
}
