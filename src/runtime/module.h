/* module.h: stores in files of their own. */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include <simba/backend.h>

int module_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size);
#endif
