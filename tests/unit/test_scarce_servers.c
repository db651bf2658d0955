/* test_scarce_servers.c: memory and threads that end while a client of a server is opened, used
 * for the first time and closed. The stores are linked in, so that what their modules ask for
 * can fail, too. The server takes connections and never answers. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/client.h"
#include "unit/scarce.h"

static char url[256];

/* ---- stores that are not looked for in files ----------------------------------------------- */

#ifdef SCARCE_REDIS
extern const struct simba_backend redis_backend;
#endif
#ifdef SCARCE_MYSQL
extern const struct simba_backend mysql_backend;
#endif
#ifdef SCARCE_POSTGRES
extern const struct simba_backend postgres_backend;
#endif
#ifdef SCARCE_ZOOKEEPER
extern const struct simba_backend zookeeper_backend;
#endif

int __wrap_registry_find(const char *scheme, const struct simba_backend **out, char *why,
                         size_t why_size);

int __wrap_registry_find(const char *scheme, const struct simba_backend **out, char *why,
                         size_t why_size)
{
    static const struct simba_backend *const known[] = {
#ifdef SCARCE_REDIS
        &redis_backend,
#endif
#ifdef SCARCE_MYSQL
        &mysql_backend,
#endif
#ifdef SCARCE_POSTGRES
        &postgres_backend,
#endif
#ifdef SCARCE_ZOOKEEPER
        &zookeeper_backend,
#endif
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (const char *const *name = known[i]->schemes; *name != NULL; name++) {
            if (strcmp(*name, scheme) == 0) {
                *out = known[i];
                return 0;
            }
        }
    }
    snprintf(why, why_size, "no store for %s", scheme);
    return SIMBA_EMODULE;
}

/* ---- a short life -------------------------------------------------------------------------- */

static bool live(const char *word)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    simba_locker *l = NULL;
    o.log = log_line;
    o.command_timeout_ms = 100;
    if (make(simba_open(url, &o, &s), word) < 0) {
        MUST(s == NULL);
        return false;
    }
    if (make(simba_locker_create(s, "m", NULL, &l), word) == 0)
        MUST(say(simba_locker_acquire(l, 20), "") < 0);
    simba_locker_destroy(l);
    MUST(say(simba_close(s, PATIENCE_MS), "") == 0);
    return true;
}

static void memory_ends(void **state)
{
    (void)state;
    for_good = false;
    whatever_fails(&memory, live, "out of memory");
}

static void memory_ends_for_good(void **state)
{
    (void)state;
    for_good = true;
    whatever_fails(&memory, live, "out of memory");
}

static void threads_end(void **state)
{
    (void)state;
    for_good = true;
    whatever_fails(&threads, live, "cannot start a thread");
}

/* ---- the server ---------------------------------------------------------------------------- */

static int listener = -1;

/* The format has the port in it. */
static int use_url(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const char *format = *state, *port = strstr(format, "PORT");
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || port == NULL || bind(listener, (struct sockaddr *)&at, size) != 0 ||
        listen(listener, 1000) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        return -1;
    snprintf(url, sizeof url, "%.*s%d%s", (int)(port - format), format, (int)ntohs(at.sin_port),
             port + strlen("PORT"));
    return 0;
}

static int close_listener(void **state)
{
    (void)state;
    return close(listener);
}

#define ON_SERVER(at)                                                                \
    {at ": memory_ends", memory_ends, use_url, close_listener, (void *)(at)},        \
        {at ": memory_ends_for_good", memory_ends_for_good, use_url, close_listener, \
         (void *)(at)},                                                              \
    {                                                                                \
        at ": threads_end", threads_end, use_url, close_listener, (void *)(at)       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef SCARCE_REDIS
        ON_SERVER("redis://me:secret@127.0.0.1:PORT/1"),
        ON_SERVER("rediss://127.0.0.1:PORT?tls_verify=off"),
        ON_SERVER("redis+sentinel://127.0.0.1:PORT?master=main"),
#endif
#ifdef SCARCE_MYSQL
        ON_SERVER("mysql://me:secret@127.0.0.1:PORT/d"),
#endif
#ifdef SCARCE_POSTGRES
        ON_SERVER("postgresql://me:secret@127.0.0.1:PORT/d"),
#endif
#ifdef SCARCE_ZOOKEEPER
        ON_SERVER("zookeeper://me:secret@127.0.0.1:PORT/d"),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
