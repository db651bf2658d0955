/* tck.c: simba tck: the contract suite against a store. It is a program of its own, built from the
 * tests, with options of its own. */
#include "cli/commands/commands.h"
#include "cli/messages.h"
#include "cli/program.h"

#define ARGS_MAX 16

enum { OPT_LONG, OPT_JOBS, OPT_ONLY, OPT_LIST, OPT_REPEAT };

static const struct option options[] = {
    {"long", 0, OPT_LONG, NULL, "some tests for half a minute instead of seconds"},
    {"jobs", 'j', OPT_JOBS, "N", "at most so many tests at once; default 4"},
    {"only", 0, OPT_ONLY, "PATTERN", "tests whose name matches it or contains it"},
    {"list", 0, OPT_LIST, NULL, "show the names of the tests"},
    {"repeat", 0, OPT_REPEAT, "N", "every test so often"},
    {NULL, 0, 0, NULL, NULL},
};

struct tck_options {
    char *argv[ARGS_MAX];
    int count;
    bool list;
};

/* As the suite has them. */
static const char *const arguments[] = {[OPT_LONG] = "--long",
                                        [OPT_JOBS] = "-j",
                                        [OPT_ONLY] = "--only",
                                        [OPT_LIST] = "--list",
                                        [OPT_REPEAT] = "--repeat"};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct tck_options *r = data;
    (void)c;
    r->list = r->list || id == OPT_LIST;
    if (r->count + 3 > ARGS_MAX)
        return GO_ON; /* each is needed once */
    r->argv[r->count++] = (char *)(uintptr_t)arguments[id];
    if (value != NULL)
        r->argv[r->count++] = value;
    return GO_ON;
}

static int run(struct cli *c)
{
    static struct tck_options r = {.argv = {"tck"}, .count = 1};
    struct step step = cli_take(c, take_option, cli_take_url, &r);
    if (step.ends)
        return step.code;
    /* Not on the default store by mistake: the suite leaves names behind. */
    if (c->setting[SET_URL].value == NULL && !r.list)
        return usage(c, "missing URL, the store to test: simba tck sqlite:/tmp/new.db").code;
    if ((step = cli_configure(c)).ends)
        return step.code;
    return program_exec(c, &tck_program, r.argv, "SIMBA_TCK_URL");
}

const struct subcommand tck_command = {
    .name = "tck",
    .operands = "URL",
    .summary = "test whether a store keeps the contract",
    .help =
        "Runs the contract suite: exclusion, tokens, order of callbacks, loss, hand-over, names, "
        "lists; "
        "as\nmuch of it as the store can be put through from outside. Leaves names behind that "
        "begin "
        "with t:\ngive it a store of its own.\n\n"
        "Exit status: 0 all passed; 1 something failed; 125 the suite is not installed; 64 wrong "
        "usage.\n\n"
        "Examples:\n"
        "  simba tck sqlite:/tmp/new.db\n"
        "  SIMBA_MODULE_PATH=$PWD simba tck dir:/tmp/locks   # a store of your own\n",
    .options = options,
    .run = run,
};
