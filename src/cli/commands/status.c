/* status.c: simba status and simba list: who owns what, for how long, who waits. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/terminal.h"

#define REFRESH_MS 1000
#define REFRESH_LEAST_MS 100
#define WAITERS_NAMES_MAX 16 /* of more names at once it is not asked who waits */

enum { OPT_WATCH, OPT_EVERY };

static const struct option options[] = {
    {"watch", 'W', OPT_WATCH, NULL, "repeat it; on a terminal in place"},
    {"every", 0, OPT_EVERY, "D", "how often with --watch; default 1s"},
    {NULL, 0, 0, NULL, NULL},
};

struct status_view {
    struct owner_list list;
    size_t names;       /* that are asked for; 0: all … */
    const char *prefix; /* … that begin so; NULL: however they do */
    bool again;
    int64_t every_ms;
    const char *exactly; /* on_entry: only this one */
    int64_t waiters;     /* of it */
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct status_view *v = data;
    v->again = v->again || id == OPT_WATCH;
    if (id != OPT_EVERY)
        return GO_ON;
    struct step step = cli_take_duration(c, "--every", value, &v->every_ms);
    if (!step.ends && v->every_ms < REFRESH_LEAST_MS)
        return usage(c, "--every %s is shorter than %dms", value, REFRESH_LEAST_MS);
    return step;
}

/* ---- asking -------------------------------------------------------------------------------- */

static void on_entry(void *data, const struct simba_entry *e)
{
    struct status_view *v = data;
    if (v->exactly == NULL)
        owner_list_add(&v->list, e->mutex, &e->owner, e->waiters, e->note);
    else if (strcmp(e->mutex, v->exactly) == 0)
        v->waiters = e->waiters;
}

/* A store may keep no notes, or not show them to us. */
static int read_owner(struct cli *c, const char *name, struct simba_owner *owner,
                      struct simba_note *note)
{
    int rc = simba_read_note(c->client, name, ANSWER_MS, note, owner);
    if (rc != SIMBA_EUNSUPPORTED && rc != SIMBA_ESCHEMA && rc != SIMBA_EDENIED)
        return rc;
    *note = (struct simba_note){.token = 0};
    return simba_read(c->client, name, ANSWER_MS, owner);
}

static struct step read_one(struct cli *c, struct status_view *v, const char *name)
{
    struct simba_owner owner;
    struct simba_note note;
    int rc = read_owner(c, name, &owner, &note);
    if (rc < 0)
        return end_with(cli_fail(c, rc));
    v->exactly = name;
    v->waiters = -1;
    if (v->names <= WAITERS_NAMES_MAX)
        simba_list(c->client, name, ANSWER_MS, on_entry, v); /* if not, nothing is said about it */
    owner_list_add(&v->list, name, &owner, v->waiters, &note);
    return GO_ON;
}

static struct step read_all(struct cli *c, struct status_view *v)
{
    struct step step = GO_ON;
    owner_list_empty(&v->list);
    for (size_t i = 0; !step.ends && i < v->names; i++)
        step = read_one(c, v, c->operands[i]);
    if (!step.ends && v->names == 0) {
        int rc = simba_list(c->client, v->prefix, ANSWER_MS, on_entry, v);
        if (rc < 0)
            step = end_with(cli_fail(c, rc));
    }
    return !step.ends && v->list.failed ? print_error(c, "cannot list %s: out of memory", c->store)
                                        : step;
}

/* ---- showing ------------------------------------------------------------------------------- */

static void show(struct cli *c, struct status_view *v)
{
    bool in_place = v->again && !c->json && terminal_width() > 0;
    if (in_place)
        printf("\033[H\033[J%s\n\n", c->store);
    owner_list_print(c, &v->list);
    if (v->list.count == 0 && in_place)
        printf("nobody owns a mutex\n");
    else if (v->list.count == 0 && !v->again)
        print_note(c, "nobody owns a mutex%s%s%s on %s",
                   v->prefix != NULL ? " whose name begins with '" : "",
                   v->prefix != NULL ? v->prefix : "", v->prefix != NULL ? "'" : "", c->store);
    struct step flushed = flush_stdout(c);
    if (flushed.ends)
        _exit(flushed.code);
}

/* A reader that has gone is noticed before the next time. */
static void pause_for(int64_t ms)
{
    struct pollfd out = {STDOUT_FILENO, 0, 0};
    if (poll(&out, 1, (int)ms) > 0 && (out.revents & POLLERR) != 0)
        _exit(EXIT_NO_READER);
}

static int run(struct cli *c)
{
    struct status_view v = {.every_ms = REFRESH_MS};
    struct step step = cli_take(c, take_option, cli_take_operand, &v);
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, cli_open_existing(c));
    if (step.ends)
        return step.code;
    bool is_status = c->command == &status_command;
    v.names = is_status ? c->operand_count : 0;
    v.prefix = !is_status && c->operand_count > 0 ? c->operands[0] : NULL;
    while (!(step = read_all(c, &v)).ends) {
        show(c, &v);
        if (!v.again)
            break;
        pause_for(v.every_ms);
    }
    int code = step.code;
    for (size_t i = 0; code == 0 && is_status && i < v.list.count; i++)
        code = simba_owner_exists(&v.list.row[i].owner, simba_now()) ? 0 : 1;
    owner_list_empty(&v.list);
    free(v.list.row);
    cli_close(c, code);
    return code;
}

const struct subcommand status_command = {
    .name = "status",
    .operands = "[NAME…]",
    .summary = "who owns NAME, or everything that is owned",
    .help =
        "STATE evicted: an operator ends this tenure, its lease runs out. LEFT: until another may "
        "own it, if it is not renewed. HELD, WAITERS: where the store knows. NOTE: what an owner "
        "published last, where one did.\n"
        "--json: mutex, state, holder, token, remaining_ms, held_ms, waiters, store; with a note "
        "also "
        "note, note_token, note_age_ms.\n\n"
        "Exit status: 0 all of them are held; 1 at least one is free; 125 the store does not "
        "answer;\n64 wrong usage.\n\n"
        "Examples:\n"
        "  simba status backup && echo running\n"
        "  simba status --watch\n",
    .options = options,
    .run = run,
};

const struct subcommand list_command = {
    .name = "list",
    .operands = "[PREFIX]",
    .one = "one PREFIX at most",
    .summary = "what is owned or waited for on this store",
    .help = "Exit status: 0, also if there is nothing; 125 the store does not answer; 64 wrong "
            "usage.\n\n"
            "Examples:\n"
            "  simba list\n"
            "  simba list --json nightly- | jq -r .mutex\n",
    .options = options,
    .run = run,
};
