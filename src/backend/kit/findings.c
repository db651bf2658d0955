/* findings.c: see findings.h. */
#include "backend/kit/findings.h"

#include <stdarg.h>
#include <stdio.h>

void findings_say(const struct findings *f, enum simba_level level, const char *format, ...)
{
    char line[FINDINGS_LINE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
    if (f->say != NULL)
        f->say(f->data, level, line);
    else
        f->host->say(f->host, f->request, level, line);
}
