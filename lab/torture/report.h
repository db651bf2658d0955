/* report.h: a history for people, and for programs. */
#ifndef LAB_TORTURE_REPORT_H
#define LAB_TORTURE_REPORT_H

#include "lab/torture/torture.h"

void report_print(const struct torture *t, const struct run_history *h);
#endif
