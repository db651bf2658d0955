/* registry.c: which store serves a URL. */
#include <string.h>

#include "backend/memory/memory.h"
#include "backend/sqlite/sqlite.h"
#include "runtime/client.h"

static const struct simba_backend *const built_in[] = {&sqlite_backend, &memory_backend};

const struct simba_backend *registry_find(const char *scheme)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        for (const char *const *name = built_in[i]->schemes; *name != NULL; name++) {
            if (strcmp(*name, scheme) == 0)
                return built_in[i];
        }
    }
    return NULL;
}
