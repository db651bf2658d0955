/* args.c: a parser of options that stops where it is told to. getopt's permutes, or needs + and
 * reports only a letter; here the caller stops asking at the first word of CMD, so that CMD's own
 * options are never looked at. */
#include "cli/args.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"

static const struct cli *of(const struct args *a)
{
    return (const struct cli *)(const void *)a; /* its first member */
}

static const struct option *by_letter(const struct option *table, char letter)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (table->letter == letter)
            return table;
    }
    return NULL;
}

static const struct option *by_name(const struct option *table, const char *name, size_t length)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (strncmp(table->name, name, length) == 0 && table->name[length] == '\0')
            return table;
    }
    return NULL;
}

#define NAMES_MAX 64

static int unknown(const struct args *a, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const struct option *o = a->common; o->name != NULL && count < NAMES_MAX; o++)
        names[count++] = o->name;
    for (const struct option *o = a->own; o != NULL && o->name != NULL && count < NAMES_MAX; o++)
        names[count++] = o->name;
    const char *near = nearest(name, names, count);
    if (near != NULL)
        usage(of(a), "there is no option --%s; did you mean --%s?", name, near);
    else
        usage(of(a), "there is no option --%.60s", name);
    return ARG_WRONG;
}

static int take_value(struct args *a, const struct option *o, char *attached, char **value)
{
    *value = attached;
    if (o->arg == NULL) {
        if (attached == NULL)
            return o->id;
        usage(of(a), "--%s takes no value", o->name);
        return ARG_WRONG;
    }
    if (attached == NULL)
        *value = a->argv[a->at];
    if (*value == NULL) {
        usage(of(a), "--%s needs a value: --%s %s", o->name, o->name, o->arg);
        return ARG_WRONG;
    }
    if (attached == NULL)
        a->at++;
    return o->id;
}

static int long_option(struct args *a, char *text, char **value)
{
    char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct option *o = by_name(a->common, text, length);
    if (o == NULL)
        o = by_name(a->own, text, length);
    if (o != NULL)
        return take_value(a, o, equals != NULL ? equals + 1 : NULL, value);
    if (equals != NULL)
        *equals = '\0';
    return unknown(a, text);
}

static int short_option(struct args *a, char **value)
{
    char *text = (char *)(uintptr_t)a->bundle; /* argv's own */
    const struct option *o = by_letter(a->common, *text);
    if (o == NULL)
        o = by_letter(a->own, *text);
    if (o == NULL) {
        usage(of(a), "there is no option -%c", *text);
        return ARG_WRONG;
    }
    a->bundle = text[1] != '\0' ? text + 1 : NULL;
    if (o->arg == NULL)
        return o->id;
    char *attached = text[1] != '\0' ? text + 1 : NULL;
    a->bundle = NULL;
    return take_value(a, o, attached, value);
}

int args_next(struct args *a, char **value)
{
    *value = NULL;
    if (a->bundle != NULL)
        return short_option(a, value);
    char *arg = a->argv[a->at];
    if (arg == NULL)
        return ARG_END;
    a->at++;
    if (!a->only_words && strcmp(arg, "--") == 0) {
        a->only_words = true;
        return args_next(a, value);
    }
    if (!a->only_words && strncmp(arg, "--", 2) == 0)
        return long_option(a, arg + 2, value);
    if (!a->only_words && arg[0] == '-' && arg[1] != '\0') {
        a->bundle = arg + 1;
        return short_option(a, value);
    }
    *value = arg;
    return ARG_WORD;
}
