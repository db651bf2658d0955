/* bench.c: what may be written behind simba bench; what it does is in lab/bench. */
#include "cli/commands/bench.h"
#include "cli/program.h"

static const struct option options[] = {
    {"for", 0, OPT_FOR, "D", "measure for this long, 1s to 1h; default 10s"},
    {"rate", 0, OPT_RATE, "N",
     "at most so many operations of the store per second; default 1000; 0: as many as it answers"},
    {NULL, 0, 0, NULL, NULL},
};

const struct subcommand bench_command = {
    .name = "bench",
    .operands = "[URL]",
    .summary = "how fast is the store from here",
    .help =
        "Measures acquire and release of a free mutex, the hand-over between two clients, and "
        "renewals, and\nestimates how many mutexes the store would keep at which ttl. It holds up "
        "to 102 mutexes of its\nown (simba-bench-N and simba-bench-N.*, N from 0 to 15), asks the "
        "store for at most --rate\noperations a second, one connection at a time, and gives all "
        "back, also after a signal.\n"
        "--json: store, measured_ms, rate, interrupted; pairs, handovers, renewals (each count, "
        "p50_us, p99_us,\nmax_us); renewals_per_s; mutexes (each ttl_ms, count).\n\n"
        "Exit status: 0 measured; 125 the store does not answer or refuses; 64 wrong usage.\n\n"
        "Examples:\n"
        "  simba bench\n"
        "  simba bench redis://locks.example.org/0 --for 30s\n",
    .options = options,
    .program = &bench_program,
};
