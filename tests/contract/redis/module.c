/* module.c: the store by its own interface: what the library has no call for, and how its file
 * is found. */
#include <dlfcn.h>
#include <simba/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "core/url.h"
#include "server.h"

/* ---- a host -------------------------------------------------------------------------------- */

static struct {
    struct simba_host host;
    uv_loop_t loop;
    const struct simba_backend *backend;
    void *store;
    int open; /* requests */
    int lost, granted, odd;
    bool closed;
    struct simba_watched watched; /* the one that is, by its name */
    bool observes_all;
    struct simba_answer last;
    char id[SIMBA_ID_MAX + 1], found[2048], hinted[1024]; /* MUTEX/ID, one after the other */
} me;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    (void)host;
    me.last = *answer;
    me.lost += answer->code == SIMBA_ELOST;
    me.odd += answer->code == SIMBA_ESCHEMA;
    me.granted += answer->granted;
    q->token = answer->token;
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
    snprintf(me.found + n, sizeof me.found - n, "%s/%s%s/%lld ", found->mutex, found->id,
             found->evicted ? "!" : "", (long long)found->waiters);
}

static void on_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    (void)host;
    size_t n = strlen(me.hinted);
    snprintf(me.hinted + n, sizeof me.hinted - n, "%s/%s ", mutex, id);
}

static void on_hint(struct simba_host *host, const char *mutex)
{
    on_hint_one(host, mutex != NULL ? mutex : "any", "all");
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

static enum simba_interest on_interest(struct simba_host *host, const char *mutex)
{
    (void)host;
    CHECK(mutex != NULL && mutex[0] == '\0');
    return me.observes_all ? SIMBA_OBSERVES : SIMBA_NO_INTEREST;
}

static void on_watched(struct simba_host *host, const char *mutex, simba_watched_fn *each,
                       void *data)
{
    (void)host;
    if (me.watched.mutex != NULL && strcmp(mutex, me.watched.mutex) == 0)
        each(data, &me.watched);
}

static void watch(const char *mutex, enum simba_interest interest)
{
    if (mutex == NULL)
        me.observes_all = interest == SIMBA_OBSERVES;
    else
        me.watched = (struct simba_watched){.mutex = mutex, .interest = interest};
    me.backend->watch(me.store, mutex, interest);
}

static void open_store(const struct simba_url *url)
{
    char why[256], path[512];
    const char *folder = getenv("SIMBA_MODULE_PATH");
    if (folder == NULL)
        suite_skip("needs SIMBA_MODULE_PATH");
    bool tls = strcmp(simba_url_scheme(url), "rediss") == 0;
    snprintf(path, sizeof path, "%s/%s", folder, tls ? "simba-rediss.so" : "simba-redis.so");
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
                                  .closed = on_closed,
                                  .interest = on_interest,
                                  .watched = on_watched};
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

/* All of them in one batch, with their answers' tokens. */
static void ask_all(struct simba_request *q, int count)
{
    for (int i = 0; i < count; i++) {
        q[i].ttl_ms = 20000;
        q[i].transition_ms = 10000;
        q[i].next = i + 1 < count ? &q[i + 1] : NULL;
    }
    me.open = count;
    me.lost = me.granted = me.odd = 0;
    me.backend->submit(me.store, q);
    while (me.open > 0)
        uv_run(&me.loop, UV_RUN_ONCE);
    CHECK(!me.last.more);
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
    run(&server, "SET simba:other value");
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
    end();
}

static int evict_id(const char *mutex, const char *id, uint64_t token, bool forced)
{
    return ask((struct simba_request){
        .op = SIMBA_EVICT, .mutex = mutex, .id = id, .token = token, .forced = forced});
}

/* Another id, or another token, is another tenure. */
static void redis_evict_id(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000"); /* 3.1 knows no tokens */
    CHECK(evict_id("m", "0:2@jvm", 0, true) == SIMBA_ELOST);
    CHECK(evict_id("m", "0:1@jvm", 7, true) == SIMBA_ELOST);
    CHECK(evict_id("m", "0:1@jvm", 0, true) == 0);
    CHECK(run_number(&server, "EXISTS simba:{m}") == 0);
    CHECK(contend("m", "one") == 0 && me.last.granted);
    uint64_t token = me.last.token;
    CHECK(evict_id("m", "two", token, false) == SIMBA_ELOST);
    CHECK(evict_id("m", "one", token, false) == 0);
    CHECK(evict_id("m", "one", token, false) == 0);
    CHECK(evict_id("m", "one", token, true) == 0);
    end();
}

/* What both JVM clients ask before they renew, and what 4.x then takes for its token. */
#define JVM_RENEW                                                                           \
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end return redis.call('GET', " \
    "KEYS[2])"

/* T89: a JVM owner's next renewal fails, its token stays what it is, nobody else gets the mutex. */
static void redis_evict_jvm(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    run(&server, "SET simba:{m}:token 7 PX 60000");
    run(&server, "SET simba:{m}:fence 7");
    CHECK(run_number(&server, "EVAL %s 2 simba:{m} simba:{m}:token 0:1@jvm", JVM_RENEW) == 7);
    CHECK(evict("m", 0, false) == 0);
    CHECK(run_number(&server, "EVAL %s 2 simba:{m} simba:{m}:token 0:1@jvm", JVM_RENEW) == -1);
    CHECK(run_number(&server, "GET simba:{m}:token") == 7);
    CHECK(run_number(&server, "PTTL simba:{m}") > 30000);
    CHECK(run(&server, "SET simba:{m} 0:2@jvm NX PX 1000")->type == REDIS_REPLY_NIL);
    CHECK(tenure(SIMBA_READ, "m", "", 0) == 0 && strcmp(me.id, "0:1@jvm") == 0);
    CHECK(me.last.evicted && me.last.token == 7);
    CHECK(contend("m", "one") == 0 && !me.last.granted && strcmp(me.id, "0:1@jvm") == 0);
    CHECK(me.last.evicted && me.last.left_ms > 0);
    CHECK(strcmp(list("m"), "m/0:1@jvm!/1 ") == 0);
    end();
}

/* Owners of JVM Simba 4.x count the fence up by one; what was counted before us is less than any clock, or more (T88). */
static void redis_tokens_beside_jvm(void)
{
    static const char *const before[] = {"7", "1700000000000000", "4000000000000000"};
    begin();
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        run(&server, "SET simba:{m}:fence %s", before[i]);
        uint64_t last = strtoull(before[i], NULL, 10);
        for (int turn = 0; turn < 3; turn++) {
            CHECK(contend("m", "one") == 0 && me.last.granted && me.last.token > last);
            last = me.last.token;
            CHECK((uint64_t)run_number(&server, "GET simba:{m}:fence") == last);
            CHECK(tenure(SIMBA_RELEASE, "m", "one", last) == 0);
            CHECK((uint64_t)run_number(&server, "INCR simba:{m}:fence") == ++last);
        }
    }
    end();
}

