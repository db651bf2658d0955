/* release.c: simba release: ends somebody's tenure, as an operator. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/owner_list.h"

#define EXIT_NOTHING 1 /* there was nothing to end, or the answer was no */

enum { OPT_FORCE, OPT_TOKEN, OPT_YES };

static const struct option options[] = {
    {"force", 'f', OPT_FORCE, NULL, "free it at once; only safe where tokens are checked"},
    {"token", 0, OPT_TOKEN, "N", "only if the owner has this token"},
    {"yes", 'y', OPT_YES, NULL, "do not ask"},
    {NULL, 0, 0, NULL, NULL},
};

struct request {
    const char *mutex;
    uint64_t token;
    bool forced, yes;
};

static int take_option(struct cli *c, void *data, int id, char *value)
{
    struct request *r = data;
    char *end;
    switch (id) {
    case OPT_FORCE:
        r->forced = true;
        return -1;
    case OPT_YES:
        r->yes = true;
        return -1;
    default:
        errno = 0;
        r->token = strtoull(value, &end, 10);
        if (errno != 0 || *end != '\0' || value[0] < '1' || value[0] > '9')
            return usage(c, "--token '%.40s' is not a token: a number, as simba status shows it",
                         value);
        return -1;
    }
}

static bool can_ask(void)
{
    return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

static bool confirms(const struct request *r, const struct cli *c, const struct simba_owner *o)
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

/* The tenure that was looked at is the one that is ended, not one that has begun meanwhile. */
static int release(struct cli *c, struct request *r)
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
    return 0;
}

static int run(struct cli *c)
{
    struct request r = {.yes = false};
    int code = cli_take(c, take_option, cli_take_operand, &r);
    if (code < 0 && c->operand_count == 0)
        return usage(c, "missing NAME, the mutex to release: simba release NAME");
    if (code < 0)
        code = cli_configure(c);
    if (code >= 0)
        return code;
    if ((code = cli_open(c)) != 0)
        return code;
    r.mutex = c->operands[0];
    code = release(c, &r);
    simba_close(c->client, ANSWER_MS);
    return code;
}

const struct command release_command = {
    .name = "release",
    .operands = "NAME",
    .one = "one NAME at a time",
    .summary = "end the tenure of whoever owns NAME",
    .help =
        "The owner's renewals fail from now on: if it is alive it hears of it, ends its work and "
        "lets go;\nelse the lease runs out. There is never a second owner. With --force NAME is "
        "free at once, and\nthe old owner may go on for a while: use it only where tokens are "
        "checked. On a terminal it asks; elsewhere say --yes.\n\n"
        "Exit status: 0 done; 1 nobody owned it, or with another token, or you said no; 125 the "
        "store\ndoes not answer; 64 wrong usage, or it cannot ask and you did not say --yes.\n\n"
        "Examples:\n"
        "  simba release backup\n"
        "  simba release --yes --token 1763208402000001 backup\n",
    .options = options,
    .run = run,
};
