/* release.c: simba release: ends somebody's tenure, or clears what a mutex remembers, as an operator. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/shown.h"

#define EXIT_NOTHING 1 /* there was nothing to end, or the answer was no */

#define READ_MS 50         /* waiting for its end: the first read after this long … */
#define READ_PART 10       /* … and later ones a tenth of the time apart, … */
#define READ_MOST_MS 1000  /* … but not more */
#define ROUNDING_MS 20     /* of what stores say is left of a lease */
#define READ_LEAST_MS 1000 /* so late the end of the wait may be, where the store hangs */
#define END_LATE_MS 2000   /* a store may show a tenure so much longer than its lease */

#define TAKE_MS 60000    /* --note: to become the owner … */
#define TAKE_PART_MS 100 /* … and so often it is looked who is in the way */
#define WHY_MAX 1024

enum { OPT_FORCE, OPT_TOKEN, OPT_YES, OPT_WAIT, OPT_NOTE };

static const struct option options[] = {
    {"force", 'f', OPT_FORCE, NULL, "free it at once; only safe where tokens are checked"},
    {"token", 0, OPT_TOKEN, "N", "only if the owner has this token"},
    {"wait", 0, OPT_WAIT, "[D]",
     "wait until the tenure is over, at most this long; default: as long as its lease lasts"},
    {"note", 0, OPT_NOTE, NULL,
     "clear the note of NAME, too: what simba schedule or simba once has recorded is forgotten"},
    {"yes", 'y', OPT_YES, NULL, "do not ask"},
    {NULL, 0, 0, NULL, NULL},
};

struct release_options {
    const char *mutex;
    uint64_t token;
    bool forced, yes, waits, clears_note;
    int64_t wait_ms; /* SIMBA_FOREVER: until the lease has ended */
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct release_options *r = data;
    char *end;
    switch (id) {
    case OPT_FORCE:
        r->forced = true;
        return GO_ON;
    case OPT_YES:
        r->yes = true;
        return GO_ON;
    case OPT_NOTE:
        r->clears_note = true;
        return GO_ON;
    case OPT_WAIT:
        r->waits = true;
        return value != NULL ? cli_take_duration(c, "--wait", value, &r->wait_ms) : GO_ON;
    default:
        errno = 0;
        r->token = strtoull(value, &end, 10);
        if (errno != 0 || *end != '\0' || value[0] < '1' || value[0] > '9')
            return usage(c, "--token '%.40s' is not a token: a number, as simba status shows it",
                         value);
        return GO_ON;
    }
}

/* --wait 5s NAME: 5s was taken for the name. */
static struct step take_name(struct cli *c, void *data, int id, char *value)
{
    const struct release_options *r = data;
    int64_t ms;
    if (c->operand_count > 0 && r->waits && r->wait_ms == SIMBA_FOREVER &&
        simba_duration_parse(c->operands[0], &ms) == 0)
        return usage(c, "unexpected argument '%.60s': a duration is given as --wait=%.20s", value,
                     c->operands[0]);
    return cli_take_operand(c, data, id, value);
}