/* T90: ids that nobody here would give are those of owners with a lease. */
static void redis_foreign_ids(void)
{
    char id[513], shown[SIMBA_ID_MAX + 1];
    begin();
    memset(id, 'x', 512);
    id[512] = '\0';
    memcpy(id + 123, "\xc3\xa4", 2); /* across the place where it is cut */
    id[0] = '\xff';
    snprintf(shown, sizeof shown, "?%.122s\xc3\xa4\xe2\x80\xa6", id + 1);
    CHECK(strlen(shown) == SIMBA_ID_MAX);
    run(&server, "SET simba:{m} %s PX 60000", id);
    run(&server, "SET simba:{m}:token 7 PX 60000");
    CHECK(tenure(SIMBA_READ, "m", "", 0) == 0 && strcmp(me.id, shown) == 0);
    CHECK(contend("m", "one") == 0 && !me.last.granted && strcmp(me.id, shown) == 0);
    CHECK(me.last.left_ms > 30000 && strstr(list("m"), "x\xc3\xa4\xe2\x80\xa6/1") != NULL);
    CHECK(evict_id("m", "?", 0, false) == SIMBA_ELOST);
    CHECK(evict_id("m", shown, 7, false) == 0); /* as it was shown */
    CHECK(tenure(SIMBA_READ, "m", "", 0) == 0 && me.last.evicted && strcmp(me.id, shown) == 0);
    CHECK(evict_id("m", shown, 7, true) == 0);
    CHECK(run_number(&server, "EXISTS simba:{m}") == 0);
    run(&server, "SET simba:{m} %b PX 60000", "a\0b", (size_t)3);
    CHECK(tenure(SIMBA_READ, "m", "", 0) == 0 && strcmp(me.id, "a?b") == 0);
    end();
}

