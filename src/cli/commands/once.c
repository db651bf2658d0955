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

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/run/acquire.h"
#include "cli/run/cmd_lock.h"
#include "cli/run/guard.h"
#include "cli/run/once_record.h"
#include "cli/shown.h"

#define EARLY_PARTS 10 /* of the period, by default: so much earlier the next run may begin */
#define ASK_AGAIN_MS 100
#define FIRST_READ_MS 1000 /* mostly it is answered before; else acquire() has more patience */
#define WHY_MAX 1024

enum { OPT_PER, OPT_EARLY, OPT_AT_MOST_ONCE, OPT_STATUS };

static const struct option options[] = {
    {"per", 0, OPT_PER, "D",
     "a run that has succeeded counts for this long, less --early, from its beginning on"},
    {"early", 0, OPT_EARLY, "D",
     "so much earlier than that the next may begin; default: a tenth of --per"},
    {"at-most-once", 0, OPT_AT_MOST_ONCE, NULL,
     "a run counts as soon as it begins, also if it fails or dies"},
    {"status", 0, OPT_STATUS, NULL,
     "run nothing: say whether runs succeed in time: fresh, failed, overdue or running"},
    {"wait", 'w', CMD_LOCK_WAIT, "D",
     "if it runs elsewhere, wait at most this long for its end, then exit with 124"},
    {"conflict-exit-code", 'E', CMD_LOCK_CONFLICT, "N", "exit with N instead of 124"},
    CMD_LOCK_OPTIONS,
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
    "simba once --status NAME --per D: runs nothing, and says how the last run went. It ends with "
    "0 "
    "fresh; 1 failed; 2 overdue, no success for longer than --per and --early; 3 running. --json: "
    "state, age_ms, failed_ms, failed_status, failed_by, failures, holder, token, mutex, store.\n\n"
    "Exit status: CMD's own if it was run here; 0 there was nothing to do; 123 the lease was lost "
    "and "
    "CMD was stopped; 124 it still runs elsewhere (-w); 125 simba itself failed, also if it could "
    "not "
    "record that CMD has succeeded; 126 CMD cannot be run; 127 CMD not found; 64 wrong usage.\n\n"
    "Examples:\n"
    "  # the same line in the crontabs of several machines; one of them runs it\n"
    "  0 3 * * *  simba once -u redis://db1/0 report --per 1d ./report\n"
    "  simba once --at-most-once invoices --per 1d ./send-invoices\n"
    "  simba once -w 10m migrate --per 1h ./migrate && ./serve\n"
    "  simba once --status report --per 1d || mail -s 'no report' ops </dev/null\n";

struct once {
    struct cmd_lock lock;
    int64_t per_ms, early_ms; /* SIMBA_DEFAULT: not given */
    bool at_most_once, shows_status;
    struct once_record last; /* what the note said when we had become the owner … */
    int64_t last_at;         /* … and when it was written */
};

/* ---- options ------------------------------------------------------------------------------- */

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct once *x = data;
    switch (id) {
    case OPT_PER:
        return cli_take_duration(c, "--per", value, &x->per_ms);
    case OPT_EARLY:
        return cli_take_duration(c, "--early", value, &x->early_ms);
    case OPT_AT_MOST_ONCE:
        x->at_most_once = true;
        return GO_ON;
    case OPT_STATUS:
        x->shows_status = true;
        return GO_ON;
    default:
        return cmd_lock_take(&x->lock, id, value);
    }
}

static struct step take_operand(struct cli *c, void *data, int id, char *value)
{
    struct once *x = data;
    (void)c;
    (void)id;
    return run_options_take_operand(&x->lock.options, value);
}

static struct step check_options(struct once *x)
{
    const struct cli *c = x->lock.options.c;
    if (x->lock.options.mutex == NULL)
        return usage(c, "missing NAME, the mutex of this work: simba once NAME --per D CMD…");
    if (x->shows_status && cmd_lock_has_cmd(&x->lock))
        return usage(c, "--status runs nothing: leave CMD out");
    if (!x->shows_status && !cmd_lock_has_cmd(&x->lock))
        return usage(c, "missing CMD, what to run: simba once NAME --per D CMD…");
    if (x->per_ms == SIMBA_DEFAULT)
        return usage(c, "missing --per D, how long a run counts: simba once NAME --per D CMD…");
    if (x->per_ms == 0)
        return usage(c, "--per must be longer than 0: no run would ever count");
    if (x->early_ms == SIMBA_DEFAULT)
        x->early_ms = x->per_ms / EARLY_PARTS;
    if (x->early_ms >= x->per_ms)
        return usage(c, "--early must be shorter than --per: no run would ever count");
    return GO_ON;
}

