/* sqlite.h: the store in a file, for the processes of one machine. */
#ifndef BACKEND_SQLITE_H
#define BACKEND_SQLITE_H

#include <simba/backend.h>

extern const struct simba_backend sqlite_backend;
#endif
