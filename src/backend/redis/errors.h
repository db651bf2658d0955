/* errors.h: an error reply of the server in our words. */
#ifndef BACKEND_REDIS_ERRORS_H
#define BACKEND_REDIS_ERRORS_H

#include "backend/redis/resp.h"

int errors_describe(const struct reply *r, char *why, size_t size); /* its code */
#endif
