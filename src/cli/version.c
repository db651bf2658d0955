/* version.c: simba version. */
#include "cli.h"

static int run(struct cli *c)
{
    char *value;
    for (int id; (id = args_next(&c->args, &value)) != ARG_END;) {
        int code;
        if (id == ARG_WRONG)
            return EXIT_USAGE;
        if (id == ARG_WORD)
            return usage(c, "there is nothing to be said about '%.60s'", value);
        cli_common(c, id, value, &code);
        if (code >= 0)
            return code;
    }
    if (c->json)
        print_json("{s:s}", "version", simba_version());
    else
        printf("simba %s\n", simba_version());
    return 0;
}

const struct command version_command = {
    .name = "version",
    .words = "",
    .summary = "the version of the command and its library",
    .help = "Example:\n  simba version --json\n",
    .run = run,
};