/* ---- reading and writing the note ----------------------------------------------------------- */

/* 0, or the error of the last attempt. */
static int read_record(const struct once *x, int64_t timeout_ms, struct simba_note *note,
                       struct simba_owner *owner)
{
    const struct run_options *opts = &x->lock.options;
    int64_t until = simba_now() + timeout_ms, left = timeout_ms;
    int rc;
    while (cli_error_is_passing(
               rc = simba_read_note(opts->c->client, opts->mutex, left, note, owner)) &&
           (left = until - simba_now()) > ASK_AGAIN_MS) {
        poll(NULL, 0, ASK_AGAIN_MS);
        left -= ASK_AGAIN_MS;
    }
    return rc;
}

/* The lock is renewed meanwhile. As above; SIMBA_ELOST: the lock is lost. */
static int publish(const struct once *x, const struct once_record *r)
{
    char text[RECORD_MAX];
    record_write(r, text);
    int64_t until = simba_now() + ANSWER_MS, left = ANSWER_MS;
    int rc = SIMBA_ELOST;
    while (left > 0 && simba_locker_is_held(x->lock.locker)) {
        rc = simba_locker_publish(x->lock.locker, text, left);
        if (!cli_error_is_passing(rc))
            break;
        poll(NULL, 0, ASK_AGAIN_MS);
        left = until - simba_now();
    }
    return rc == 0 || simba_locker_is_held(x->lock.locker) ? rc : SIMBA_ELOST;
}

/* ---- who does not run CMD says why --------------------------------------------------------- */

static void say_run(const struct once *x, const struct once_record *r, int64_t age_ms,
                    int64_t left_ms)
{
    const struct run_options *opts = &x->lock.options;
    char age[24], took[24], left[24];
    show_duration(age_ms, age);
    show_duration(left_ms, left);
    if (r->kind == RECORD_BEGUN)
        print_level(opts->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: a run was begun %s ago with --at-most-once, and its end is "
                    "not recorded; it counts for another %s, not run here",
                    opts->mutex, opts->c->store, age, left);
    else if (r->status != 0)
        print_level(opts->c, SIMBA_LOG_WARN,
                    "mutex '%s' on %s: a run was begun %s ago with --at-most-once, and ended with "
                    "status %d; it counts for another %s, not run here",
                    opts->mutex, opts->c->store, age, r->status, left);
    else
        print_level(opts->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: has run: begun %s ago, took %s; that counts for another %s, "
                    "not run here",
                    opts->mutex, opts->c->store, age, show_duration(r->took_ms, took), left);
}

static void print_run(const struct once *x, const struct once_record *r, uint64_t token,
                      int64_t age_ms, int64_t left_ms)
{
    const struct run_options *opts = &x->lock.options;
    const char *outcome = r->kind == RECORD_BEGUN ? "begun" : r->status == 0 ? "done" : "failed";
    if (opts->c->json)
        print_json("{s:s, s:s, s:I, s:I, s:o, s:n, s:I, s:s}", "mutex", opts->mutex, "outcome",
                   outcome, "age_ms", (long long)age_ms, "counts_ms", (long long)left_ms, "status",
                   number_or_null(r->kind == RECORD_ENDED, r->status), "holder", "token",
                   (long long)token, "store", opts->c->store);
    if (opts->c->verbose > 0)
        say_run(x, r, age_ms, left_ms);
}

