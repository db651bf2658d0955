/* report.h: a history for people, and for programs. */
#ifndef CLI_TORTURE_REPORT_H
#define CLI_TORTURE_REPORT_H

#include "cli/torture/torture.h"

void report_print(const struct torture *t, const struct history *h);
#endif
