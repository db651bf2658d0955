/* inspect.h: for examine(). */
#ifndef BACKEND_SQLITE_INSPECT_H
#define BACKEND_SQLITE_INSPECT_H

#include "backend/kit/findings.h"
#include "backend/sqlite/database.h"

/* live: the descriptor that shows that this client is there; -1: none. */
void inspect(const struct findings *f, const struct paths *p, const struct boot_clock *b, int live);
#endif
