/* torture.c: what may be written behind simba torture; what it does is in lab/torture. */
#include "cli/commands/torture.h"
#include "cli/program.h"

static const struct option options[] = {
    {"processes", 'p', OPT_PROCESSES, "N", "so many contend; default 6"},
    {"mutexes", 'm', OPT_MUTEXES, "N", "for so many; default 3"},
    {"for", 0, OPT_FOR, "D", "how long faults strike; default 60s"},
    {"seed", 0, OPT_SEED, "N", "draw the faults of an earlier run again; default: any"},
    {"plan", 0, OPT_PLAN, NULL, "show the faults that the seed draws, then end"},
    {"faults", 0, OPT_FAULTS, "LIST",
     "which: names and groups, with commas; default process,api,network"},
    {"limits", 0, OPT_LIMITS, NULL, "also faults that the guarantees exclude, counted apart"},
    {"same-id", 0, OPT_SAME_ID, NULL, "two processes contend with one id"},
    {"strict", 0, OPT_STRICT, NULL, "exit 1 also if something was only late"},
    {"html", 0, OPT_HTML, "FILE", "write what happened as a page for a browser"},
    {"server-pid", 0, OPT_SERVER_PID, "PID",
     "the server may be frozen; or a file that holds its pid"},
    {"server-start", 0, OPT_SERVER_START, "CMD", "… and killed, since CMD starts it again"},
    {"server-fault", 0, OPT_SERVER_FAULT, "NAME=CMD",
     "CMD begin, and CMD end, make another fault of the server"},
    {NULL, 0, 0, NULL, NULL},
};

const struct subcommand torture_command = {
    .name = "torture",
    .operands = "URL",
    .summary = "strike owners, and see that there are never two",
    .help =
        "Starts processes that contend for mutexes of their own names (simba-torture-…) on the "
        "store, strikes them with faults, and judges what they wrote down: two owners at once, "
        "tokens, the order of callbacks and hand-overs, takeovers in time, crashes, leaks. The "
        "same seed draws the same faults. Unless you set them, the ttl is 1s and the transition "
        "500ms.\n\n"
        "--faults: process (kill, freeze, restart), api (stop, resign, close, evict), network "
        "(delay, stall, swallow, cut, trickle, refuse, reset, duplicate), server (server-freeze, "
        "server-kill, forget, empty, swap, failover, partition, read-only, full, connection-limit, "
        "disconnect, clock: as far as the options --server-… allow), limits (evict-forced); none, "
        "all; -NAME takes one away.\n"
        "--json: a line for each finding, then one for the whole.\n\n"
        "Exit status: 0 nothing was wrong; 1 something was; 125 it could not be done, or nobody "
        "ever owned a mutex; 64 wrong usage. What was late is said, and fails with --strict "
        "only.\n\n"
        "Examples:\n"
        "  simba torture sqlite:/tmp/new.db\n"
        "  simba torture redis://127.0.0.1/0 --for 10m --processes 12 --html torture.html\n",
    .options = options,
    .program = &torture_program,
};
