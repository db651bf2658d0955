/* redis_module.c: the store by its own interface: what the library has no call for, and how its file
 * is found. */
#include <dlfcn.h>
#include <simba/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "core/url.h"
#include "peer.h"
#include "redis_server.h"
#include "suite.h"

/* ---- a host -------------------------------------------------------------------------------- */

static struct {
    struct simba_host host;
    uv_loop_t loop;
    const struct simba_backend *backend;
    void *store;
    int open; /* requests */
    bool closed;
    struct simba_answer last;
    char id[SIMBA_ID_MAX + 1], found[2048];
} me;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    (void)host;
    (void)q;
    me.last = *answer;
    snprintf(me.id, sizeof me.id, "%s", answer->id != NULL ? answer->id : "");
    me.open--;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* name/owner/waiters, in any order. */
static void on_found(struct simba_host *host, struct simba_request *q,
                     const struct simba_found *found)
{
    (void)host;
    (void)q;
    size_t n = strlen(me.found);
    CHECK(found->left_ms >= 0);
    snprintf(me.found + n, sizeof me.found - n, "%s/%s/%lld ", found->mutex, found->id,
             (long long)found->waiters);
}

static void on_hint(struct simba_host *host, const char *mutex)
{
    (void)host;
    (void)mutex;
}

static void on_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    (void)host;
    (void)mutex;
    (void)id;
}

static void on_log(struct simba_host *host, enum simba_level level, const char *line)
{
    (void)host;
    (void)level;
    (void)line;
}

static void on_closed(struct simba_host *host)
{
    (void)host;
    me.closed = true;
}

static void open_store(const struct simba_url *url)
{
    char why[256], path[512];
    const char *folder = getenv("SIMBA_MODULE_PATH");
    if (folder == NULL)
        suite_skip("needs SIMBA_MODULE_PATH");
    snprintf(path, sizeof path, "%s/simba-redis.so", folder);
    void *module = dlopen(path, RTLD_NOW);
    if (module == NULL)
        suite_fail(__FILE__, __LINE__, dlerror());
    const struct simba_backend *(*entry)(void);
    void *symbol = dlsym(module, SIMBA_MODULE_ENTRY);
    CHECK(symbol != NULL);
    memcpy(&entry, &symbol, sizeof entry);
    me.backend = entry();
    CHECK(me.backend->version == SIMBA_BACKEND_VERSION);
    CHECK(uv_loop_init(&me.loop) == 0);
    me.host = (struct simba_host){.version = SIMBA_BACKEND_VERSION,
                                  .loop = &me.loop,
                                  .connect_timeout_ms = 5000,
                                  .command_timeout_ms = 3000,
                                  .answer = on_answer,
                                  .found = on_found,
                                  .hint = on_hint,
                                  .hint_one = on_hint_one,
                                  .log = on_log,
                                  .closed = on_closed};
    if (me.backend->open(&me.host, url, &me.store, why, sizeof why) != 0)
        suite_fail(__FILE__, __LINE__, why);
}

static void close_store(void)
{
    me.backend->close(me.store);
    while (!me.closed)
        uv_run(&me.loop, UV_RUN_ONCE);
    uv_run(&me.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&me.loop) == 0);
}

static int ask(struct simba_request q)
{
    q.ttl_ms = 20000;
    q.transition_ms = 10000;
    me.open = 1;
    me.found[0] = '\0';
    me.backend->submit(me.store, &q);
    while (me.open > 0)
        uv_run(&me.loop, UV_RUN_ONCE);
    return me.last.code;
}

static int contend(const char *mutex, const char *id)
{
    return ask((struct simba_request){.op = SIMBA_CONTEND, .mutex = mutex, .id = id});
}

static int tenure(enum simba_op op, const char *mutex, const char *id, uint64_t token)
{
    return ask((struct simba_request){.op = op, .mutex = mutex, .id = id, .token = token});
}

static int evict(const char *mutex, uint64_t token, bool forced)
{
    return ask((struct simba_request){
        .op = SIMBA_EVICT, .mutex = mutex, .id = "", .token = token, .forced = forced});
}

