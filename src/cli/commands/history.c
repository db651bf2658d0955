/* history.c: what may be written behind simba history; what it does is in src/serve. */
#include "cli/commands/history.h"
#include "cli/program.h"

static const struct option options[] = {
    {"from", 'f', OPT_FROM, "FILE",
     "the history file; default: SIMBA_HISTORY, the key history of simba.yaml"},
    {"since", 0, OPT_SINCE, "D", "without what ended longer ago; default: all of it"},
    {NULL, 0, 0, NULL, NULL},
};

const struct subcommand history_command = {
    .name = "history",
    .operands = "[NAME…]",
    .summary = "who owned NAME, from when to when",
    .help =
        "Shows the tenures of a file that simba watch --record or simba serve --history has "
        "written, the "
        "newest last. The store is not asked; -u URL shows only what was recorded of that one.\n"
        "BEGAN ≤: on at that time, begun earlier. END: released, expired, evicted; held: "
        "still "
        "on; unseen: it ended while nobody recorded. HELD ≥: at least so long.\n"
        "--json: mutex, state (held, ended, unseen), holder, token, began_ms, began_known, "
        "ended_ms, "
        "reason, last_seen_ms, over_by_ms, note, store; state \"not recorded\" for times in which "
        "nothing was recorded, \"partly recorded\" if only some mutexes were.\n\n"
        "Exit status: 0, also if there is nothing; 125 the file cannot be read; 64 wrong usage.\n\n"
        "Examples:\n"
        "  simba watch --record history.db &\n"
        "  simba history --from history.db\n"
        "  simba history --from history.db --since 24h --json backup | jq -r .reason\n",
    .options = options,
    .program = &serve_program,
};