/* o: the owner as it was read before; nobody, if it has begun since. */
static void print_running(const struct once *x, const struct simba_owner *o)
{
    const struct run_options *opts = &x->lock.options;
    int64_t held_ms = o->acquired_at != 0 ? simba_now() - o->acquired_at : 0;
    char held[24];
    if (opts->c->json)
        print_json("{s:s, s:s, s:o, s:n, s:n, s:s?, s:o, s:s}", "mutex", opts->mutex, "outcome",
                   "running", "age_ms", number_or_null(o->acquired_at != 0, held_ms), "counts_ms",
                   "status", "holder", o->id[0] != '\0' ? o->id : NULL, "token",
                   number_or_null(o->token != 0, (int64_t)o->token), "store", opts->c->store);
    if (opts->c->verbose > 0)
        print_level(opts->c, SIMBA_LOG_INFO,
                    "mutex '%s' on %s: runs elsewhere: owned by %s%s%s; not run here", opts->mutex,
                    opts->c->store, o->id[0] != '\0' ? o->id : "another",
                    o->acquired_at != 0 ? " for " : "",
                    o->acquired_at != 0 ? show_duration(held_ms, held) : "");
}

/* ---- to run or not to run ------------------------------------------------------------------ */

static struct step refuse_note(const struct once *x, const struct simba_note *n)
{
    const struct run_options *opts = &x->lock.options;
    return print_error(
        opts->c,
        "mutex '%s' on %s has a note that is not of this simba once, '%.80s'; not run, "
        "to keep it. Choose a NAME that nobody else uses",
        opts->mutex, opts->c->store, n->text);
}

static int64_t age_of(const struct simba_note *n)
{
    int64_t age_ms = simba_now() - n->written_at;
    return age_ms > 0 ? age_ms : 0;
}

/* Since it began. */
static int64_t age_of_run(const struct once_record *r, const struct simba_note *n)
{
    return age_of(n) + r->ago_ms + r->took_ms;
}

/* Goes on if no run counts; else says what was asked for. */
static struct step check_last_run(const struct once *x, const struct simba_note *n)
{
    struct once_record r = record_parse(n->text);
    if (r.kind == RECORD_FOREIGN)
        return refuse_note(x, n);
    if (r.kind == RECORD_NONE)
        return GO_ON;
    int64_t age_ms = age_of_run(&r, n);
    int64_t left_ms = x->per_ms - x->early_ms - age_ms;
    if (left_ms <= 0)
        return GO_ON;
    print_run(x, &r, n->token, age_ms, left_ms);
    return end_with(0);
}

/* The last of several attempts has had little time: what counts is how long all of them took. */
static struct step refuse_unread(const struct once *x, int rc, int64_t took_ms, const char *meaning)
{
    const struct run_options *opts = &x->lock.options;
    char took[24];
    if (rc != SIMBA_ETIMEOUT)
        return print_error(opts->c, "%s%s", simba_error_text(), meaning);
    return print_error(opts->c, "mutex '%s' on %s: the store did not answer in %s%s", opts->mutex,
                       opts->c->store, show_duration(took_ms, took), meaning);
}

/* Before we own it. Nothing is to be undone then: signals end us as they end anybody. A store that does
 * not answer is asked on by acquire(), which knows for how long. *left_ms: of --wait. */
static struct step read_first(const struct once *x, struct simba_owner *owner, int64_t *left_ms)
{
    const struct run_options *opts = &x->lock.options;
    struct simba_note note = {.token = 0};
    int64_t began = simba_now(), wait_ms = opts->wait_ms;
    int64_t timeout_ms = wait_ms > 0 && wait_ms < FIRST_READ_MS ? wait_ms : FIRST_READ_MS;
    signals_let_end(&opts->running->signals, true);
    int rc = read_record(x, timeout_ms, &note, owner);
    signals_let_end(&opts->running->signals, false);
    int64_t took_ms = simba_now() - began;
    *left_ms = wait_ms;
    if (took_ms > ASK_AGAIN_MS) /* else it would only be odd to read: timed out after 4.9s */
        *left_ms = wait_ms > took_ms ? wait_ms - took_ms : 0;
    if (rc == 0)
        return check_last_run(x, &note);
    bool may_ask = *left_ms > 0 || opts->may_be_held;
    return may_ask && cli_error_is_passing(rc) ? GO_ON : refuse_unread(x, rc, took_ms, "");
}

/* As the owner. */
static struct step read_again(struct once *x)
{
    struct simba_note note = {.token = 0};
    int64_t began = simba_now();
    int rc = read_record(x, ANSWER_MS, &note, NULL);
    x->last = record_parse(note.text);
    x->last_at = note.written_at;
    if (rc == 0)
        return check_last_run(x, &note);
    return refuse_unread(x, rc, simba_now() - began, "; CMD is not run");
}

