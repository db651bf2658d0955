/* locked.c: see locked.h. */
#include "cli/run/locked.h"

#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/schemes.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/run/guard.h"
#include "cli/run/listen.h"
#include "cli/run/outage.h"
#include "cli/run/poll_thread.h"
#include "cli/run/relay.h"

#define SHORT_MS 20
#define REASON_WAIT_MS 100
#define LEFT_BEHIND_AFTER_MS 500 /* before that it is not worth a line: they may be about to end */

/* ---- options ------------------------------------------------------------------------------- */

void locked_init(struct locked *x, struct cli *c)
{
    x->plan.c = c;
    x->plan.wait_ms = SIMBA_FOREVER;
    x->plan.conflict_code = EXIT_CONFLICT;
    x->plan.signal = SIGTERM;
    x->plan.running = &x->running;
    x->running.signals.fd = -1;
    mallopt(M_ARENA_MAX, 1); /* one for each of our few threads costs more than they ever wait */
}

struct step locked_take(struct locked *x, int id, char *value)
{
    struct plan *p = &x->plan;
    char *end;
    long number;
    switch (id) {
    case LOCKED_WAIT:
        return cli_take_duration(p->c, "--wait", value, &p->wait_ms);
    case LOCKED_CONFLICT:
        number = strtol(value, &end, 10);
        if (*value == '\0' || *end != '\0' || number < 0 || number > 255)
            return usage(p->c, "--conflict-exit-code '%.20s' is not a number from 0 to 255", value);
        p->conflict_code = (int)number;
        return GO_ON;
    case LOCKED_COMMAND:
        plan_shell_argv(x->shell, value);
        return GO_ON;
    case LOCKED_CLOSE:
        p->close_live = true;
        return GO_ON;
    case LOCKED_KILL_REST:
        p->rest = REST_KILL;
        return GO_ON;
    case LOCKED_LEAVE_REST:
        p->rest = REST_LEAVE;
        return GO_ON;
    default:
        return plan_take(p, id, value);
    }
}

bool locked_has_cmd(const struct locked *x)
{
    return x->plan.argv != NULL || x->shell[0] != NULL;
}

struct step locked_configure(struct locked *x)
{
    struct step step = plan_choose_cmd(&x->plan, x->shell);
    if (!step.ends)
        step = plan_progress(&x->plan, x->plan.argv != NULL);
    if (!step.ends)
        step = cli_configure(x->plan.c);
    return step.ends ? step : plan_kill_after(&x->plan);
}

/* ---- the lock ------------------------------------------------------------------------------ */

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    struct locked *x = data;
    (void)mutex;
    x->reason = state->reason;
    keeper_wake(&x->keeper);
}

static struct step create_locker(struct locked *x)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    const struct plan *p = &x->plan;
    struct step step = plan_handle(p, &o);
    if (step.ends)
        return step;
    o.on_lost = on_lost;
    o.data = x;
    int rc = simba_locker_create(p->c->client, p->mutex, &o, &x->locker);
    return rc == 0 ? GO_ON : plan_refused(p, rc);
}

struct step locked_open(struct locked *x)
{
    const struct plan *p = &x->plan;
    const char *url = p->c->setting[SET_URL].value;
    bool is_file = url == NULL || scheme_kind(url) == STORE_SQLITE;
    p->c->is_driven = is_file && p->c->setting[SET_LISTEN].value == NULL;
    struct step step = keeper_begin(&x->keeper, p);
    if (!step.ends)
        step = create_locker(x);
    return step.ends ? step : listen_begin(p, NULL, x->locker);
}

void locked_say_acquired(const struct locked *x)
{
    const struct plan *p = &x->plan;
    p->c->token = simba_locker_token(x->locker);
    if (p->c->verbose > 0)
        print_level(p->c, SIMBA_LOG_INFO, "mutex '%s' on %s: acquired by %s, token %llu", p->mutex,
                    p->c->store, simba_locker_id(x->locker), (unsigned long long)p->c->token);
}

/* ---- CMD under the lock -------------------------------------------------------------------- */

static int64_t remaining_ms(void *data, uint64_t token)
{
    const struct locked *x = data;
    int64_t left = simba_locker_remaining(x->locker);
    return simba_locker_token(x->locker) == token ? left : 0;
}