/* What LIST finds, sorted. */
static const char *list(const char *prefix)
{
    static char out[sizeof me.found];
    char *word[64], *rest = NULL;
    size_t n = 0;
    CHECK(ask((struct simba_request){.op = SIMBA_LIST, .mutex = prefix, .id = ""}) == 0);
    for (char *w = strtok_r(me.found, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        CHECK(n < 64);
        word[n++] = w;
    }
    qsort(word, n, sizeof *word, compare);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s ", word[i]);
    return out;
}

/* ---- the cases ----------------------------------------------------------------------------- */

static struct server server;

/* The parser of URLs is not public, so this one is put together by hand. */
static void begin(void)
{
    static struct simba_url url = {
        .scheme = "redis+unix", .options = 1, .option = {{"restart_guard", "off"}}};
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    url.path = server.socket;
    open_store(&url);
}

static void end(void)
{
    close_store();
    server_end(&server);
    folder_remove();
}

static void redis_list(void)
{
    begin();
    CHECK(strcmp(list(""), "") == 0);
    CHECK(contend("a", "one") == 0 && me.last.granted);
    uint64_t token = me.last.token;
    CHECK(contend("a", "two") == 0 && !me.last.granted && strcmp(me.id, "one") == 0);
    CHECK(contend("a", "three") == 0);
    CHECK(contend("a*b", "one") == 0);
    CHECK(contend("a}:fence", "one") == 0);
    CHECK(contend("b", "one") == 0);
    run(&server, "SET simba:{foreign} value");
    run(&server, "RPUSH simba:{list} value");
    run(&server, "SET simba:promoted value");
    run(&server, "ZADD simba:{queue}:contender 1 x");
    CHECK(strcmp(list(""), "a*b/one/0 a/one/2 a}:fence/one/0 b/one/0 queue//1 ") == 0);
    CHECK(strcmp(list("a"), "a*b/one/0 a/one/2 a}:fence/one/0 ") == 0);
    CHECK(strcmp(list("a*"), "a*b/one/0 ") == 0);
    CHECK(strcmp(list("["), "") == 0);
    CHECK(tenure(SIMBA_LEAVE, "a", "three", 0) == 0);
    CHECK(strcmp(me.id, "one") == 0 && me.last.token == token);
    CHECK(strcmp(list("a}"), "a}:fence/one/0 ") == 0);
    run(&server, "DEBUG POPULATE 5000");
    CHECK(strcmp(list("a"), "a*b/one/0 a/one/1 a}:fence/one/0 ") == 0);
    end();
}

static void redis_evict(void)
{
    begin();
    CHECK(evict("m", 0, false) == SIMBA_ELOST);
    CHECK(contend("m", "one") == 0 && me.last.granted);
    uint64_t token = me.last.token;
    CHECK(evict("m", token + 1, false) == SIMBA_ELOST);
    CHECK(tenure(SIMBA_RENEW, "m", "one", token) == 0);
    CHECK(evict("m", token, false) == 0);
    CHECK(evict("m", 0, false) == 0); /* twice is once */
    CHECK(tenure(SIMBA_RENEW, "m", "one", token) == SIMBA_ELOST);
    CHECK(contend("m", "two") == 0 && !me.last.granted && strcmp(me.id, "one") == 0);
    CHECK(contend("m", "one") == 0 && !me.last.granted && me.last.token == 0);
    CHECK(tenure(SIMBA_RELEASE, "m", "one", token) == 0); /* it gives back the rest */
    CHECK(contend("m", "two") == 0 && me.last.granted && me.last.token > token);
    token = me.last.token;
    CHECK(evict("m", token, true) == 0);
    CHECK(tenure(SIMBA_RENEW, "m", "two", token) == SIMBA_ELOST);
    CHECK(contend("m", "three") == 0 && me.last.granted && me.last.token > token);
    run(&server, "SET simba:{jvm} 0:1@jvm PX 60000");
    CHECK(evict("jvm", 0, false) == SIMBA_EUNSUPPORTED);
    CHECK(evict("jvm", 0, true) == 0);
    CHECK(run_number(&server, "EXISTS simba:{jvm}") == 0);
    end();
}

/* How the file of a store is found, and what is said if it is not. */
static void redis_module_missing(void)
{
    simba *s = NULL;
    folder_make();
    CHECK(setenv("SIMBA_MODULE_PATH", folder_path(""), 1) == 0);
    CHECK_REFUSED(simba_open("redis://h", NULL, &s), SIMBA_EMODULE, "Install");
    CHECK_REFUSED(simba_open("rediss://h", NULL, &s), SIMBA_EMODULE, "simba-rediss.so");
    CHECK_REFUSED(simba_open("nothing://h", NULL, &s), SIMBA_EMODULE, "no store");
    CHECK_REFUSED(simba_open("nothing+more://h", NULL, &s), SIMBA_EMODULE, "simba-nothing.so");
    FILE *f = fopen(folder_path("simba-redis.so"), "we");
    CHECK(f != NULL && fputs("no library", f) > 0 && fclose(f) == 0);
    CHECK_REFUSED(simba_open("redis://h", NULL, &s), SIMBA_EMODULE, "cannot be loaded");
    CHECK(unlink(folder_path("simba-redis.so")) == 0);
    CHECK(symlink("/usr/lib/x86_64-linux-gnu/libuv.so.1", folder_path("simba-redis.so")) == 0);
    CHECK(simba_open("redis://h", NULL, &s) == SIMBA_EMODULE);
    folder_remove();
}

const struct test redis_module_tests[] = {
    {"redis_list", redis_list, REDIS_ONLY, 0},
    {"redis_evict", redis_evict, REDIS_ONLY, 0},
    {"redis_module_missing", redis_module_missing, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
