/* error.c: results are plain integers: the codes in words, and one line of text per thread. One
 * list in simba.h makes codes and words, so none lacks its text. */
#include "runtime/error.h"

#include <assert.h>
#include <simba.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "base/time.h"

#define TEXT_MAX 1024
#define ABOUT_MAX 300

static _Thread_local char text[TEXT_MAX];
static _Thread_local size_t cause; /* begins there */

/* Others' ids, and what servers say, are escaped. */
static void write_text(const char *about, const char *format, va_list args)
{
    char raw[2 * TEXT_MAX];
    struct text escaped;
    vsnprintf(raw, sizeof raw, format, args);
    text_init(&escaped, text, sizeof text);
    text_add_escaped(&escaped, about);
    cause = escaped.length;
    text_add_escaped(&escaped, raw);
    text_end(&escaped);
}

int error_say(int code, const char *format, ...)
{
    assert(code < 0);
    va_list args;
    va_start(args, format);
    write_text("", format, args);
    va_end(args);
    return code;
}

int error_on(int code, const char *mutex, const char *store, const char *format, ...)
{
    assert(code < 0);
    char about[ABOUT_MAX];
    va_list args;
    snprintf(about, sizeof about, "mutex '%.70s'%s%.200s: ", mutex, store != NULL ? " on " : "",
             store != NULL ? store : "");
    va_start(args, format);
    write_text(about, format, args);
    va_end(args);
    return code;
}

int error_at(int code, const char *what, const char *store, const char *format, ...)
{
    assert(code < 0);
    char about[ABOUT_MAX];
    va_list args;
    snprintf(about, sizeof about, "%.90s on %.200s: ", what, store);
    va_start(args, format);
    write_text(about, format, args);
    va_end(args);
    return code;
}

const char *error_duration(int64_t ns, char out[ERROR_DURATION])
{
    struct text t;
    text_init(&t, out, ERROR_DURATION);
    text_add_duration(&t, ns / NS_PER_MS);
    return out;
}

const char *simba_error_text(void)
{
    return text;
}

const char *simba_error_cause(void)
{
    return text + cause;
}

const char *simba_strerror(int code)
{
#define SIMBA_X(name, number, text) \
    case SIMBA_E##name:             \
        return text;
    switch (code) {
        SIMBA_ERRORS(SIMBA_X)
    case SIMBA_OK:
        return "success";
    default:
        return "unknown error";
    }
#undef SIMBA_X
}