static void await_hint(const char *want)
{
    AWAIT((uv_run(&me.loop, UV_RUN_NOWAIT), strstr(me.hinted, want) != NULL));
    me.hinted[0] = '\0';
}

/* T33: who is refused tries again when it hears, though nothing has changed by then. */
static void redis_tries_again(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    await_hint("m/one");
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    CHECK(run_number(&server, "PUBLISH simba:{m}:one released@@0:1@jvm") == 1);
    await_hint("m/one");
    end();
}

/* Whoever gives up passes on the wake-up that it has swallowed. */
static void redis_leaves(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    CHECK(contend("m", "one") == 0 && contend("m", "two") == 0);
    await_hint("m/two");
    CHECK(contend("m", "two") == 0 && !me.last.granted);
    run(&server, "DEL simba:{m}");
    CHECK(strcmp(run(&server, "ZPOPMIN simba:{m}:contender")->element[0]->str, "one") == 0);
    CHECK(tenure(SIMBA_LEAVE, "m", "one", 0) == 0 && me.id[0] == '\0');
    await_hint("m/two");
    CHECK(run_number(&server, "ZCARD simba:{m}:contender") == 0);
    /* It keeps its place if another was faster. */
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    CHECK(contend("m", "three") == 0 && contend("m", "two") == 0);
    CHECK(run_number(&server, "ZRANK simba:{m}:contender two") == 0);
    CHECK(run_number(&server, "ZRANK simba:{m}:contender three") == 1);
    end();
}

/* Who observes hears of every change, of one mutex or of all. */
static void redis_observes(void)
{
    begin();
    CHECK(contend("m", "one") == 0 && me.last.granted);
    uint64_t token = me.last.token;
    watch("m", SIMBA_OBSERVES);
    await_hint("m/all"); /* it listens from now on, and may have missed something */
    CHECK(tenure(SIMBA_RELEASE, "m", "one", token) == 0);
    await_hint("m/all");
    CHECK(contend("m", "two") == 0 && me.last.granted);
    await_hint("m/all");
    watch("m", SIMBA_NO_INTEREST);
    watch(NULL, SIMBA_OBSERVES);
    await_hint("any/all");
    CHECK(contend("another", "one") == 0 && me.last.granted);
    await_hint("another/all");
    end();
}

/* T97: who owns hears of an eviction, also of one that came before it could hear. */
static void redis_hears_eviction(void)
{
    begin();
    CHECK(contend("m", "one") == 0 && me.last.granted);
    await_hint("m/all"); /* it listens from now on, and may have missed something */
    CHECK(evict("m", 0, false) == 0);
    await_hint("m/all");
    CHECK(evict("m", 0, true) == 0);
    await_hint("m/all");
    end();
}

/* All renewals of a batch in one call, and each has its own answer. */
static void redis_batch(void)
{
    enum { MANY = 300 };
    static struct simba_request q[MANY];
    static char name[MANY][16];
    begin();
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "m%d", i);
        CHECK(contend(name[i], "one") == 0 && me.last.granted);
        q[i] = (struct simba_request){.op = SIMBA_RENEW,
                                      .mutex = name[i],
                                      .id = "one",
                                      .token = me.last.token + (i == 7),
                                      .ttl_ms = 20000,
                                      .next = i + 1 < MANY ? &q[i + 1] : NULL};
    }
    long long calls = server_calls(&server, "evalsha") + server_calls(&server, "eval");
    me.open = MANY;
    me.lost = 0;
    me.backend->submit(me.store, q);
    while (me.open > 0)
        uv_run(&me.loop, UV_RUN_ONCE);
    CHECK(me.lost == 1); /* that with the wrong token */
    CHECK(!me.last.more);
    calls = server_calls(&server, "evalsha") + server_calls(&server, "eval") - calls;
    CHECK(calls >= 3 && calls <= 6); /* 128 each; at first the server does not know the script */
    end();
}

