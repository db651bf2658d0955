/* once.c: simba once: of all who call within a period, one runs CMD.
 *
 * What is known of the last run is the note of the mutex, which outlives the tenure that wrote it. So a
 * caller reads the note; if no run counts, it tries to own the mutex, without waiting; and as the owner
 * it reads the note once more, because another may have run CMD in between. Only an owner writes the
 * note, so who reads it as the owner knows the last word. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/run/acquire.h"
#include "cli/run/clock.h"
#include "cli/run/guard.h"
#include "cli/run/locked.h"

#define EARLY_PARTS 10 /* of the period, by default: so much earlier the next run may begin */
#define ASK_AGAIN_MS 100
#define WHY_MAX 1024

enum { OPT_PER, OPT_EARLY, OPT_AT_MOST_ONCE };

static const struct option options[] = {
    {"per", 0, OPT_PER, "D",
     "a run that has succeeded counts for this long, less --early, from its beginning on"},
    {"early", 0, OPT_EARLY, "D",
     "so much earlier than that the next may begin; default: a tenth of --per"},
    {"at-most-once", 0, OPT_AT_MOST_ONCE, NULL,
     "a run counts as soon as it begins, also if it fails or dies"},
    {"wait", 'w', LOCKED_WAIT, "D",
     "if it runs elsewhere, wait at most this long for its end, then exit with 124"},
    {"conflict-exit-code", 'E', LOCKED_CONFLICT, "N", "exit with N instead of 124"},
    LOCKED_OPTIONS,
    {NULL, 0, 0, NULL, NULL},
};

static const char help[] =
    "simba once NAME --per D CMD…: of all who call, one runs CMD. The others end with 0 at once, "
    "because it runs, or because a "
    "run "
    "counts. A run that fails, is lost or dies does not count: the next caller runs CMD again. "
    "-v says which of these it was; with --json, who does not run CMD prints it: outcome (running, "
    "done, failed, begun), age_ms, counts_ms, status, holder, token, mutex, store.\n\n"
    "Options end at the first word of CMD. CMD's environment is that of simba lock.\n\n"
    "Exit status: CMD's own if it was run here; 0 there was nothing to do; 123 the lease was lost "
    "and "
    "CMD was stopped; 124 it still runs elsewhere (-w); 125 simba itself failed, also if it could "
    "not "
    "record that CMD has succeeded; 126 CMD cannot be run; 127 CMD not found; 64 wrong usage.\n\n"
    "Examples:\n"
    "  # the same line in the crontabs of several machines; one of them runs it\n"
    "  0 3 * * *  simba once -u redis://db1/0 report --per 1d ./report\n"
    "  simba once --at-most-once invoices --per 1d ./send-invoices\n"
    "  simba once -w 10m migrate --per 1h ./migrate && ./serve\n";

struct once {
    struct locked locked;
    int64_t per_ms, early_ms; /* SIMBA_DEFAULT: not given */
    bool at_most_once;
};

/* ---- options ------------------------------------------------------------------------------- */

static int take_option(struct cli *c, void *data, int id, char *value)
{
    struct once *x = data;
    switch (id) {
    case OPT_PER:
        return cli_take_duration(c, "--per", value, &x->per_ms);
    case OPT_EARLY:
        return cli_take_duration(c, "--early", value, &x->early_ms);
    case OPT_AT_MOST_ONCE:
        x->at_most_once = true;
        return -1;
    default:
        return locked_take(&x->locked, id, value);
    }
}

static int take_operand(struct cli *c, void *data, int id, char *value)
{
    struct once *x = data;
    (void)c;
    (void)id;
    return plan_take_operand(&x->locked.plan, value);
}

