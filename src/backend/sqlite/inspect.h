/* inspect.h: for simba_diagnose(). */
#ifndef BACKEND_SQLITE_INSPECT_H
#define BACKEND_SQLITE_INSPECT_H

#include "backend/sqlite/database.h"

/* live: the descriptor that shows that this client is there; -1: none. */
void inspect(const struct paths *p, const struct boot_clock *b, int live, simba_finding_fn *say,
             void *data);
#endif
