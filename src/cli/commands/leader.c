/* leader.c: simba leader: where the leader can be found, for scripts. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/shown.h"

#define EXIT_NOBODY 1

/* Those of simba schedule and simba once are not meant for anybody else. */
static bool is_of_a_command(const char *text)
{
    return strncmp(text, "tick ", 5) == 0 || strncmp(text, "once/", 5) == 0;
}

/* What an earlier leader has said is not true of this one. */
static bool is_of(const struct simba_note *n, const struct simba_owner *o)
{
    return n->text[0] != '\0' && n->token == o->token && !is_of_a_command(n->text);
}

static void print_leader(const struct cli *c, const char *mutex, const struct simba_note *n,
                         const struct simba_owner *o)
{
    char shown[sizeof n->text];
    int64_t now = simba_now();
    if (c->json)
        print_json("{s:s, s:s, s:s?, s:o, s:I, s:o, s:s}", "mutex", mutex, "holder", o->id, "note",
                   is_of(n, o) ? n->text : NULL, "token",
                   number_or_null(o->token != 0, (int64_t)o->token), "remaining_ms",
                   (long long)(o->transition_at - now), "held_ms",
                   number_or_null(o->acquired_at != 0, now - o->acquired_at), "store", c->store);
    else
        puts(show_name(is_of(n, o) ? n->text : o->id, shown, sizeof shown));
}

static int leader(const struct cli *c, const char *mutex)
{
    struct simba_note note = {.token = 0};
    struct simba_owner owner = {.token = 0};
    int rc = simba_read_note(c->client, mutex, ANSWER_MS, &note, &owner);
    if (rc < 0)
        return cli_fail(c, rc);
    if (owner.id[0] == '\0') {
        print_note(c, "mutex '%s' on %s: nobody leads", mutex, c->store);
        return EXIT_NOBODY;
    }
    print_leader(c, mutex, &note, &owner);
    return 0;
}

static int run(struct cli *c)
{
    struct step step = cli_take(c, NULL, cli_take_operand, NULL);
    if (!step.ends && c->operand_count == 0)
        return usage(c, "missing NAME, the mutex that is led: simba leader NAME").code;
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, cli_open_existing(c));
    if (step.ends)
        return step.code;
    c->mutex = c->operands[0];
    int code = leader(c, c->mutex);
    cli_close(c, code);
    return code;
}

const struct subcommand leader_command = {
    .name = "leader",
    .operands = "NAME",
    .one = "one NAME at a time",
    .summary = "what the leader of NAME advertises, or who it is",
    .help = "Prints the text that the owner of NAME has published (simba elect --advertise), or "
            "its id if "
            "it has published nothing. Characters that could do harm on a terminal are shown as ?; "
            "--json "
            "has the text as it is, with a ? for each byte that is not UTF-8.\n"
            "--json: mutex, holder, note, token, remaining_ms, held_ms, store.\n\n"
            "Exit status: 0; 1 nobody leads; 125 the store does not answer; 64 wrong usage.\n\n"
            "Examples:\n"
            "  curl \"$(simba leader api)/jobs\"\n"
            "  simba leader -q api || echo nobody leads\n",
    .run = run,
};