static long long calls(void)
{
    return server_calls(&server, "evalsha") + server_calls(&server, "eval");
}

/* Acquisitions of a batch are one call, and so are releases; each has its own answer. At first
 * all are free and wanted once; then one is wanted twice; then some are not free, or not ours. */
static void redis_batch_of_locks(void)
{
    enum { MANY = 100, HELD = 3, FOREIGN = 5, FENCE = 8, TWICE = 11, STALE = 17 };
    static struct simba_request q[MANY];
    static char name[MANY][16];
    begin();
    CHECK(tenure(SIMBA_READ, "m", "", 0) == 0); /* the connection is there */
    for (int round = 0; round < 3; round++) {
        bool twice = round > 0, odd = round == 2;
        for (int i = 0; i < MANY; i++) {
            snprintf(name[i], sizeof name[i], "m%d", twice && i == TWICE ? TWICE + 1 : i);
            q[i] = (struct simba_request){.op = SIMBA_CONTEND, .mutex = name[i], .id = "one"};
        }
        q[TWICE].id = "two";
        if (odd) {
            run(&server, "SET simba:{m3} other PX 60000");
            run(&server, "RPUSH simba:{m5} something");
            run(&server, "SET simba:{m8}:fence many");
            run(&server, "ZADD simba:{m13}:contender 1 one 2 other");
        }
        long long before = calls();
        ask_all(q, MANY);
        CHECK(calls() - before <= (odd ? 5 : 2)); /* at first the server does not know the script */
        CHECK(me.granted == MANY - (odd ? 4 : twice ? 1 : 0));
        CHECK(me.odd == (odd ? 2 : 0));
        for (int i = 0; i < MANY; i++) {
            bool free = !odd || (i != HELD && i != FOREIGN && i != FENCE);
            if (free)
                CHECK((uint64_t)run_number(&server, "GET simba:{%s}:token", name[i]) == q[i].token);
            q[i].op = SIMBA_RELEASE;
        }
        CHECK(strcmp(run(&server, "GET simba:{m12}")->str, twice ? "two" : "one") == 0);
        CHECK(run_number(&server, "ZCARD simba:{m12}:contender") == twice);
        if (odd) {
            CHECK(strcmp(run(&server, "GET simba:{m3}")->str, "other") == 0);
            CHECK(run_number(&server, "LLEN simba:{m5}") == 1);
            CHECK(run_number(&server, "EXISTS simba:{m8} simba:{m8}:token") == 0);
            CHECK(run_number(&server, "ZCARD simba:{m13}:contender") == 1);
            CHECK(run_number(&server, "EXISTS simba:{m5}:contender") == 0);
        }
        q[STALE].token++;
        before = calls();
        ask_all(q, MANY);
        CHECK(calls() - before <= 3);
        /* Not what another owns, nor by another token. */
        CHECK(me.lost == (odd ? 4 : twice ? 2 : 1));
        CHECK(me.odd == (odd ? 1 : 0));
        CHECK(run_number(&server, "EXISTS simba:{m17} simba:{m17}:token") == 2);
        CHECK(run_number(&server, "EXISTS simba:{m0} simba:{m0}:token simba:{m12} simba:{m13}") ==
              0);
        CHECK(run_number(&server, "EXISTS simba:{m3} simba:{m5}") == (odd ? 2 : 0));
        run(&server, "DEL simba:{m17} simba:{m17}:token");
    }
    end();
}

