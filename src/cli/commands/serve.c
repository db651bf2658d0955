/* serve.c: what may be written behind simba serve; what it does is in src/serve. */
#include "cli/commands/serve.h"
#include "cli/program.h"

static const struct option options[] = {
    {"listen", 0, OPT_LISTEN, "ADDR",
     "[HOST]:PORT, or unix:PATH; default :7462, this machine only"},
    {"host", 0, OPT_HOST, "NAMES",
     "names by which browsers may ask, too, with commas between them"},
    {"history", 0, OPT_HISTORY, "FILE",
     "record tenures into FILE, and show those of earlier; default: SIMBA_HISTORY, the key history "
     "of "
     "simba.yaml, else memory"},
    {"keep", 0, OPT_KEEP, "D", "delete what ended longer ago from the file; default 720h"},
    {NULL, 0, 0, NULL, NULL},
};

const struct subcommand serve_command = {
    .name = "serve",
    .operands = "[URL]",
    .summary = "show who owns what in a browser, live",
    .help = "Shows all of a store in a browser: who owns what, since when, who waits, and the "
            "tenures of the "
            "last hours as a timeline. It only reads. It listens on this machine only, unless "
            "--listen says "
            "otherwise: whoever reaches it may read all of it.\n"
            "Paths: / the page; /api/mutexes, /api/history JSON; /events changes as server-sent "
            "events; "
            "/metrics for Prometheus; /healthz 200 while the store answers and the history is "
            "written, else 503.\n\n"
            "Exit status: 125 the store does not answer at the beginning, or the address is taken; "
            "64 wrong "
            "usage; else a signal ends it.\n\n"
            "Examples:\n"
            "  simba serve\n"
            "  simba serve redis://locks.example.org/0 --history history.db\n",
    .options = options,
    .program = &serve_program,
};