static bool can_ask(void)
{
    return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

static bool confirms(const struct release_options *r, const struct cli *c,
                     const struct simba_owner *o)
{
    char answer[16] = "", name[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1], left[24];
    if (r->yes)
        return true;
    fprintf(stderr, "mutex '%s' on %s is held by %s, token %llu, lease %s.\n",
            show_name(r->mutex, name, sizeof name), c->store, show_name(o->id, id, sizeof id),
            (unsigned long long)o->token, show_duration(o->transition_at - simba_now(), left));
    fprintf(stderr, "%s [y/N] ",
            r->forced ? "Free it at once, although its owner may still act?" : "End this tenure?");
    if (fgets(answer, sizeof answer, stdin) == NULL)
        fputc('\n', stderr);
    return strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* now: who has it since; nobody, or another tenure of the same owner, such as simba elect. */
static int report_end(const struct cli *c, const struct release_options *r, struct simba_owner *o,
                      const struct simba_owner *now, int64_t waited_ms)
{
    bool is_expired = simba_now() >= o->transition_at - ROUNDING_MS;
    char waited[24], next[SIMBA_ID_MAX + 64] = "";
    show_duration(waited_ms, waited);
    if (now->id[0] != '\0')
        snprintf(next, sizeof next, "; now held by %s (token %llu)", now->id,
                 (unsigned long long)now->token);
    o->transition_at = 0; /* nothing of it is left */
    if (c->json)
        owner_event_print(c, is_expired ? "expired" : "released", r->mutex, o,
                          is_expired ? SIMBA_EXPIRED : SIMBA_RELEASED);
    else if (is_expired)
        print_note(c, "mutex '%s' on %s: over after %s: the lease of %s (token %llu) has ended%s",
                   r->mutex, c->store, waited, o->id, (unsigned long long)o->token, next);
    else
        print_note(
            c, "mutex '%s' on %s: over after %s: %s (token %llu) has released it, or has died%s",
            r->mutex, c->store, waited, o->id, (unsigned long long)o->token, next);
    return 0;
}

static int report_no_end(const struct cli *c, const struct release_options *r,
                         const struct simba_owner *o, int64_t waited_ms)
{
    char waited[24], left[24];
    print_error(
        c,
        "mutex '%s' on %s: not over after %s: %s (token %llu) has not released it; its lease "
        "ends in %s",
        r->mutex, c->store, show_duration(waited_ms, waited), o->id, (unsigned long long)o->token,
        show_duration(o->transition_at - simba_now(), left));
    return EXIT_CONFLICT;
}

/* The end is not late by much because a store hangs, and a slow one has answered by then. */
static int64_t read_timeout_ms(int64_t left_ms)
{
    return left_ms > ANSWER_MS ? ANSWER_MS : left_ms < READ_LEAST_MS ? READ_LEAST_MS : left_ms;
}

/* Nobody renews an evicted tenure, so its lease is the longest that this can take; a renewal may
 * have come just before the eviction, so the lease is the one that was read last. Errors of the
 * store are waited out, too. */
static int await_end(const struct cli *c, const struct release_options *r, struct simba_owner *o)
{
    int64_t began = simba_now(), pause_ms = READ_MS;
    struct simba_owner seen;
    int rc = 0;
    for (;;) {
        int64_t now = simba_now(), waited_ms = now - began;
        int64_t lease_ms = o->transition_at + END_LATE_MS - now;
        int64_t left_ms = r->wait_ms == SIMBA_FOREVER ? lease_ms : r->wait_ms - waited_ms;
        if (left_ms <= 0 && rc < 0)
            return cli_fail(c, rc);
        if (left_ms <= 0)
            return report_no_end(c, r, o, waited_ms);
        if (left_ms < pause_ms)
            pause_ms = left_ms;
        poll(NULL, 0, (int)pause_ms);
        rc = simba_read(c->client, r->mutex, read_timeout_ms(left_ms - pause_ms), &seen);
        if (rc == 0 && (seen.token != o->token || strcmp(seen.id, o->id) != 0))
            return report_end(c, r, o, &seen, simba_now() - began);
        if (rc == 0)
            *o = seen;
        pause_ms = (simba_now() - began) / READ_PART;
        pause_ms = pause_ms < READ_MS ? READ_MS : pause_ms > READ_MOST_MS ? READ_MOST_MS : pause_ms;
    }
}

/* The tenure that was looked at is the one that is ended, not one that has begun meanwhile. */
static int release(struct cli *c, struct release_options *r)
{
    struct simba_owner o;
    int rc = simba_read(c->client, r->mutex, ANSWER_MS, &o);
    if (rc < 0)
        return cli_fail(c, rc);
    if (o.id[0] == '\0') {
        print_error(c, "mutex '%s' on %s: nothing to release, nobody owns it", r->mutex, c->store);
        return EXIT_NOTHING;
    }
    if (r->token != 0 && o.token != r->token) {
        print_error(c,
                    "mutex '%s' on %s: not released: it is held by %s with token %llu, the tenure "
                    "with token %llu is over",
                    r->mutex, c->store, o.id, (unsigned long long)o.token,
                    (unsigned long long)r->token);
        return EXIT_NOTHING;
    }
    if (!r->yes && !can_ask()) {
        char held[24];
        print_error(c,
                    "mutex '%s' on %s is held by %s%s%s, token %llu: say --yes to end its "
                    "tenure without being asked",
                    r->mutex, c->store, o.id, o.acquired_at != 0 ? " for " : "",
                    o.acquired_at != 0 ? show_duration(simba_now() - o.acquired_at, held) : "",
                    (unsigned long long)o.token);
        return EXIT_USAGE;
    }
    if (!confirms(r, c, &o)) {
        print_note(c, "mutex '%s' on %s: not released, you did not say y", r->mutex, c->store);
        return EXIT_NOTHING;
    }
    rc = simba_evict(c->client, r->mutex, &o, r->forced, ANSWER_MS);
    if (rc < 0) {
        int code = cli_fail(c, rc);
        return rc == SIMBA_ELOST ? EXIT_NOTHING : code;
    }
    if (c->json)
        owner_event_print(c, r->forced ? "freed" : "evicted", r->mutex, &o, SIMBA_EVICTED);
    else if (r->forced)
        print_note(c, "mutex '%s' on %s: free now; %s may still act with token %llu", r->mutex,
                   c->store, o.id, (unsigned long long)o.token);
    else
        print_note(
            c,
            "mutex '%s' on %s: evicted %s (token %llu); it ends its work and releases, or, if it "
            "is dead, the lease ends in %llds",
            r->mutex, c->store, o.id, (unsigned long long)o.token,
            (long long)(o.transition_at - simba_now()) / 1000 + 1);
    return r->waits ? await_end(c, r, &o) : 0;
}

/* ---- the note ------------------------------------------------------------------------------ */

static bool confirms_note(const struct release_options *r, const struct cli *c,
                          const struct simba_note *n)
{
    char answer[16] = "", name[SIMBA_MUTEX_MAX + 1], note[128];
    if (r->yes)
        return true;
    fprintf(stderr, "mutex '%s' on %s has the note '%s'.\n", show_name(r->mutex, name, sizeof name),
            c->store, show_name(n->text, note, sizeof note));
    fprintf(stderr, "End the tenure of whoever owns it, and clear the note? What it records may be "
                    "run again. [y/N] ");
    if (fgets(answer, sizeof answer, stdin) == NULL)
        fputc('\n', stderr);
    return strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0;
}

struct taking {
    _Atomic bool is_over;
    int code;
    char why[WHY_MAX];
};

static void on_taken(void *data, int code)
{
    struct taking *t = data;
    t->code = code;
    snprintf(t->why, sizeof t->why, "%s", code < 0 ? simba_error_text() : "");
    t->is_over = true;
}

/* Only an owner writes the note. We wait for our turn, and whoever owns the mutex before that is made to
 * give it up: where there is a queue, those in front of us come first. */
static void take_mutex(const struct cli *c, const struct release_options *r, simba_locker *l,
                       struct taking *t)
{
    uint64_t evicted = 0;
    int64_t wait_ms = r->wait_ms == SIMBA_FOREVER ? TAKE_MS : r->wait_ms, began = simba_now();
    t->code = simba_locker_acquire_async(l, wait_ms, on_taken, t);
    if (t->code < 0)
        on_taken(t, t->code);
    while (!t->is_over) {
        struct simba_owner o;
        int64_t left_ms = wait_ms - (simba_now() - began);
        int rc = simba_read(c->client, r->mutex, read_timeout_ms(left_ms), &o);
        bool is_in_the_way = rc == 0 && o.id[0] != '\0' && o.token != evicted &&
                             strcmp(o.id, simba_locker_id(l)) != 0;
        if (is_in_the_way && simba_evict(c->client, r->mutex, &o, false, ANSWER_MS) == 0)
            evicted = o.token;
        poll(NULL, 0, TAKE_PART_MS);
    }
}

static int publish_nothing(struct cli *c, const struct release_options *r, simba_locker *l,
                           const struct simba_note *before)
{
    struct taking t = {.is_over = false};
    take_mutex(c, r, l, &t);
    if (t.code == SIMBA_ETIMEOUT || t.code == SIMBA_EHELD) {
        print_error(c,
                    "mutex '%s' on %s: its note is not cleared: others own it again and again. "
                    "Stop some of them, or try again with a longer --wait",
                    r->mutex, c->store);
        return EXIT_CONFLICT;
    }
    if (t.code < 0)
        return print_error(c, "%s", t.why).code;
    int rc = simba_locker_publish(l, "", ANSWER_MS);
    if (rc < 0)
        return cli_fail(c, rc);
    if (c->json)
        print_json("{s:s, s:s, s:s, s:I, s:s}", "event", "cleared", "mutex", r->mutex, "note",
                   before->text, "token", (long long)simba_locker_token(l), "store", c->store);
    else
        print_note(c, "mutex '%s' on %s: its note '%s' is cleared", r->mutex, c->store,
                   before->text);
    simba_locker_release(l);
    return 0;
}

static int clear_note(struct cli *c, const struct release_options *r)
{
    struct simba_note before;
    simba_locker *l = NULL;
    int rc = simba_read_note(c->client, r->mutex, ANSWER_MS, &before, NULL);
    if (rc < 0)
        return cli_fail(c, rc);
    if (before.text[0] == '\0') {
        print_error(c, "mutex '%s' on %s: nothing to clear, it has no note", r->mutex, c->store);
        return EXIT_NOTHING;
    }
    if (!r->yes && !can_ask()) {
        print_error(c,
                    "mutex '%s' on %s has the note '%s': say --yes to clear it without being asked",
                    r->mutex, c->store, before.text);
        return EXIT_USAGE;
    }
    if (!confirms_note(r, c, &before)) {
        print_note(c, "mutex '%s' on %s: its note is kept, you did not say y", r->mutex, c->store);
        return EXIT_NOTHING;
    }
    rc = simba_locker_create(c->client, r->mutex, NULL, &l);
    return rc < 0 ? cli_fail(c, rc) : publish_nothing(c, r, l, &before);
}

static int run(struct cli *c)
{
    struct release_options r = {.wait_ms = SIMBA_FOREVER};
    struct step step = cli_take(c, take_option, take_name, &r);
    if (!step.ends && c->operand_count == 0)
        return usage(c, "missing NAME, the mutex to release: simba release NAME").code;
    if (!step.ends && r.waits && r.forced)
        return usage(c, "--wait and --force exclude each other: by force it is over at once").code;
    if (!step.ends && r.clears_note && (r.forced || r.token != 0))
        return usage(c, "--note excludes --force and --token: it ends the tenures in its way").code;
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, cli_open(c));
    if (step.ends)
        return step.code;
    r.mutex = c->mutex = c->operands[0];
    int code = r.clears_note ? clear_note(c, &r) : release(c, &r);
    cli_close(c, code);
    return code;
}

const struct subcommand release_command = {
    .name = "release",
    .operands = "NAME",
    .one = "one NAME at a time",
    .summary = "end the tenure of whoever owns NAME",
    .help =
        "The owner's renewals fail from now on: if it is alive it hears of it, ends its work and "
        "lets go;\nelse the lease runs out. There is never a second owner. With --force NAME is "
        "free at once, and\nthe old owner may go on for a while: use it only where tokens are "
        "checked. On a terminal it asks; elsewhere say --yes.\n\n"
        "With --wait it ends when the tenure is over, and says whether its lease has ended.\n\n"
        "With --note it becomes the owner for a moment, and clears the note: simba schedule and "
        "simba "
        "once begin anew, as if nothing had run.\n\n"
        "Exit status: 0 done; 1 nobody owned it, or with another token, or you said no; 124 not "
        "over "
        "in time (--wait); 125 the store\ndoes not answer; 64 wrong usage, or it cannot ask and "
        "you "
        "did not say --yes.\n\n"
        "Examples:\n"
        "  simba release backup\n"
        "  simba release --yes --wait=30s backup && ./restore\n"
        "  simba release --yes --token 1763208402000001 backup\n"
        "  simba release --yes --note nightly\n",
    .options = options,
    .run = run,
};