static int check_options(struct once *x)
{
    const struct cli *c = x->locked.plan.c;
    if (x->locked.plan.mutex == NULL)
        return usage(c, "missing NAME, the mutex of this work: simba once NAME --per D CMD…");
    if (!locked_has_cmd(&x->locked))
        return usage(c, "missing CMD, what to run: simba once NAME --per D CMD…");
    if (x->per_ms == SIMBA_DEFAULT)
        return usage(c, "missing --per D, how long a run counts: simba once NAME --per D CMD…");
    if (x->per_ms == 0)
        return usage(c, "--per must be longer than 0: no run would ever count");
    if (x->early_ms == SIMBA_DEFAULT)
        x->early_ms = x->per_ms / EARLY_PARTS;
    if (x->early_ms >= x->per_ms)
        return usage(c, "--early must be shorter than --per: no run would ever count");
    return -1;
}

/* ---- the record: what the note says of the last run ----------------------------------------- */

#define RECORD_MAX 64

struct record {
    /* NONE: there was none, or nothing came of it */
    enum { NONE, BEGUN, ENDED, FOREIGN } kind;
    int status;      /* of CMD */
    int64_t took_ms; /* from its beginning to when this was written */
};

#define RECORD_BEGUN "once/1 begun"
#define RECORD_NOT_BEGUN "once/1 not begun"
#define RECORD_ENDED "once/1 ended %d after %lld ms"
#define RECORD_ENDED_READ "once/1 ended %3d after %15lld ms%n"

static struct record record_parse(const char *text)
{
    struct record r = {.kind = FOREIGN};
    long long took_ms = 0;
    int length = 0;
    if (text[0] == '\0' || strcmp(text, RECORD_NOT_BEGUN) == 0)
        r.kind = NONE;
    else if (strcmp(text, RECORD_BEGUN) == 0)
        r.kind = BEGUN;
    else if (sscanf(text, RECORD_ENDED_READ, &r.status, &took_ms, &length) == 2 && length > 0 &&
             text[length] == '\0' && r.status >= 0 && took_ms >= 0)
        r.kind = ENDED;
    r.took_ms = took_ms;
    return r;
}

/* Then the store is asked again for a while: it may be busy, or be restarted. */
static bool is_passing(int rc)
{
    return rc == SIMBA_ESTORE || rc == SIMBA_ETIMEOUT;
}

/* 0, or the error of the last attempt. */
static int record_read(const struct once *x, int64_t timeout_ms, struct simba_note *note,
                       struct simba_owner *owner)
{
    const struct plan *p = &x->locked.plan;
    int64_t until = simba_now() + timeout_ms, left = timeout_ms;
    int rc;
    while (is_passing(rc = simba_read_note(p->c->client, p->mutex, left, note, owner)) &&
           (left = until - simba_now()) > ASK_AGAIN_MS) {
        poll(NULL, 0, ASK_AGAIN_MS);
        left -= ASK_AGAIN_MS;
    }
    return rc;
}

/* The lock is renewed meanwhile. As above; SIMBA_ELOST: the lock is lost. */
static int record_write(const struct once *x, const char *text)
{
    int64_t until = simba_now() + ANSWER_MS, left = ANSWER_MS;
    int rc = SIMBA_ELOST;
    while (left > 0 && simba_locker_is_held(x->locked.locker)) {
        rc = simba_locker_publish(x->locked.locker, text, left);
        if (!is_passing(rc))
            break;
        poll(NULL, 0, ASK_AGAIN_MS);
        left = until - simba_now();
    }
    return rc == 0 || simba_locker_is_held(x->locked.locker) ? rc : SIMBA_ELOST;
}

/* ---- who does not run CMD says why --------------------------------------------------------- */

static void say_run(const struct once *x, const struct record *r, int64_t age_ms, int64_t left_ms)
{
    const struct plan *p = &x->locked.plan;
    char age[24], took[24], left[24];
    show_duration(age_ms, age);
    show_duration(left_ms, left);
    if (r->kind == BEGUN)
        print_level(p->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: a run was begun %s ago with --at-most-once, and its end is "
                    "not recorded; it counts for another %s, not run here",
                    p->mutex, p->c->store, age, left);
    else if (r->status != 0)
        print_level(p->c, SIMBA_LOG_WARN,
                    "mutex '%s' on %s: a run was begun %s ago with --at-most-once, and ended with "
                    "status %d; it counts for another %s, not run here",
                    p->mutex, p->c->store, age, r->status, left);
    else
        print_level(p->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: has run: begun %s ago, took %s; that counts for another %s, "
                    "not run here",
                    p->mutex, p->c->store, age, show_duration(r->took_ms, took), left);
}