/* The store may have recorded that CMD begins, and CMD will not: that is taken back, as long as we own
 * the mutex and nobody wants us to end. 0, or an error. */
static int take_back(const struct once *x)
{
    const struct run_options *opts = &x->lock.options;
    struct pollfd signals = {opts->running->signals.fd, POLLIN, 0};
    int64_t until = simba_now() + opts->c->ttl_ms + opts->c->transition_ms;
    int rc;
    do
        rc = publish(x, &(struct once_record){.kind = RECORD_NONE});
    while (cli_error_is_passing(rc) && simba_now() < until && poll(&signals, 1, 0) == 0);
    return rc;
}

static struct step claim(struct once *x)
{
    const struct run_options *opts = &x->lock.options;
    int rc = x->at_most_once ? publish(x, &(struct once_record){.kind = RECORD_BEGUN}) : 0;
    if (rc == 0)
        return GO_ON;
    char why[WHY_MAX], left[24];
    snprintf(why, sizeof why, "%s", simba_error_text());
    if (!cli_error_is_passing(rc) && rc != SIMBA_ELOST)
        return print_error(
            opts->c,
            "%s; that CMD begins (--at-most-once) cannot be recorded, and CMD is not "
            "run",
            why);
    if (take_back(x) == 0)
        return print_error(opts->c,
                           "%s; CMD is not run (--at-most-once), and that is recorded: the next "
                           "caller runs it",
                           why);
    return print_error(opts->c,
                       "%s; CMD was not run, but the store may have recorded that it began "
                       "(--at-most-once); then no caller runs it for another %s",
                       why, show_duration(x->per_ms - x->early_ms, left));
}

/* ---- CMD ----------------------------------------------------------------------------------- */

static void say_end(const struct once *x, int status, int64_t took_ms)
{
    const struct run_options *opts = &x->lock.options;
    char took[24], left[24];
    if (opts->c->verbose == 0)
        return;
    show_duration(took_ms, took);
    int64_t left_ms = x->per_ms - x->early_ms - took_ms;
    if (status != 0 && !x->at_most_once)
        print_level(
            opts->c, SIMBA_LOG_WARN,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that does not "
            "count, the next caller runs it",
            opts->mutex, opts->c->store, status, took);
    else if (left_ms <= 0)
        print_level(
            opts->c, SIMBA_LOG_WARN,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that does not count "
            "any more, because it took longer than --per less --early",
            opts->mutex, opts->c->store, status, took);
    else
        print_level(
            opts->c, status != 0 ? SIMBA_LOG_WARN : SIMBA_LOG_INFO,
            "mutex '%s' on %s: CMD was run, and ended with status %d after %s: that counts for "
            "another %s",
            opts->mutex, opts->c->store, status, took, show_duration(left_ms, left));
}

/* The lease was lost while the end was being recorded: the store may have done it. The exit code. */
static int report_lost_record(struct once *x, int status, int code)
{
    char meaning[160];
    snprintf(meaning, sizeof meaning,
             "; CMD had ended with status %d, but that is not certainly recorded: %s", status,
             x->at_most_once ? "that it has begun is, and counts"
                             : "the next caller may run it again");
    cmd_lock_report_loss(&x->lock, meaning);
    return x->at_most_once ? code : EXIT_TROUBLE;
}

/* What could not be recorded; the exit code. */
static int report_no_record(const struct once *x, int code)
{
    const struct run_options *opts = &x->lock.options;
    if (!x->at_most_once)
        return print_error(opts->c,
                           "%s; CMD has succeeded, but that is not recorded: the next caller may "
                           "run it again",
                           simba_error_text())
            .code;
    print_error(opts->c, "%s; only that CMD has begun is recorded, and counts", simba_error_text());
    return code;
}

