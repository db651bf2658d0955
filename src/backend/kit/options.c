/* options.c: see options.h. */
#include "backend/kit/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "core/duration.h"

#define DURATION_SIZE 24

int options_refuse(const struct options *o, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(o->why, o->why_size, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
    return code;
}

int options_copy(const struct options *o, const char *text, char **out)
{
    if (text == NULL)
        return 0;
    *out = strdup(text);
    return *out != NULL ? 0 : options_refuse(o, SIMBA_ELIMIT, "out of memory");
}

int options_text(const struct options *o, const char *name, char **out)
{
    return options_copy(o, simba_url_option(o->url, name), out);
}

int options_check_file(const struct options *o, const char *name)
{
    const char *path = simba_url_option(o->url, name);
    if (path == NULL || access(path, R_OK) == 0)
        return 0;
    return options_refuse(o, SIMBA_EINVAL, "option %s: cannot read %.200s: %s", name, path,
                          errno_text(errno));
}

int options_check_tls_files(const struct options *o)
{
    int rc = options_check_file(o, "tls_ca");
    if (rc == 0)
        rc = options_check_file(o, "tls_cert");
    return rc == 0 ? options_check_file(o, "tls_key") : rc;
}

int options_host(const struct options *o, size_t n, int port, char name[OPTIONS_HOST_MAX], int *out)
{
    const char *host;
    int given;
    bool any = simba_url_host(o->url, n, &host, &given);
    if (any && strlen(host) >= OPTIONS_HOST_MAX)
        return options_refuse(o, SIMBA_EINVAL, "the name of a host is longer than 255 bytes");
    snprintf(name, OPTIONS_HOST_MAX, "%s", any ? host : "127.0.0.1");
    *out = any && given > 0 ? given : port;
    return 0;
}

/* "on, off or auto" */
static int refuse_choice(const struct options *o, const char *name, const char *const *choices)
{
    int used = snprintf(o->why, o->why_size, "option %s is %s", name, choices[0]);
    for (size_t i = 1; choices[i] != NULL && used > 0 && (size_t)used < o->why_size; i++)
        used += snprintf(o->why + used, o->why_size - (size_t)used, "%s%s",
                         choices[i + 1] == NULL ? " or " : ", ", choices[i]);
    return SIMBA_EINVAL;
}

int options_choice(const struct options *o, const char *name, const char *const *choices, int *out)
{
    const char *text = simba_url_option(o->url, name);
    for (int i = 0; text != NULL && choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return text == NULL ? 0 : refuse_choice(o, name, choices);
}

int options_switch(const struct options *o, const char *name, bool *out)
{
    static const char *const choices[] = {"on", "off", NULL};
    int which = *out ? 0 : 1;
    int rc = options_choice(o, name, choices, &which);
    if (rc == 0)
        *out = which == 0;
    return rc;
}

/* As duration_parse() takes it, in the largest unit that leaves no rest. */
static const char *duration(int64_t ms, char out[DURATION_SIZE])
{
    static const struct {
        int64_t ms;
        const char *name;
    } unit[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (ms % unit[i].ms != 0)
        i++;
    snprintf(out, DURATION_SIZE, "%lld%s", (long long)(ms / unit[i].ms), unit[i].name);
    return out;
}

int options_duration(const struct options *o, const char *name, int64_t min_ms, int64_t max_ms,
                     bool or_zero, int64_t *out)
{
    char min[DURATION_SIZE], max[DURATION_SIZE];
    int64_t ms;
    const char *text = simba_url_option(o->url, name), *rule;
    if (text == NULL)
        return 0;
    if (duration_parse(text, &ms, &rule) == 0 &&
        ((ms >= min_ms && ms <= max_ms) || (or_zero && ms == 0))) {
        *out = ms;
        return 0;
    }
    return options_refuse(o, SIMBA_EINVAL, "option %s is a duration from %s to %s%s", name,
                          duration(min_ms, min), duration(max_ms, max), or_zero ? ", or 0" : "");
}
