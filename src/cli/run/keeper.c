/* keeper.c: the process that holds the lock while CMD runs. The library renews the lease on its own
 * threads; this one tells the guard until when it holds, passes signals on, and stands in for the
 * guard if that one dies or does not act in time. */
#include "cli/run/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/run/channel.h"
#include "cli/run/clock.h"
#include "cli/run/guard.h"
#include "cli/run/notify.h"
#include "cli/run/plan.h"
#include "cli/run/poll_thread.h"
#include "cli/run/process_tree.h"

#define FEED_LEAST_MS 5
#define SHORT_MS 20
#define GUARD_GRACE_MS 200          /* for a guard that should have acted */
#define ROUNDING_NS (2 * NS_PER_MS) /* what is left is told in whole milliseconds */
#define REST_AFTER_MS 500 /* before that it is not worth a line: they may be on their way out */

struct keeper {
    struct plan *p;
    simba_locker *l;
    int lost, link;
    pid_t guard;
    int64_t hold_until;
    bool is_told; /* CMD, because of the lease */
    bool is_over;
    int code;           /* the exit code, when it is over */
    int rest;           /* how many CMD has left behind, when that was not said yet */
    int64_t rest_since; /* and since when */
};

int exit_code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void finish(struct keeper *k, int code)
{
    k->is_over = true;
    k->code = k->is_told ? EXIT_LOST : code;
}

/* ---- what the guard has to know --------------------------------------------------------------- */

/* The clock is read before the library is asked, so the result is early, never late. */
static void look_at_lease(struct keeper *k)
{
    int64_t now = now_ns(), left = simba_locker_remaining(k->l);
    if (left > 0 && now + left * NS_PER_MS > k->hold_until + ROUNDING_NS)
        k->hold_until = now + left * NS_PER_MS;
}

static void feed(struct keeper *k)
{
    int64_t before = k->hold_until;
    look_at_lease(k);
    if (k->hold_until > before)
        *k->p->deadline = k->hold_until;
}

/* A renewal shows within a quarter of what is left, so the guard hears of it in time. */
static int feed_pause_ms(const struct keeper *k)
{
    int64_t left = (k->hold_until - k->p->kill_after - now_ns()) / NS_PER_MS / 4;
    int64_t most = k->p->c->ttl_ms / 4;
    left = left < most ? left : most;
    if (k->rest > 0 && left > REST_AFTER_MS)
        left = REST_AFTER_MS;
    return (int)(left > FEED_LEAST_MS ? left : FEED_LEAST_MS);
}

/* ---- in the guard's place --------------------------------------------------------------------- */

static void on_guard_gone(struct keeper *k)
{
    if (!k->is_over) {
        print_error(k->p->c, "mutex '%s': the guard died; CMD was killed", k->p->mutex);
        process_tree_kill(k->guard);
        k->guard = 0;
        finish(k, EXIT_TROUBLE);
    }
    close(k->link);
    k->link = -1;
}

/* The lease has ended and the guard does not say that the tree has, too. */
static void on_deadline(struct keeper *k)
{
    struct pollfd fd = {k->link, POLLIN, 0};
    k->is_told = true;
    process_tree_signal(SIGKILL, k->guard);
    if (poll(&fd, 1, GUARD_GRACE_MS) > 0)
        return; /* it lives */
    print_error(k->p->c, "mutex '%s': the guard did not act; CMD was killed", k->p->mutex);
    process_tree_kill(k->guard);
    k->guard = 0;
    finish(k, EXIT_LOST);
}

/* ---- events ----------------------------------------------------------------------------------- */

static void say_rest(struct keeper *k)
{
    int count = k->rest;
    k->rest = 0;
    if (k->p->rest == REST_KILL)
        print_note(k->p->c, "mutex '%s': CMD has ended; ending %d process%s that it left",
                   k->p->mutex, count, count == 1 ? "" : "es");
    else
        print_note(k->p->c,
                   "mutex '%s': CMD has ended; the lock is held until %d process%s that it left %s "
                   "(--kill-rest ends them, --leave-rest does not wait)",
                   k->p->mutex, count, count == 1 ? "" : "es", count == 1 ? "ends" : "end");
}

