/* registry.c: which store serves a URL. */
#include "runtime/registry.h"

#include <string.h>

#include "backend/memory/memory.h"
#include "backend/sqlite/sqlite.h"
#include "runtime/builtin.h" /* those of the build option SIMBA_BUILTIN, as X(redis) X(...) */
#include "runtime/module.h"

#define DECLARE(name) extern const struct simba_backend name##_backend;
#define LIST(name) &name##_backend,
SIMBA_BUILTIN_STORES(DECLARE)

static const struct simba_backend *const built_in[] = {&sqlite_backend, &memory_backend,
                                                       SIMBA_BUILTIN_STORES(LIST)};

static bool serves(const struct simba_backend *b, const char *scheme)
{
    for (const char *const *name = b->schemes; *name != NULL; name++) {
        if (strcmp(*name, scheme) == 0)
            return true;
    }
    return false;
}

int registry_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (serves(built_in[i], scheme)) {
            *out = built_in[i];
            return 0;
        }
    }
    return module_find(scheme, out, why, why_size);
}
