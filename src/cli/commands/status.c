/* status.c: simba status and simba list: who owns what, for how long, who waits. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/owner_table.h"

#define REFRESH_MS 1000
#define REFRESH_LEAST_MS 100
#define WAITERS_NAMES_MAX 16 /* of more names at once it is not asked who waits */

enum { OPT_WATCH, OPT_EVERY };

static const struct option options[] = {
    {"watch", 'W', OPT_WATCH, NULL, "again and again; on a terminal in place"},
    {"every", 0, OPT_EVERY, "D", "how often with --watch; default 1s"},
    {NULL, 0, 0, NULL, NULL},
};

struct view {
    struct owner_table table;
    char **names; /* in argv; NULL: all */
    size_t count;
    const char *prefix;
    bool again;
    int64_t every_ms;
    const char *exactly; /* on_entry: only this one */
    bool is_seen;
    int64_t waiters; /* of it */
};

static int take_option(struct cli *c, void *data, int id, char *value)
{
    struct view *v = data;
    v->again = v->again || id == OPT_WATCH;
    if (id != OPT_EVERY)
        return -1;
    int code = cli_take_duration(c, "--every", value, &v->every_ms);
    if (code < 0 && v->every_ms < REFRESH_LEAST_MS)
        return usage(c, "--every is at least %dms", REFRESH_LEAST_MS);
    return code;
}

static int take_name(struct cli *c, void *data, int id, char *value)
{
    struct view *v = data;
    (void)id;
    if (v->names == NULL)
        v->names = c->args.argv + c->args.at - 1;
    v->names[v->count++] = value; /* options among them leave gaps */
    return -1;
}

static int take_prefix(struct cli *c, void *data, int id, char *value)
{
    struct view *v = data;
    (void)id;
    if (v->prefix != NULL)
        return usage(c, "one PREFIX at most: '%.60s' is the second", value);
    v->prefix = value;
    return -1;
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void on_entry(void *data, const struct simba_entry *e)
{
    struct view *v = data;
    if (v->exactly == NULL)
        owner_table_add(&v->table, e->mutex, &e->owner, e->waiters);
    else if (strcmp(e->mutex, v->exactly) == 0)
        v->waiters = e->waiters;
}

static int read_one(struct cli *c, struct view *v, const char *name)
{
    struct simba_owner owner;
    int rc = simba_read(c->client, name, ANSWER_MS, &owner);
    if (rc < 0)
        return cli_fail(c, rc);
    v->exactly = name;
    v->waiters = -1;
    if (v->count <= WAITERS_NAMES_MAX)
        simba_list(c->client, name, ANSWER_MS, on_entry, v); /* if not, nothing is said about it */
    owner_table_add(&v->table, name, &owner, v->waiters);
    return 0;
}

static int read_all(struct cli *c, struct view *v)
{
    int code = 0;
    v->table.count = 0;
    for (size_t i = 0; code == 0 && i < v->count; i++)
        code = read_one(c, v, v->names[i]);
    if (code == 0 && v->count == 0) {
        int rc = simba_list(c->client, v->prefix, ANSWER_MS, on_entry, v);
        code = rc < 0 ? cli_fail(c, rc) : 0;
    }
    if (code == 0 && v->table.failed) {
        print_error(c, "out of memory");
        code = EXIT_TROUBLE;
    }
    return code;
}

/* ---- showing ------------------------------------------------------------------------------------- */

static void show(struct cli *c, struct view *v)
{
    bool in_place = v->again && !c->json && terminal_width() > 0;
    if (in_place)
        printf("\033[H\033[J%s\n\n", c->store);
    owner_table_print(c, &v->table);
    if (v->table.count == 0 && in_place)
        printf("nobody owns anything\n");
    else if (v->table.count == 0 && !v->again)
        print_note(c, "nobody owns anything%s%s on %s",
                   v->prefix != NULL ? " that begins with " : "",
                   v->prefix != NULL ? v->prefix : "", c->store);
    flush_stdout(c);
}

/* A reader that has gone is noticed before the next time. */
static void pause_for(const struct cli *c, int64_t ms)
{
    struct pollfd out = {1, 0, 0};
    if (poll(&out, 1, (int)ms) > 0 && (out.revents & POLLERR) != 0)
        exit(EXIT_NO_READER);
    flush_stdout(c);
}

static int run(struct cli *c, take_fn *word)
{
    struct view v = {.every_ms = REFRESH_MS};
    int code = cli_take(c, take_option, word, &v);
    if (code < 0)
        code = cli_configure(c);
    if (code >= 0)
        return code;
    if ((code = cli_open_existing(c)) != 0)
        return code;
    for (;;) {
        if ((code = read_all(c, &v)) != 0)
            break;
        show(c, &v);
        if (!v.again)
            break;
        pause_for(c, v.every_ms);
    }
    for (size_t i = 0; code == 0 && word == take_name && i < v.table.count; i++)
        code = simba_owner_exists(&v.table.row[i].owner, simba_now()) ? 0 : 1;
    free(v.table.row);
    simba_close(c->client, ANSWER_MS);
    return code;
}

static int run_status(struct cli *c)
{
    return run(c, take_name);
}

static int run_list(struct cli *c)
{
    return run(c, take_prefix);
}

const struct command status_command = {
    .name = "status",
    .words = "[NAME…]",
    .summary = "who owns NAME, or everything that is owned",
    .help =
        "STATE evicted: an operator ends this tenure, its lease runs out. LEFT: until another may "
        "own it, if it is not renewed. HELD, WAITERS: where the store knows.\n"
        "--json: mutex, state, holder, token, remaining_ms, held_ms, waiters, store.\n\n"
        "Exit status: 0 all of them are held; 1 at least one is free; 125 the store does not "
        "answer;\n64 wrong usage.\n\n"
        "Examples:\n"
        "  simba status backup && echo running\n"
        "  simba status --watch\n",
    .options = options,
    .run = run_status,
};

const struct command list_command = {
    .name = "list",
    .words = "[PREFIX]",
    .summary = "what is owned or waited for on this store",
    .help = "Exit status: 0, also if there is nothing; 125 the store does not answer; 64 wrong "
            "usage.\n\n"
            "Examples:\n"
            "  simba list\n"
            "  simba list --json nightly- | jq -r .mutex\n",
    .options = options,
    .run = run_list,
};
