/* help_json.c: simba help --json: what the command line takes, as data. Programs that check or
 * complete command lines read it, and so does tools/facts, which keeps the manuals in step with
 * the tables. */
#include "cli/commands/commands.h"
#include "cli/data.h"

static struct json_buffer options_of(const struct option *o)
{
    struct json_buffer all = {.is_line = true};
    json_buffer_add(&all, "[");
    for (const char *separator = ""; o != NULL && o->name != NULL; o++, separator = ",") {
        char letter[2] = {(char)o->letter, '\0'};
        json_buffer_add(&all, separator);
        json_buffer_object(&all, "{s:s, s:s, s:s, s:s}", "name", o->name, "letter",
                           o->letter != 0 ? letter : NULL, "value", o->arg, "help", o->help);
    }
    json_buffer_add(&all, "]");
    return all;
}

static struct json_buffer all_commands(void)
{
    struct json_buffer all = {.is_line = true};
    json_buffer_add(&all, "[");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        struct json_buffer options = options_of((*m)->options);
        json_buffer_add(&all, m == commands ? "" : ",");
        json_buffer_object(&all, "{s:s, s:s, s:s, s:s, s:j}", "name", (*m)->name, "words",
                           (*m)->operands, "summary", (*m)->summary, "help", (*m)->help, "options",
                           &options);
    }
    json_buffer_add(&all, "]");
    return all;
}

static struct json_buffer all_statuses(void)
{
    static const struct {
        const char *name, *text;
        int code;
    } statuses[] = {
#define X(name, code, text) {#name, text, code},
        EXIT_CODES(X)
#undef X
    };
    struct json_buffer all = {.is_line = true};
    json_buffer_add(&all, "[");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        json_buffer_add(&all, i > 0 ? "," : "");
        json_buffer_object(&all, "{s:i, s:s, s:s}", "code", statuses[i].code, "name",
                           statuses[i].name, "text", statuses[i].text);
    }
    json_buffer_add(&all, "]");
    return all;
}

void help_print_json(void)
{
    struct json_buffer common = options_of(common_options), all = all_commands(),
                       statuses = all_statuses();
    print_json("{s:s, s:j, s:j, s:j}", "version", simba_version(), "options", &common, "commands",
               &all, "statuses", &statuses);
}
