/* memory.h: the store inside the process. */
#ifndef BACKEND_MEMORY_H
#define BACKEND_MEMORY_H

#include <simba/backend.h>

extern const struct simba_backend memory_backend;
#endif
