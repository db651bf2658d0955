/* args.c: a parser of options that stops where it is told to. getopt's permutes, or needs + and
 * reports only a letter; here the caller stops asking at the first operand of CMD, so that CMD's
 * own options are never looked at. */
#include "cli/args.h"

#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/messages.h"

#define NAMES_MAX 64
#define OPTION_LISTS 2

/* Those of all commands, then those of this one. */
static const struct option *options_of(const struct cli *c, int i)
{
    static const struct option none = {NULL, 0, 0, NULL, NULL};
    if (i == 0)
        return common_options;
    return c->command != NULL && c->command->options != NULL ? c->command->options : &none;
}

/* By its name, of so many bytes; or by its letter, if that is not 0. */
static const struct option *find(const struct cli *c, const char *name, size_t length, char letter)
{
    for (int i = 0; i < OPTION_LISTS; i++) {
        for (const struct option *o = options_of(c, i); o->name != NULL; o++) {
            if (letter != 0 ? o->letter == letter
                            : strlen(o->name) == length && strncmp(o->name, name, length) == 0)
                return o;
        }
    }
    return NULL;
}

static struct arg unknown(const struct cli *c, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (int i = 0; i < OPTION_LISTS; i++) {
        for (const struct option *o = options_of(c, i); o->name != NULL && count < NAMES_MAX; o++)
            names[count++] = o->name;
    }
    const char *near = text_nearest(name, names, count);
    if (near != NULL)
        usage(c, "unknown option --%s; did you mean --%s?", name, near);
    else
        usage(c, "unknown option --%.60s", name);
    return (struct arg){.kind = ARG_WRONG};
}

bool option_takes_next(const struct option *o)
{
    return o->arg != NULL && o->arg[0] != '[';
}

static struct arg take_value(struct cli *c, const struct option *o, char *attached)
{
    char *value = attached;
    if (o->arg == NULL && attached != NULL) {
        usage(c, "--%s takes no value", o->name);
        return (struct arg){.kind = ARG_WRONG};
    }
    if (attached == NULL && option_takes_next(o)) {
        value = c->args.argv[c->args.at];
        if (value == NULL) {
            usage(c, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
            return (struct arg){.kind = ARG_WRONG};
        }
        c->args.at++;
    }
    return (struct arg){.kind = ARG_OPTION, .id = o->id, .value = value};
}

static struct arg long_option(struct cli *c, char *text)
{
    char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct option *o = find(c, text, length, 0);
    if (o != NULL)
        return take_value(c, o, equals != NULL ? equals + 1 : NULL);
    if (equals != NULL)
        *equals = '\0';
    return unknown(c, text);
}

static struct arg short_option(struct cli *c)
{
    char *text = c->args.bundle, *rest = text[1] != '\0' ? text + 1 : NULL;
    const struct option *o = find(c, "", 0, *text);
    if (o == NULL) {
        usage(c, "unknown option -%c", *text);
        return (struct arg){.kind = ARG_WRONG};
    }
    c->args.bundle = o->arg == NULL ? rest : NULL;
    return take_value(c, o, o->arg != NULL ? rest : NULL);
}

struct arg args_next(struct cli *c)
{
    struct args *a = &c->args;
    if (a->bundle != NULL)
        return short_option(c);
    char *arg = a->argv[a->at];
    if (arg == NULL)
        return (struct arg){.kind = ARG_END};
    a->at++;
    if (!a->only_operands && strcmp(arg, "--") == 0) {
        a->only_operands = true;
        return args_next(c);
    }
    if (!a->only_operands && strncmp(arg, "--", 2) == 0)
        return long_option(c, arg + 2);
    if (!a->only_operands && arg[0] == '-' && arg[1] != '\0') {
        a->bundle = arg + 1;
        return short_option(c);
    }
    return (struct arg){.kind = ARG_OPERAND, .value = arg};
}