/* A release twice in a batch is one release; and it does not pass an acquisition of its own handle. */
static void redis_batch_order(void)
{
    begin();
    static const char id[] = "one";
    CHECK(contend("m", id) == 0 && me.last.granted);
    uint64_t token = me.last.token;
    struct simba_request q[4] = {
        {.op = SIMBA_RELEASE, .mutex = "m", .id = id, .token = token},
        {.op = SIMBA_RELEASE, .mutex = "m", .id = id, .token = token},
        {.op = SIMBA_CONTEND, .mutex = "n", .id = id},
        {.op = SIMBA_CONTEND, .mutex = "m", .id = "two"},
    };
    ask_all(q, 4);
    CHECK(me.lost == 1 && me.granted == 2);
    CHECK(strcmp(run(&server, "GET simba:{m}")->str, "two") == 0);
    run(&server, "DEL simba:{m} simba:{m}:token");
    CHECK(tenure(SIMBA_RELEASE, "m", id, 1) == SIMBA_ELOST); /* the server knows the script now */
    run(&server,
        "SET simba:{m}:fence 4000000000000000"); /* above the clock: the next one is sure */
    token = 4000000000000001;
    struct simba_request r[2] = {
        {.op = SIMBA_CONTEND, .mutex = "m", .id = id},
        {.op = SIMBA_RELEASE, .mutex = "m", .id = id, .token = token},
    };
    ask_all(r, 2);
    CHECK(me.granted == 1 && me.lost == 0);
    CHECK(run_number(&server, "EXISTS simba:{m}") == 0);
    end();
}

/* T35: nothing that is done to a mutex touches what is not ours, nor leaves anything beside it. */
static void redis_foreign_untouched(void)
{
    static const char *const make[] = {"SET simba:{m} something", "RPUSH simba:{m} something",
                                       "HSET simba:{m} some thing"};
    begin();
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        char before[256];
        run(&server, make[i]);
        const redisReply *r = run(&server, "DUMP simba:{m}");
        CHECK(r->type == REDIS_REPLY_STRING && r->len < sizeof before);
        size_t length = r->len;
        memcpy(before, r->str, length);
        CHECK(contend("m", "one") == SIMBA_ESCHEMA);
        CHECK(contend("m", "something") == SIMBA_ESCHEMA);
        CHECK(tenure(SIMBA_READ, "m", "", 0) == SIMBA_ESCHEMA);
        CHECK(tenure(SIMBA_RENEW, "m", "something", 1) < 0);
        CHECK(evict("m", 0, false) < 0);
        CHECK(evict("m", 0, true) < 0);
        int code = tenure(SIMBA_RELEASE, "m", "something", 1);
        CHECK(code == SIMBA_ELOST || code == SIMBA_ESCHEMA);
        tenure(SIMBA_LEAVE, "m", "something", 0);
        struct simba_request q[2] = {
            {.op = SIMBA_CONTEND, .mutex = "m", .id = "one"},
            {.op = SIMBA_CONTEND, .mutex = "m", .id = "two"},
        };
        ask_all(q, 2);
        CHECK(me.odd == 2);
        r = run(&server, "DUMP simba:{m}");
        CHECK(r->type == REDIS_REPLY_STRING && r->len == length);
        CHECK(memcmp(r->str, before, length) == 0);
        CHECK(run_number(&server, "PTTL simba:{m}") == -1);
        CHECK(run_number(&server, "DBSIZE") == 2); /* no queue, no token, no fence */
        run(&server, "DEL simba:{m}");
    }
    end();
}

/* The message that it is free comes while one asks who has waited before, and before its answer:
 * it is about to wait, and may be the first now, whatever it was then. */
static void redis_heard_while_asking(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    run(&server, "ZADD simba:{m}:contender 1 another");
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    await_hint("m/one"); /* it hears */
    CHECK(contend("m", "one") == 0);
    CHECK(run_number(&server, "ZRANK simba:{m}:contender one") == 1);
    CHECK(tenure(SIMBA_LEAVE, "m", "one", 0) == 0);
    CHECK(run_number(&server, "PUBLISH simba:{m} released@@0:1@jvm") == 1);
    run(&server, "PING"); /* it is in a later turn of the server's: the message has been sent */
    uv_run(&me.loop, UV_RUN_NOWAIT);
    CHECK(me.hinted[0] == '\0'); /* nobody waits */
    CHECK(run_number(&server, "PUBLISH simba:{m} released@@0:1@jvm") == 1);
    run(&server, "PING"); /* it has come, and is not read yet */
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    CHECK(strcmp(me.hinted, "m/one ") == 0);
    end();
}

/* Who owns it and has nobody beside it who waits does not listen. But who then observes, or
 * waits, does. */
