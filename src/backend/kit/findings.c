/* findings.c: see findings.h. */
#include "backend/kit/findings.h"

#include <stdarg.h>
#include <stdio.h>

static void add(const struct findings *f, struct simba_finding finding, const char *format,
                va_list args)
{
    char text[FINDINGS_LINE_MAX];
    vsnprintf(text, sizeof text, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    finding.text = text;
    f->host->say(f->host, f->request, &finding);
}

void findings_say(const struct findings *f, enum simba_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(f, (struct simba_finding){.level = level}, format, args);
    va_end(args);
}

void findings_add(const struct findings *f, struct simba_finding finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(f, finding, format, args);
    va_end(args);
}

void findings_end(const struct findings *f)
{
    f->host->answer(f->host, f->request, &(struct simba_answer){.age_ms = -1});
}
