/* module.c: the way into simba-postgres.so. */
#include "backend/postgres/postgres.h"

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    return &postgres_backend;
}