static void on_failed(struct keeper *k, int error)
{
    print_error(k->p->c, "cannot run %s: %s", k->p->argv[0], strerror(error));
    finish(k, error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static void on_message(struct keeper *k, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_STARTED:
        guard_drop_stdio();
        return;
    case MESSAGE_FAILED:
        on_failed(k, m->number);
        return;
    case MESSAGE_ENDED:
        k->rest = m->number;
        k->rest_since = now_ns();
        return;
    case MESSAGE_TERM_SENT:
        k->is_told = true;
        return;
    case MESSAGE_EMPTY:
        finish(k, exit_code_of(m->number));
        return;
    default:
        return;
    }
}

static void on_link(struct keeper *k)
{
    struct message m;
    int none, rc = -1;
    while (!k->is_over && (rc = channel_receive(k->link, &m, &none)) > 0)
        on_message(k, &m);
    if (!k->is_over && rc == 0)
        on_guard_gone(k);
}

static void on_lost(struct keeper *k)
{
    uint64_t times;
    (void)!read(k->lost, &times, sizeof times);
    print_error(k->p->c, "mutex '%s' on %s: the lock was lost; CMD is told to end", k->p->mutex,
                k->p->c->store);
    k->is_told = true;
    channel_send(k->link, &(struct message){.kind = MESSAGE_LOST}, -1);
}

/* What the terminal sends, it sends to CMD as well if that is in our group: the guard knows. */
static void on_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    while (read(k->p->signals.fd, &info, sizeof info) == sizeof info) {
        struct message m = {.kind = MESSAGE_SIGNAL, .number = (int)info.ssi_signo};
        m.from_terminal = signal_is_from_terminal(&info);
        if (info.ssi_signo == SIGCHLD)
            process_tree_reap(&k->guard); /* as PID 1 we also get the orphans of others */
        else if (k->link >= 0)
            channel_send(k->link, &m, -1);
    }
}

static void run(struct keeper *k)
{
    int64_t began = now_ns();
    bool is_short = true; /* a CMD that ends soon needs no thread for renewals */
    while (!k->is_over) {
        struct pollfd fds[] = {
            {k->link, POLLIN, 0}, {k->p->signals.fd, POLLIN, 0}, {k->lost, POLLIN, 0}};
        int n = poll(fds, k->is_told ? 2 : 3, is_short ? SHORT_MS : feed_pause_ms(k));
        if (is_short && now_ns() - began >= SHORT_MS * NS_PER_MS)
            is_short = !poll_thread_start(k->p->c); /* if there is none, the lock lasts one lease */
        feed(k);
        if (n > 0 && fds[1].revents != 0)
            on_signals(k);
        if (n > 0 && fds[0].revents != 0)
            on_link(k); /* before the others: CMD may have ended while we were stopped */
        if (n > 0 && !k->is_over && !k->is_told && fds[2].revents != 0)
            on_lost(k);
        int64_t now = now_ns();
        if (!k->is_over && k->rest > 0 && now - k->rest_since >= REST_AFTER_MS * NS_PER_MS)
            say_rest(k);
        if (!k->is_over && now > k->hold_until)
            on_deadline(k);
    }
}

/* ---- the whole -------------------------------------------------------------------------------- */

/* The lock had gone before CMD ended by itself, or the store cannot be told. */
static void release(struct keeper *k)
{
    int rc = simba_locker_release(k->l);
    if (rc == 0 || k->is_told)
        return;
    print_error(k->p->c, "%s", simba_error_text());
    if (rc == SIMBA_ELOST)
        k->code = EXIT_LOST;
}

int keep(struct plan *p, simba_locker *l, int lost, int link, pid_t guard)
{
    struct keeper k = {.p = p, .l = l, .lost = lost, .link = link, .guard = guard};
    struct message m = {.kind = MESSAGE_START, .token = simba_locker_token(l)};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    feed(&k);
    snprintf(m.id, sizeof m.id, "%s", simba_locker_id(l));
    snprintf(m.store, sizeof m.store, "%s", p->c->store);
    if (m.token == 0) {
        print_error(p->c, "mutex '%s': the lock was lost before CMD began", p->mutex);
        guard_end(guard);
        return EXIT_LOST;
    }
    notify_service_manager("READY=1");
    if (!channel_send(link, &m, simba_liveness_fd(p->c->client))) {
        on_guard_gone(&k);
    } else {
        run(&k);
    }
    release(&k);
    guard_end(k.guard);
    return k.code;
}
