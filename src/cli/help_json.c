/* help_json.c: simba help --json: what the command line takes, as data. Programs that check or
 * complete command lines read it, and so does tools/facts, which keeps the manuals in step with
 * the tables. */
#include <jansson.h>

#include "cli/commands/commands.h"
#include "cli/output.h"

static json_t *options_of(const struct option *o)
{
    json_t *all = json_array();
    for (; o != NULL && o->name != NULL; o++) {
        char letter[2] = {(char)o->letter, '\0'};
        json_array_append_new(all, json_pack("{s:s, s:s?, s:s?, s:s?}", "name", o->name, "letter",
                                             o->letter != 0 ? letter : NULL, "value", o->arg,
                                             "help", o->help));
    }
    return all;
}

static json_t *all_commands(void)
{
    json_t *all = json_array();
    for (const struct command *const *m = commands; *m != NULL; m++)
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", (*m)->name, "words",
                                        (*m)->operands, "summary", (*m)->summary, "help",
                                        (*m)->help, "options", options_of((*m)->options)));
    return all;
}

static json_t *all_statuses(void)
{
    static const struct {
        const char *name, *text;
        int code;
    } statuses[] = {
#define X(name, code, text) {#name, text, code},
        EXIT_CODES(X)
#undef X
    };
    json_t *all = json_array();
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        json_array_append_new(all, json_pack("{s:i, s:s, s:s}", "code", statuses[i].code, "name",
                                             statuses[i].name, "text", statuses[i].text));
    return all;
}

void help_print_json(void)
{
    print_json("{s:s, s:o, s:o, s:o}", "version", simba_version(), "options",
               options_of(common_options), "commands", all_commands(), "statuses", all_statuses());
}