static void print_run(const struct once *x, const struct record *r, uint64_t token, int64_t age_ms,
                      int64_t left_ms)
{
    const struct plan *p = &x->locked.plan;
    const char *outcome = r->kind == BEGUN ? "begun" : r->status == 0 ? "done" : "failed";
    if (p->c->json)
        print_json("{s:s, s:s, s:I, s:I, s:o, s:n, s:I, s:s}", "mutex", p->mutex, "outcome",
                   outcome, "age_ms", (long long)age_ms, "counts_ms", (long long)left_ms, "status",
                   number_or_null(r->kind == ENDED, r->status), "holder", "token", (long long)token,
                   "store", p->c->store);
    if (p->c->verbose > 0)
        say_run(x, r, age_ms, left_ms);
}

/* o: the owner as it was read before; nobody, if it has begun since. */
static void print_running(const struct once *x, const struct simba_owner *o)
{
    const struct plan *p = &x->locked.plan;
    int64_t held_ms = o->acquired_at != 0 ? simba_now() - o->acquired_at : 0;
    char held[24];
    if (p->c->json)
        print_json("{s:s, s:s, s:o, s:n, s:n, s:s?, s:o, s:s}", "mutex", p->mutex, "outcome",
                   "running", "age_ms", number_or_null(o->acquired_at != 0, held_ms), "counts_ms",
                   "status", "holder", o->id[0] != '\0' ? o->id : NULL, "token",
                   number_or_null(o->token != 0, (int64_t)o->token), "store", p->c->store);
    if (p->c->verbose > 0)
        print_level(p->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: runs elsewhere: owned by %s%s%s; not run here", p->mutex,
                    p->c->store, o->id[0] != '\0' ? o->id : "another",
                    o->acquired_at != 0 ? " for " : "",
                    o->acquired_at != 0 ? show_duration(held_ms, held) : "");
}

/* ---- to run or not to run ------------------------------------------------------------------ */

enum { GO_ON = -1 };

static int refuse_note(const struct once *x, const struct simba_note *n)
{
    const struct plan *p = &x->locked.plan;
    return print_error(
        p->c,
        "mutex '%s' on %s has a note that is not of this simba once, '%.80s'; not run, "
        "to keep it. Choose a NAME that nobody else uses",
        p->mutex, p->c->store, n->text);
}

/* GO_ON, if no run counts; else the exit code, after saying what was asked for. */
static int judge(const struct once *x, const struct simba_note *n)
{
    struct record r = record_parse(n->text);
    if (r.kind == FOREIGN)
        return refuse_note(x, n);
    if (r.kind == NONE)
        return GO_ON;
    int64_t since_ms = simba_now() - n->written_at;
    int64_t age_ms = (since_ms > 0 ? since_ms : 0) + r.took_ms;
    int64_t left_ms = x->per_ms - x->early_ms - age_ms;
    if (left_ms <= 0)
        return GO_ON;
    print_run(x, &r, n->token, age_ms, left_ms);
    return 0;
}

/* The last of several attempts has had little time: what counts is how long all of them took. */
static int refuse_unread(const struct once *x, int rc, int64_t took_ms, const char *meaning)
{
    const struct plan *p = &x->locked.plan;
    char took[24];
    if (rc != SIMBA_ETIMEOUT)
        return print_error(p->c, "%s%s", cli_error_text(), meaning);
    return print_error(p->c, "mutex '%s' on %s: the store did not answer in %s%s", p->mutex,
                       p->c->store, show_duration(took_ms, took), meaning);
}

/* Before we own it. Nothing is to be undone then: signals end us as they end anybody. With -w a store
 * that does not answer is asked on, by acquire(). */
