/* module.c: the way into simba-redis.so. */
#include "backend/redis/redis.h"

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    return &redis_backend;
}
