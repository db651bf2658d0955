/* module.c: the way into a store that is a file of its own, simba-NAME.so. It is built once for
 * each; SIMBA_MODULE_BACKEND is the store's struct. */
#include <simba/backend.h>

extern const struct simba_backend SIMBA_MODULE_BACKEND;

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    return &SIMBA_MODULE_BACKEND;
}
