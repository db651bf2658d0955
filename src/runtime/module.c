/* module.c: stores in files of their own, so that nobody loads a client library that is not used.
 *
 * The store for redis+unix: is simba-redis.so, in the folder that was compiled in. For development
 * SIMBA_MODULE_PATH names another one, but not in a program that has more rights than its caller. A
 * module stays loaded to the end of the process: threads of it may be anywhere. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/client.h"

#ifndef SIMBA_MODULE_DIR
#define SIMBA_MODULE_DIR "/usr/lib/simba"
#endif
#define SCHEME_MAX 32
#define MODULE_PATH_MAX 512

/* What the stores of this project are called where they are built. */
static const char *store_of(const char *name)
{
    static const char *const stores[][2] = {
        {"redis", "redis"},         {"rediss", "redis"},      {"mysql", "mysql"},
        {"mariadb", "mysql"},       {"postgres", "postgres"}, {"postgresql", "postgres"},
        {"zookeeper", "zookeeper"},
    };
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (strcmp(stores[i][0], name) == 0)
            return stores[i][1];
    }
    return NULL;
}

static void say_missing(const char *scheme, const char *name, const char *path, char *why,
                        size_t why_size)
{
    const char *store = store_of(name);
    if (store != NULL)
        snprintf(why, why_size,
                 "the store for '%s:' is not installed: there is no %.300s. Install Simba's module "
                 "for %s (SIMBA_MODULE_PATH names another folder), or build with %s among "
                 "SIMBA_STORES",
                 scheme, path, store, store);
    else
        snprintf(why, why_size,
                 "no store for URLs with '%s:': there are sqlite:, redis:, mysql:, mariadb:, "
                 "postgresql:, zookeeper: and memory:, and no module %.300s",
                 scheme, path);
}

static const struct simba_backend *ask_module(void *module, const char *scheme, const char *path,
                                              char *why, size_t why_size)
{
    const struct simba_backend *(*entry)(void);
    void *symbol = dlsym(module, SIMBA_MODULE_ENTRY);
    const struct simba_backend *b = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (symbol != NULL)
        b = entry();
    if (b == NULL) {
        snprintf(why, why_size, "%.300s is no module of Simba", path);
        return NULL;
    }
    if (b->version != SIMBA_BACKEND_VERSION) {
        snprintf(why, why_size,
                 "%.300s was built for version %u of the interface for stores, and this library "
                 "has %u: install both from one release",
                 path, b->version, SIMBA_BACKEND_VERSION);
        return NULL;
    }
    for (const char *const *known = b->schemes; *known != NULL; known++) {
        if (strcmp(*known, scheme) == 0)
            return b;
    }
    snprintf(why, why_size, "%.300s does not serve URLs with '%s:'", path, scheme);
    return NULL;
}

const struct simba_backend *module_find(const char *scheme, char *why, size_t why_size)
{
    char name[SCHEME_MAX + 1], path[MODULE_PATH_MAX];
    size_t length = strcspn(scheme, "+"); /* the scheme is [a-z][a-z0-9+]*, as url.c has seen */
    if (length > SCHEME_MAX) {
        snprintf(why, why_size, "no store for URLs with '%.40s...:'", scheme);
        return NULL;
    }
    memcpy(name, scheme, length);
    name[length] = '\0';
    const char *folder = secure_getenv("SIMBA_MODULE_PATH");
    if (folder == NULL || folder[0] != '/')
        folder = SIMBA_MODULE_DIR;
    int n = snprintf(path, sizeof path, "%s/simba-%s.so", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0) {
        say_missing(scheme, name, path, why, why_size);
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == NULL) {
        const char *error = dlerror();
        snprintf(why, why_size, "the store for '%s:' cannot be loaded: %.400s", scheme,
                 error != NULL ? error : path);
        return NULL;
    }
    return ask_module(module, scheme, path, why, why_size);
}