/* What the note is to say after this run: by default a run that has failed leaves the last success. */
static struct once_record record_of(const struct once *x, const struct outcome *o, int64_t took_ms)
{
    bool has_ended = o->error == 0, has_failed = !has_ended || o->code != 0;
    struct once_record r = {.kind = RECORD_NONE};
    if (has_ended && (x->at_most_once || !has_failed)) {
        r = (struct once_record){.kind = RECORD_ENDED, .status = o->code, .took_ms = took_ms};
    } else if (!x->at_most_once && x->last.kind != RECORD_NONE) {
        r = x->last;
        r.ago_ms += simba_now() - x->last_at;
    }
    r.failures = has_failed ? x->last.failures + 1 : 0;
    r.failed_status = has_failed ? o->code : 0;
    r.failed_took_ms = took_ms;
    snprintf(r.failed_by, sizeof r.failed_by, "%s", simba_locker_id(x->lock.locker));
    return r;
}

/* A run that does not count. That its failure is not recorded changes nothing for the next caller; if
 * the lock is lost, the release says so. */
static void record_failure(const struct once *x, const struct once_record *r)
{
    int rc = publish(x, r);
    if (rc != 0 && rc != SIMBA_ELOST && x->lock.options.c->verbose > 0)
        print_level(x->lock.options.c, SIMBA_LOG_WARN, "%s; that CMD has failed is not recorded",
                    simba_error_text());
}

/* CMD has ended by itself, or could not be begun. The exit code. */
static int record_end(struct once *x, const struct outcome *o, int code)
{
    int64_t took_ms = (clock_now() - x->lock.began) / NS_PER_MS;
    struct once_record r = record_of(x, o, took_ms);
    int rc = 0;
    if (x->at_most_once || code == 0)
        rc = publish(x, &r);
    else
        record_failure(x, &r);
    if (rc == SIMBA_ELOST && x->lock.was_held && o->error == 0)
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
    struct cmd_lock *l = &x->lock;
    struct outcome o = cmd_lock_run(l);
    int code = cmd_lock_exit_code(l, &o);
    if (o.is_run && !o.is_lost && !l->keeper.is_guard_dead)
        code = record_end(x, &o, code);
    return o.is_run || l->keeper.is_guard_dead ? cmd_lock_release(l, code) : code;
}

/* ---- --status ------------------------------------------------------------------------------ */

enum once_status { FRESH, FAILED, OVERDUE, RUNNING }; /* also how it ends */

/* A success is old when the next one is late by more than --early. */
static enum once_status status_of(const struct once *x, const struct once_record *r,
                                  const struct simba_note *n, const struct simba_owner *o)
{
    bool has_succeeded = r->kind == RECORD_ENDED && r->status == 0;
    if (o->id[0] != '\0')
        return RUNNING;
    if (r->failures > 0 || (r->kind != RECORD_NONE && !has_succeeded))
        return FAILED;
    return has_succeeded && age_of_run(r, n) < x->per_ms + x->early_ms ? FRESH : OVERDUE;
}

/* What else is known: of a failure, if there is one, and of the last success. */
static void describe(const struct once_record *r, const struct simba_note *n,
                     enum once_status state, const struct simba_owner *o, char out[static WHY_MAX])
{
    char age[24], took[24], failed[2 * SIMBA_ID_MAX + 128] = "", success[96],
                                                      run[SIMBA_ID_MAX + 32] = "";
    bool has_succeeded = r->kind == RECORD_ENDED && r->status == 0;
    if (state == RUNNING)
        snprintf(run, sizeof run, "owned by %s; ", o->id);
    if (r->kind == RECORD_BEGUN && r->failures == 0)
        snprintf(failed, sizeof failed,
                 "a run was begun %s ago with --at-most-once, and its end is not recorded; ",
                 show_duration(age_of_run(r, n), age));
    if (r->failures > 0)
        snprintf(
            failed, sizeof failed,
            "the last run ended with status %d %s ago, after %s, by %s; %d failure%s in a row; ",
            r->failed_status, show_duration(age_of(n), age), show_duration(r->failed_took_ms, took),
            r->failed_by, r->failures, r->failures == 1 ? "" : "s");
    if (has_succeeded)
        snprintf(success, sizeof success, "the last success began %s ago, and took %s",
                 show_duration(age_of_run(r, n), age), show_duration(r->took_ms, took));
    else
        snprintf(success, sizeof success, "%s is recorded",
                 r->kind == RECORD_NONE && r->failures == 0 ? "no run" : "no success");
    snprintf(out, WHY_MAX, "%s%s%s", run, failed, success);
}