static int read_first(struct once *x, struct simba_owner *owner)
{
    struct plan *p = &x->locked.plan;
    struct simba_note note = {.token = 0};
    int64_t began = simba_now(), wait_ms = p->wait_ms;
    int64_t timeout_ms = wait_ms > 0 && wait_ms < ANSWER_MS ? wait_ms : ANSWER_MS;
    signals_let_end(&p->signals, true);
    int rc = record_read(x, timeout_ms, &note, owner);
    signals_let_end(&p->signals, false);
    int64_t took_ms = simba_now() - began;
    if (took_ms > ASK_AGAIN_MS) /* else it would only be odd to read: timed out after 4.9s */
        p->wait_ms = wait_ms > took_ms ? wait_ms - took_ms : 0;
    if (rc == 0)
        return judge(x, &note);
    return p->wait_ms > 0 && is_passing(rc) ? GO_ON : refuse_unread(x, rc, took_ms, "");
}

/* As the owner. */
static int read_again(struct once *x)
{
    struct simba_note note = {.token = 0};
    int64_t began = simba_now();
    int rc = record_read(x, ANSWER_MS, &note, NULL);
    if (rc == 0)
        return judge(x, &note);
    return refuse_unread(x, rc, simba_now() - began, "; CMD is not run");
}

/* The store may have recorded that CMD begins, and CMD will not: that is taken back, as long as we own
 * the mutex and nobody wants us to end. 0, or an error. */
static int take_back(const struct once *x)
{
    const struct plan *p = &x->locked.plan;
    struct pollfd signals = {p->signals.fd, POLLIN, 0};
    int64_t until = simba_now() + p->c->ttl_ms + p->c->transition_ms;
    int rc;
    do
        rc = record_write(x, RECORD_NOT_BEGUN);
    while (is_passing(rc) && simba_now() < until && poll(&signals, 1, 0) == 0);
    return rc;
}

static int claim(struct once *x)
{
    const struct plan *p = &x->locked.plan;
    int rc = x->at_most_once ? record_write(x, RECORD_BEGUN) : 0;
    if (rc == 0)
        return GO_ON;
    char why[WHY_MAX], left[24];
    snprintf(why, sizeof why, "%s", cli_error_text());
    if (!is_passing(rc) && rc != SIMBA_ELOST)
        return print_error(
            p->c,
            "%s; that CMD begins (--at-most-once) cannot be recorded, and CMD is not "
            "run",
            why);
    if (take_back(x) == 0)
        return print_error(p->c,
                           "%s; CMD is not run (--at-most-once), and that is recorded: the next "
                           "caller runs it",
                           why);
    return print_error(p->c,
                       "%s; CMD was not run, but the store may have recorded that it began "
                       "(--at-most-once); then no caller runs it for another %s",
                       why, show_duration(x->per_ms - x->early_ms, left));
}

/* ---- CMD ----------------------------------------------------------------------------------- */

static void say_end(const struct once *x, int status, int64_t took_ms)
{
    const struct plan *p = &x->locked.plan;
    char took[24], left[24];
    if (p->c->verbose == 0)
        return;
    show_duration(took_ms, took);
    int64_t left_ms = x->per_ms - x->early_ms - took_ms;
    if (status != 0 && !x->at_most_once)
        print_level(
            p->c, SIMBA_LOG_WARN,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that does not "
            "count, the next caller runs it",
            p->mutex, p->c->store, status, took);
    else if (left_ms <= 0)
        print_level(
            p->c, SIMBA_LOG_WARN,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that does not count "
            "any more, because it took longer than --per less --early",
            p->mutex, p->c->store, status, took);
    else
        print_level(
            p->c, status != 0 ? SIMBA_LOG_WARN : SIMBA_LOG_INFO,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that counts for "
            "another %s",
            p->mutex, p->c->store, status, took, show_duration(left_ms, left));
}

