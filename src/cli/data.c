/* data.c: see data.h. */
#include "cli/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/messages.h"

static bool cannot_make_json; /* a line of data is missing on stdout */

void print_json_text(struct json_buffer *t)
{
    json_buffer_add(t, "\n");
    if (!t->failed)
        fwrite(t->at, 1, t->length, stdout);
    cannot_make_json = cannot_make_json || t->failed;
    free(t->at);
}

void print_json(const char *format, ...)
{
    struct json_buffer t = {.is_line = true};
    va_list args;
    va_start(args, format);
    json_buffer_object_of(&t, format, args);
    va_end(args);
    print_json_text(&t);
}

struct step flush_stdout(const struct cli *c)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return !cannot_make_json
                   ? GO_ON
                   : print_error(c, "lines are missing on stdout: no memory to make JSON of them");
    if (errno == EPIPE)
        return end_with(EXIT_NO_READER);
    return print_error(c, "cannot write to stdout: %s", strerror(errno));
}