static void say_status(const struct once *x, const struct once_record *r,
                       const struct simba_note *n, const struct simba_owner *o)
{
    static const char *const names[] = {"fresh", "failed", "overdue", "running"};
    const struct run_options *opts = &x->lock.options;
    enum once_status state = status_of(x, r, n, o);
    bool has_succeeded = r->kind == RECORD_ENDED && r->status == 0, has_failed = r->failures > 0;
    char why[WHY_MAX], text[4 * WHY_MAX];
    if (opts->c->json) {
        print_json("{s:s, s:s, s:o, s:o, s:o, s:s?, s:i, s:s?, s:o, s:s}", "mutex", opts->mutex,
                   "state", names[state], "age_ms", number_or_null(has_succeeded, age_of_run(r, n)),
                   "failed_ms", number_or_null(has_failed, age_of(n)), "failed_status",
                   number_or_null(has_failed, r->failed_status), "failed_by",
                   has_failed ? r->failed_by : NULL, "failures", r->failures, "holder",
                   state == RUNNING ? o->id : NULL, "token",
                   number_or_null(n->token != 0, (int64_t)n->token), "store", opts->c->store);
        return;
    }
    describe(r, n, state, o, why);
    printf("mutex '%s' on %s: %s: %s\n", opts->mutex, opts->c->store, names[state],
           show_name(why, text, sizeof text));
}

/* Asks once, owns nothing, and needs no guard. */
static int show_status(struct once *x)
{
    struct cli *c = x->lock.options.c;
    struct simba_note note = {.token = 0};
    struct simba_owner owner = {.token = 0};
    struct step step = cli_open(c);
    if (step.ends)
        return step.code;
    c->mutex = x->lock.options.mutex;
    int64_t began = simba_now();
    int rc = read_record(x, ANSWER_MS, &note, &owner);
    struct once_record r = record_parse(note.text);
    if (rc != 0) {
        step = refuse_unread(x, rc, simba_now() - began, "");
    } else if (r.kind == RECORD_FOREIGN) {
        step = refuse_note(x, &note);
    } else {
        say_status(x, &r, &note, &owner);
        step = end_with((int)status_of(x, &r, &note, &owner));
    }
    cli_close(c, step.code);
    return step.code;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static int run_as_owner(struct once *x)
{
    struct cmd_lock *l = &x->lock;
    cmd_lock_say_acquired(l);
    l->was_held = true;
    struct step step = read_again(x);
    step = AND_THEN(step, claim(x));
    return step.ends ? cmd_lock_release(l, step.code) : run_cmd(x);
}

static int once(struct once *x)
{
    struct cmd_lock *l = &x->lock;
    struct acquisition a = {.result = NOT_ACQUIRED};
    struct simba_owner owner = {.token = 0};
    int64_t wait_ms = 0;
    struct step step = cmd_lock_open(l);
    step = AND_THEN(step, read_first(x, &owner, &wait_ms));
    if (!step.ends)
        a = acquire(&l->options, l->locker, wait_ms);
    int code = step.ends ? step.code : a.code;
    if (a.result == HELD_BY_ANOTHER)
        print_running(x, &owner);
    else if (a.result == ACQUIRED)
        code = run_as_owner(x);
    cmd_lock_end(l);
    if (a.signal != 0)
        die_of(a.signal);
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
    cmd_lock_init(&x.lock, c);
    x.lock.options.wait_ms = 0;
    struct step step = cli_take(c, take_option, take_operand, &x);
    x.lock.options.may_be_held = x.lock.options.wait_ms == 0;
    step = AND_THEN(step, check_options(&x));
    step = AND_THEN(step, x.shows_status ? cli_configure(c) : cmd_lock_configure(&x.lock));
    if (!step.ends && x.shows_status)
        return show_status(&x);
    if (step.ends && step.code == 0 && c->dry_run && !c->json)
        show_period(&x);
    if (step.ends)
        return step.code;
    int code = once(&x);
    /* What was owned is released; taking the client apart in order would only cost time. */
    fflush(stdout);
    _exit(code);
}

const struct subcommand once_command = {
    .name = "once",
    .operands = "NAME … CMD…",
    .summary = "of all who call within a period, one runs CMD",
    .help = help,
    .options = options,
    .run = run,
};