/* The lease was lost while the end was being recorded: the store may have done it. The exit code. */
static int report_lost_record(struct once *x, int status, int code)
{
    char meaning[160];
    snprintf(meaning, sizeof meaning,
             "; CMD had ended with status %d, but that is not certainly recorded: %s", status,
             x->at_most_once ? "that it has begun is, and counts"
                             : "the next caller may run it again");
    locked_report_loss(&x->locked, meaning);
    return x->at_most_once ? code : EXIT_TROUBLE;
}

/* What could not be recorded; the exit code. */
static int report_no_record(const struct once *x, int code)
{
    const struct plan *p = &x->locked.plan;
    if (!x->at_most_once)
        return print_error(
            p->c,
            "%s; CMD has succeeded, but that is not recorded: the next caller may run it again",
            cli_error_text());
    print_error(p->c, "%s; only that CMD has begun is recorded, and counts", cli_error_text());
    return code;
}

/* CMD has ended by itself, or could not be begun. The exit code. */
static int record_end(struct once *x, const struct outcome *o, int code)
{
    int64_t took_ms = (now_ns() - x->locked.began) / NS_PER_MS;
    char text[RECORD_MAX] = RECORD_NOT_BEGUN;
    if (o->error == 0)
        snprintf(text, sizeof text, RECORD_ENDED, o->code, (long long)took_ms);
    bool is_recorded = x->at_most_once || code == 0;
    int rc = is_recorded ? record_write(x, text) : 0;
    if (rc == SIMBA_ELOST && x->locked.was_held && o->error == 0)
        return report_lost_record(x, o->code, code);
    if (rc != 0 && rc != SIMBA_ELOST) /* of that the release says enough */
        return report_no_record(x, code);
    if (rc != 0)
        return code;
    if (o->error == 0)
        say_end(x, o->code, took_ms);
    return code;
}

static int run_cmd(struct once *x)
{
    struct locked *l = &x->locked;
    struct outcome o = locked_run(l);
    int code = locked_exit_code(l, &o);
    if (o.is_run && !o.is_lost && !l->keeper.is_guard_dead)
        code = record_end(x, &o, code);
    return o.is_run || l->keeper.is_guard_dead ? locked_release(l, code) : code;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int once(struct once *x)
{
    struct locked *l = &x->locked;
    struct simba_owner owner = {.token = 0};
    int signal = 0, code = locked_open(l);
    if (code == 0)
        code = read_first(x, &owner);
    if (code == GO_ON)
        code = acquire(&l->plan, l->locker, &signal);
    if (code == HELD) {
        print_running(x, &owner);
        code = 0;
    } else if (code == ACQUIRED) {
        locked_say_acquired(l);
        l->was_held = true;
        code = read_again(x);
        if (code == GO_ON)
            code = claim(x);
        code = code == GO_ON ? run_cmd(x) : locked_release(l, code);
    }
    locked_end(l);
    if (signal != 0)
        die_of(signal);
    return code;
}

/* Of --dry-run. */
static void show_period(const struct once *x)
{
    char per[24], early[24];
    printf("\na run counts for %s, less %s (--early), once it has %s\n",
           show_duration(x->per_ms, per), show_duration(x->early_ms, early),
           x->at_most_once ? "begun (--at-most-once)" : "succeeded");
}

static int run(struct cli *c)
{
    static struct once x = {.per_ms = SIMBA_DEFAULT, .early_ms = SIMBA_DEFAULT};
    locked_init(&x.locked, c);
    x.locked.plan.wait_ms = 0;
    int code = cli_take(c, take_option, take_operand, &x);
    x.locked.plan.may_be_held = x.locked.plan.wait_ms == 0;
    if (code < 0)
        code = check_options(&x);
    if (code < 0)
        code = locked_configure(&x.locked);
    if (code == 0 && c->dry_run && !c->json)
        show_period(&x);
    if (code >= 0)
        return code;
    code = once(&x);
    /* What was owned is released; taking the client apart in order would only cost time. */
    fflush(stdout);
    _exit(code);
}

const struct command once_command = {
    .name = "once",
    .operands = "NAME … CMD…",
    .summary = "of all who call within a period, one runs CMD",
    .help = help,
    .options = options,
    .run = run,
};
