/* registry.c: which store serves a URL.
 *
 * Those that are not built in are modules, files of their own, so that nobody loads a client
 * library that is not used. The store for redis+unix: is simba-redis.so, that for rediss:, with TLS,
 * is simba-rediss.so. It is looked for in
 *   1. SIMBA_MODULE_PATH, and then nowhere else;
 *   2. folders beside libsimba.so, or beside the program that it is linked into: so a build tree finds its
 *      own modules, and a prefix may be moved;
 *   3. the folder that was compiled in.
 * A program that has more rights than its caller looks only there: who calls it decides by links
 * and variables where it seems to lie. Beside us a folder counts only if it belongs to root or
 * to whoever owns the library or program, and not everybody may write there. Its group may: many
 * systems make folders so by default, and who may write there may in general replace the library
 * itself. A module stays loaded to the end of the process: threads of it may be anywhere. */
#include "runtime/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/memory/memory.h"
#include "backend/sqlite/sqlite.h"
#include "base/errno_text.h"
#include "base/text.h"
#include "runtime/builtin.h" /* those of the build option SIMBA_BUILTIN, as X(redis) X(...) */

#ifndef SIMBA_MODULE_DIR
#define SIMBA_MODULE_DIR "/usr/lib/simba"
#endif
#ifndef SIMBA_LIBDIR
#define SIMBA_LIBDIR "lib"
#endif
#define SCHEME_MAX 32
#define SCHEME_NEAR 2 /* letters to be changed, added or left out */
#define MODULE_PATH_MAX (PATH_MAX + 64)

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

/* What the stores of this project are called where they are built, and in their Debian packages. */
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

/* NULL: none is near. */
static const char *nearest_scheme(const char *scheme)
{
    static const char *const schemes[] = {
        "sqlite",          "memory", "redis",   "rediss",   "redis+unix", "redis+sentinel",
        "rediss+sentinel", "mysql",  "mariadb", "postgres", "postgresql", "zookeeper"};
    const char *best = NULL;
    size_t least = SCHEME_NEAR + 1;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t edits = text_distance(scheme, schemes[i]);
        if (edits < least) {
            least = edits;
            best = schemes[i];
        }
    }
    return best;
}

static void say_missing(const char *scheme, const char *name, const char *path, char *why,
                        size_t why_size)
{
    const char *store = store_of(name), *near;
    if (store != NULL)
        snprintf(why, why_size,
                 "the store for '%s:' is not installed: there is no %.300s, nor one beside "
                 "libsimba. On Debian install simba-%s; else build with %s among SIMBA_STORES "
                 "(SIMBA_MODULE_PATH names another folder)",
                 scheme, path, store, store);
    else if ((near = nearest_scheme(scheme)) != NULL)
        snprintf(why, why_size, "no store for URLs with '%s:'; did you mean %s:?", scheme, near);
    else
        snprintf(why, why_size,
                 "no store for URLs with '%s:': there are sqlite:, redis:, mysql:, mariadb:, "
                 "postgresql:, zookeeper: and memory:, and no module simba-%s.so",
                 scheme, name);
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
    if (serves(b, scheme))
        return b;
    snprintf(why, why_size, "%.300s does not serve URLs with '%s:'", path, scheme);
    return NULL;
}

/* ---- where it is --------------------------------------------------------------------------- */

/* The file that this code is in: libsimba.so, or the program. False: it is not known for sure. */
static bool find_ourselves(char path[PATH_MAX], bool *is_program)
{
    static const char here;
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    *is_program = map->l_name[0] == '\0';
    if (!*is_program && map->l_name[0] != '/')
        return false; /* relative to a folder that may be another by now */
    return realpath(*is_program ? "/proc/self/exe" : map->l_name, path) != NULL;
}

static bool is_trusted(const char *folder, uid_t owner)
{
    struct stat st;
    return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & S_IWOTH) == 0 &&
           (st.st_uid == 0 || st.st_uid == owner);
}

static bool has_module(const char *folder, const char *name, char path[MODULE_PATH_MAX])
{
    int n = snprintf(path, MODULE_PATH_MAX, "%s/simba-%s.so", folder, name);
    return n > 0 && n < MODULE_PATH_MAX && access(path, F_OK) == 0;
}

static bool find_beside_us(const char *name, char path[MODULE_PATH_MAX])
{
    /* installed, and in the folder of a build */
    static const char *const of_library[] = {"simba", "modules", NULL};
    /* in the folder of a build, or one below it; installed as bin/PROGRAM or libexec/simba/PROGRAM */
    static const char *const of_program[] = {"modules", "../modules", "../" SIMBA_LIBDIR "/simba",
                                             "../../" SIMBA_LIBDIR "/simba", NULL};
    char ourselves[PATH_MAX], folder[PATH_MAX + 48];
    bool is_program;
    struct stat st;
    if (!find_ourselves(ourselves, &is_program) || stat(ourselves, &st) != 0)
        return false;
    *strrchr(ourselves, '/') = '\0';
    const char *const *relative = is_program ? of_program : of_library;
    for (; *relative != NULL; relative++) {
        snprintf(folder, sizeof folder, "%s/%s", ourselves, *relative);
        if (has_module(folder, name, path) && is_trusted(folder, st.st_uid))
            return true;
    }
    return false;
}

static bool find_file(const char *name, char path[MODULE_PATH_MAX])
{
    const char *folder = secure_getenv("SIMBA_MODULE_PATH");
    if (folder != NULL && folder[0] == '/')
        return has_module(folder, name, path);
    if (getauxval(AT_SECURE) == 0 && find_beside_us(name, path))
        return true;
    return has_module(SIMBA_MODULE_DIR, name, path);
}

/* 0 or an errno, which dlopen does not keep. */
static int try_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int find_module(const char *scheme, const struct simba_backend **out, char *why,
                       size_t why_size)
{
    char name[SCHEME_MAX + 1], path[MODULE_PATH_MAX];
    size_t length = strcspn(scheme, "+"); /* the scheme is [a-z][a-z0-9+]*, as url.c has seen */
    if (length > SCHEME_MAX) {
        snprintf(why, why_size, "no store for URLs with '%.40s...:'", scheme);
        return SIMBA_EMODULE;
    }
    memcpy(name, scheme, length);
    name[length] = '\0';
    if (!find_file(name, path)) {
        say_missing(scheme, name, path, why, why_size);
        return SIMBA_EMODULE;
    }
    int error = try_file(path);
    if (errno_is_limit(error)) {
        snprintf(why, why_size, "the store for '%s:' cannot be loaded: %s", scheme,
                 errno_text(error));
        return SIMBA_ELIMIT;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == NULL) {
        const char *text = dlerror();
        snprintf(why, why_size, "the store for '%s:' cannot be loaded: %.400s", scheme,
                 text != NULL ? text : path);
        return SIMBA_EMODULE;
    }
    *out = ask_module(module, scheme, path, why, why_size);
    return *out != NULL ? 0 : SIMBA_EMODULE;
}

int registry_find(const char *scheme, const struct simba_backend **out, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (serves(built_in[i], scheme)) {
            *out = built_in[i];
            return 0;
        }
    }
    return find_module(scheme, out, why, why_size);
}
