/* module.c: the way into simba-zookeeper.so. */
#include "backend/zookeeper/zookeeper.h"

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    return &zookeeper_backend;
}
