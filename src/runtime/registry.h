/* registry.h: which store serves a URL. */
#ifndef RUNTIME_REGISTRY_H
#define RUNTIME_REGISTRY_H

#include <simba/backend.h>

/* 0, or a code and why: no store serves such URLs, or it cannot be loaded. */
int registry_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size);
#endif
