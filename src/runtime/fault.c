/* fault.c: one line of text per thread, so that results can stay plain integers. */
#include "runtime/fault.h"

#include <assert.h>
#include <simba.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

#define TEXT_MAX 512

static _Thread_local char text[TEXT_MAX];

int fault(int code, const char *format, ...)
{
    assert(code < 0);
    va_list args;
    va_start(args, format);
    char raw[TEXT_MAX];
    struct text escaped;
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    text_init(&escaped, text, sizeof text);
    text_add_escaped(&escaped, raw); /* others' ids, and what servers say */
    return code;
}

const char *simba_error_text(void)
{
    return text;
}
