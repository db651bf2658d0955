/* module.c: the way into simba-mysql.so. */
#include "backend/mysql/mysql.h"

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    return &mysql_backend;
}
