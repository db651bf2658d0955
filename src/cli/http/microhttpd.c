/* microhttpd.c: see microhttpd.h. */
#include "cli/http/microhttpd.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

const struct microhttpd *microhttpd_load(const char **why)
{
    static struct microhttpd functions;
    static const struct {
        const char *name;
        size_t at;
    } wanted[] = {
#define X(name) {#name, offsetof(struct microhttpd, name)},
        MICROHTTPD_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen(SIMBA_MICROHTTPD, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < sizeof wanted / sizeof *wanted; i++) {
        void *function = dlsym(library, wanted[i].name);
        if (function == NULL)
            library = NULL;
        /* ISO C has no conversion from an object's pointer to a function's; POSIX has. */
        memcpy((char *)&functions + wanted[i].at, &function, sizeof function);
    }
    *why = library == NULL ? dlerror() : NULL;
    return library != NULL ? &functions : NULL;
}
