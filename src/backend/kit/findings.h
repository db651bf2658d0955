/* findings.h: what a store says about itself to an operator, a finding at a time, by examine(). */
#ifndef BACKEND_KIT_FINDINGS_H
#define BACKEND_KIT_FINDINGS_H

#include <simba/backend.h>

#define FINDINGS_LINE_MAX 4352 /* a path, and what there is to say of it */

struct findings {
    struct simba_host *host;
    struct simba_request *request;
};

/* For people only. */
__attribute__((format(printf, 3, 4))) void
findings_say(const struct findings *f, enum simba_level level, const char *format, ...);

/* Also for programs. The text is the format's. */
__attribute__((format(printf, 3, 4))) void
findings_add(const struct findings *f, struct simba_finding finding, const char *format, ...);

void findings_end(const struct findings *f); /* there are no more: answers the request */
#endif
