/* schemes.c: see schemes.h. */
#include "base/schemes.h"

#include <stddef.h>
#include <string.h>

const struct scheme *scheme_of(const char *url)
{
#define X(name, kind, port, begins) {name, STORE_##kind, port},
    static const struct scheme all[] = {SCHEMES(X)};
#undef X
    size_t length = strcspn(url, ":");
    for (size_t i = 0; url[length] == ':' && i < sizeof all / sizeof *all; i++) {
        if (strlen(all[i].name) == length && strncmp(url, all[i].name, length) == 0)
            return &all[i];
    }
    return NULL;
}

enum store_kind scheme_kind(const char *url)
{
    const struct scheme *s = scheme_of(url);
    return s != NULL ? s->kind : STORE_OTHER;
}
