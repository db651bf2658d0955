/* fault.c: one line of text per thread, so that results can stay plain integers. */
#include "runtime/fault.h"

#include <assert.h>
#include <simba.h>
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX 512

static _Thread_local char text[TEXT_MAX];

int fault(int code, const char *format, ...)
{
    assert(code < 0);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return code;
}

const char *simba_error_text(void)
{
    return text;
}