static void print_left_behind(const struct plan *p, int count)
{
    const char *es = count == 1 ? "" : "es";
    if (p->rest == REST_KILL)
        print_note(p->c,
                   "mutex '%s' on %s: CMD has ended; ending %d process%s that it left running",
                   p->mutex, p->c->store, count, es);
    else
        print_note(
            p->c,
            "mutex '%s' on %s: CMD has ended, but left %d process%s running; the lock is held "
            "until %s (--kill-rest ends them, --leave-rest does not wait)",
            p->mutex, p->c->store, count, es, count == 1 ? "it ends" : "they end");
}

/* A CMD that ends soon needs no thread for renewals. If there is none, the lock lasts one lease. */
static bool on_turn(void *data, int *pause_ms)
{
    struct locked *x = data;
    struct keeper *k = &x->keeper;
    int64_t now = clock_now();
    bool is_young = !x->is_polled && now - x->began < SHORT_MS * NS_PER_MS;
    *pause_ms = is_young ? SHORT_MS : k->job.left_behind == 0 ? INT_MAX : LEFT_BEHIND_AFTER_MS;
    if (k->job.is_over || k->is_guard_dead)
        return false;
    if (is_young)
        return true;
    if (!x->is_polled)
        poll_thread_start(x->plan.c);
    x->is_polled = true;
    if (k->job.left_behind > 0 && now - k->job.left_since >= LEFT_BEHIND_AFTER_MS * NS_PER_MS) {
        print_left_behind(&x->plan, k->job.left_behind);
        k->job.left_behind = 0;
    }
    return true;
}

struct outcome locked_run(struct locked *x)
{
    struct keeper *k = &x->keeper;
    k->data = x;
    k->id = simba_locker_id(x->locker);
    k->remaining_ms = remaining_ms;
    k->on_turn = on_turn;
    x->began = clock_now();
    keeper_start_only(k, simba_locker_token(x->locker));
    relay_notify_ready();
    struct outcome o = keeper_run(k);
    x->was_held = simba_locker_is_held(x->locker);
    return o;
}

int locked_exit_code(const struct locked *x, const struct outcome *o)
{
    const struct plan *p = &x->plan;
    if (x->keeper.is_guard_dead)
        return x->keeper.job.term_sent ? EXIT_LOST : EXIT_TROUBLE;
    char why[OUTAGE_TEXT_MAX];
    if (!o->is_run)
        print_loss(p->c, "expired", "lost '%s' on %s before CMD began: %s", p->mutex, p->c->store,
                   outage_explain(p->c->outage, (int)getpid(), why));
    if (!o->is_run || o->is_lost)
        return EXIT_LOST;
    if (o->error != 0)
        print_error(p->c, "cannot run %s: %s; '%s' on %s is released", p->argv[0],
                    strerror(o->error), p->mutex, p->c->store);
    return o->code;
}

/* on_lost() may be under way. */
static enum simba_reason reason_of(const struct locked *x)
{
    for (int i = 0; i < REASON_WAIT_MS && x->reason == SIMBA_UNCHANGED; i++)
        poll(NULL, 0, 1);
    if (x->reason != SIMBA_UNCHANGED)
        return x->reason;
    return clock_now() < x->keeper.hold_until ? SIMBA_EVICTED : SIMBA_EXPIRED;
}

void locked_report_loss(struct locked *x, const char *meaning)
{
    const struct plan *p = &x->plan;
    enum simba_reason reason = reason_of(x);
    char why[OUTAGE_TEXT_MAX];
    print_loss(p->c, reason_name(reason), "lost '%s' on %s: %s%s", p->mutex, p->c->store,
               outage_why(p->c->outage, reason, (int)getpid(), why), meaning);
    x->is_loss_said = true;
}

int locked_release(struct locked *x, int code)
{
    int rc = simba_locker_release(x->locker);
    if (rc == 0 || x->keeper.job.term_sent)
        return code;
    if (rc != SIMBA_ELOST)
        print_error(x->plan.c, "%s", cli_error_text());
    else if (!x->is_loss_said)
        locked_report_loss(x, x->plan.argv == NULL ? ""
                              : x->was_held        ? "; CMD did not run then"
                                            : "; CMD has ended, but was not protected to its end");
    return rc == SIMBA_ELOST && !x->was_held ? EXIT_LOST : code;
}

void locked_end(struct locked *x)
{
    listen_end(&x->plan);
    guard_end(x->keeper.guard);
}
