/* findings.h: what a store says about itself to an operator, a line at a time, by diagnose() or by
 * examine(). */
#ifndef BACKEND_KIT_FINDINGS_H
#define BACKEND_KIT_FINDINGS_H

#include <simba/backend.h>

#define FINDINGS_LINE_MAX 4352 /* a path, and what there is to say of it */

struct findings {
    simba_finding_fn *say; /* of diagnose(); NULL: the next two, of examine() */
    void *data;
    struct simba_host *host;
    struct simba_request *request;
};

__attribute__((format(printf, 3, 4))) void
findings_say(const struct findings *f, enum simba_level level, const char *format, ...);
#endif