static void redis_listens_again(void)
{
    begin();
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    await_hint("m/one");
    run(&server, "DEL simba:{m}");
    CHECK(contend("m", "one") == 0 && me.last.granted);
    uint64_t token = me.last.token;
    AWAIT((uv_run(&me.loop, UV_RUN_NOWAIT),
           run(&server, "PUBSUB NUMSUB simba:{m}")->element[1]->integer == 0));
    watch("m", SIMBA_OBSERVES);
    await_hint("m/all");
    CHECK(run_number(&server, "PUBLISH simba:{m} released@@one") == 1);
    await_hint("m/all");
    watch("m", SIMBA_WAITS);
    CHECK(tenure(SIMBA_RELEASE, "m", "one", token) == 0);
    CHECK(contend("m", "one") == 0 && me.last.granted);
    token = me.last.token;
    AWAIT((uv_run(&me.loop, UV_RUN_NOWAIT),
           run(&server, "PUBSUB NUMSUB simba:{m}")->element[1]->integer == 0));
    CHECK(tenure(SIMBA_RELEASE, "m", "one", token) == 0);
    run(&server, "SET simba:{m} 0:1@jvm PX 60000");
    me.hinted[0] = '\0';
    CHECK(contend("m", "one") == 0 && !me.last.granted);
    await_hint("m/one"); /* something may have been said before it listened */
    CHECK(run_number(&server, "PUBLISH simba:{m} released@@0:1@jvm") == 1);
    end();
}

/* How the file of a store is found, and what is said if it is not. */
static void redis_module_missing(void)
{
    simba_client *s = NULL;
    folder_make();
    CHECK(setenv("SIMBA_MODULE_PATH", folder_path(""), 1) == 0);
    CHECK_REFUSED(simba_open("redis://h", NULL, &s), SIMBA_EMODULE, "install simba-redis;");
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

/* The module without TLS does not stand in for the one with it, under whatever name it lies there. */
static void redis_module_without_tls(void)
{
    char path[512];
    simba_client *s = NULL;
    const char *modules = getenv("SIMBA_MODULE_PATH");
    if (modules == NULL)
        suite_skip("needs SIMBA_MODULE_PATH");
    folder_make();
    snprintf(path, sizeof path, "%s/simba-redis.so", modules);
    CHECK(symlink(path, folder_path("simba-rediss.so")) == 0);
    CHECK(setenv("SIMBA_MODULE_PATH", folder_path(""), 1) == 0);
    CHECK_REFUSED(simba_open("rediss://h", NULL, &s), SIMBA_EMODULE, "does not serve");
    folder_remove();
}

const struct test redis_module_tests[] = {
    {"redis_list", redis_list, REDIS_ONLY, 0},
    {"redis_evict", redis_evict, REDIS_ONLY, 0},
    {"redis_evict_id", redis_evict_id, REDIS_ONLY, 0},
    {"redis_tokens_beside_jvm", redis_tokens_beside_jvm, REDIS_ONLY, 0},
    {"redis_evict_jvm", redis_evict_jvm, REDIS_ONLY, 0},
    {"redis_foreign_ids", redis_foreign_ids, REDIS_ONLY, 0},
    {"redis_hears_eviction", redis_hears_eviction, REDIS_ONLY, 0},
    {"redis_tries_again", redis_tries_again, REDIS_ONLY, 0},
    {"redis_leaves", redis_leaves, REDIS_ONLY, 0},
    {"redis_observes", redis_observes, REDIS_ONLY, 0},
    {"redis_batch", redis_batch, REDIS_ONLY, 0},
    {"redis_batch_of_locks", redis_batch_of_locks, REDIS_ONLY, 0},
    {"redis_batch_order", redis_batch_order, REDIS_ONLY, 0},
    {"redis_foreign_untouched", redis_foreign_untouched, REDIS_ONLY, 0},
    {"redis_heard_while_asking", redis_heard_while_asking, REDIS_ONLY, 0},
    {"redis_listens_again", redis_listens_again, REDIS_ONLY, 0},
    {"redis_module_missing", redis_module_missing, REDIS_ONLY, 0},
    {"redis_module_without_tls", redis_module_without_tls, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
