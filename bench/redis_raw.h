/* redis_raw.h: the redis: store by hand: a program that blocks in hiredis, with the same
 * scripts. What it leaves out is what the library adds: renewal, deadlines, reconnecting,
 * waiting that survives whatever others do. And a private server for both, on the core where all
 * runs. */
#ifndef BENCH_REDIS_RAW_H
#define BENCH_REDIS_RAW_H

#include <hiredis/hiredis.h>

#include "backend/redis/acquire_lua.h"
#include "backend/redis/release_lua.h"
#include "backend/redis/reserved_lua.h"
#include "backend/redis/token_lua.h"
#include "backend/redis/wake_lua.h"
#include "rival.h"

#define RAW_LEASE "16000"

/* ---- the server ---------------------------------------------------------------------------- */

static char redis_folder[] = "/tmp/simba-bench-XXXXXX";
static char redis_socket[64];
static int redis_port;

static inline redisContext *redis_dial(void)
{
    redisContext *c = redisConnect("127.0.0.1", redis_port);
    return c != NULL && c->err == 0 ? c : NULL;
}

static inline redisReply *redis_run(redisContext *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *r = redisvCommand(c, format, args);
    va_end(args);
    if (r == NULL || r->type == REDIS_REPLY_ERROR)
        bench_die("redis: %s", r != NULL ? r->str : c->errstr);
    return r;
}

static inline void redis_clean(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/log", redis_folder);
    unlink(path);
    rmdir(redis_folder);
}

/* It ends with this process. */
static inline void redis_serve(int core)
{
    char port[16];
    static char modules[LOCATION_MAX];
    ssize_t n = readlink("/proc/self/exe", modules, sizeof modules - 16);
    for (int up = 0; n > 0 && up < 2; n--)
        up += modules[n - 1] == '/';
    snprintf(modules + (n > 0 ? n : 0), 16, "/modules");
    setenv("SIMBA_MODULE_PATH", modules, 0);
    if (mkdtemp(redis_folder) == NULL)
        bench_die("cannot make %s: %s", redis_folder, strerror(errno));
    atexit(redis_clean);
    redis_port = 20000 + (int)getpid() % 20000;
    snprintf(port, sizeof port, "%d", redis_port);
    snprintf(redis_socket, sizeof redis_socket, "%s/log", redis_folder);
    pid_t parent = getpid(), server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        bench_pin(core);
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
               "--appendonly", "no", "--dir", redis_folder, "--logfile", redis_socket,
               (char *)NULL);
        _exit(127);
    }
    redisContext *c = NULL;
    for (int i = 0; i < 500 && c == NULL; i++) {
        if (waitpid(server, NULL, WNOHANG) == server)
            bench_die("redis-server is missing, or cannot start on port %d", redis_port);
        bench_sleep(10000000);
        c = redis_dial();
    }
    if (c == NULL)
        bench_die("redis-server does not answer");
    redisFree(c);
}

static inline void redis_begin(char location[LOCATION_MAX])
{
    if (redis_port == 0)
        redis_serve(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0);
    redisContext *c = redis_dial();
    if (c == NULL)
        bench_die("the server is gone");
    freeReplyObject(redis_run(c, "FLUSHALL"));
    redisFree(c);
    snprintf(location, LOCATION_MAX, "redis://127.0.0.1:%d?restart_guard=off", redis_port);
}

static inline void redis_end(const char *location)
{
    (void)location;
}

/* ---- by hand ------------------------------------------------------------------------------- */

enum raw_script { RAW_ACQUIRE, RAW_RELEASE, RAW_RENEW, RAW_ONE, RAW_SCRIPTS };

struct raw_redis {
    redisContext *c, *subscriber; /* for commands; for messages, NULL: nobody waits */
    char sha[RAW_SCRIPTS][48];
    char mutex[32], id[64], key[4][64], token[32];
};

static inline void raw_redis_load(struct raw_redis *r, enum raw_script which, const char *before,
                                  const char *body)
{
    char text[8192];
    snprintf(text, sizeof text, "%s%s%s", reserved_lua, before, body);
    redisReply *reply = redis_run(r->c, "SCRIPT LOAD %s", text);
    snprintf(r->sha[which], sizeof r->sha[which], "%s", reply->str);
    freeReplyObject(reply);
}

static inline void raw_redis_name(struct raw_redis *r, const char *mutex)
{
    static const char *const part[] = {"", ":contender", ":fence", ":token"};
    snprintf(r->mutex, sizeof r->mutex, "%s", mutex);
    for (int i = 0; i < 4; i++)
        snprintf(r->key[i], sizeof r->key[i], "simba:{%s}%s", mutex, part[i]);
    snprintf(r->id, sizeof r->id, "0:%d@127.0.0.1-3f9a2c7e", (int)getpid()); /* as long as ours */
}

static inline void *raw_redis_open(const char *location, const char *mutex, _Atomic uint32_t *futex)
{
    struct raw_redis *r = calloc(1, sizeof *r);
    (void)location;
    if (r == NULL || (r->c = redis_dial()) == NULL)
        bench_die("cannot connect by hand");
    raw_redis_name(r, mutex);
    /* Without the look at the server's epoch, which is a price of safety. */
    char before[4096];
    snprintf(before, sizeof before, "local function same_epoch() return true end\n%s", token_lua);
    raw_redis_load(r, RAW_ACQUIRE, before, acquire_lua);
    raw_redis_load(r, RAW_RELEASE, wake_lua, release_lua);
    if (futex != NULL) {
        r->subscriber = redis_dial();
        freeReplyObject(redis_run(r->subscriber, "SUBSCRIBE simba:{%s}:%s", mutex, r->id));
    }
    return r;
}

static inline void raw_redis_ask(struct raw_redis *r, enum raw_script which)
{
    const char *acquire[] = {"EVALSHA", r->sha[which], "5", "simba:epoch", r->key[0], r->key[1],
                             r->key[2], r->key[3],     "",  r->id,         RAW_LEASE, "",
                             "0"};
    const char *release[] = {"EVALSHA", r->sha[which], "3",      r->key[0], r->key[1],
                             r->key[3], r->id,         r->token, "",        ""};
    if (which == RAW_ACQUIRE)
        redisAppendCommandArgv(r->c, 13, acquire, NULL);
    else
        redisAppendCommandArgv(r->c, 10, release, NULL);
}

/* True: acquired or released. */
static inline bool raw_redis_hear(struct raw_redis *r, enum raw_script which)
{
    redisReply *reply = NULL;
    if (redisGetReply(r->c, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
        bench_die("by hand: %s", reply != NULL && reply->str != NULL ? reply->str : r->c->errstr);
    bool done = reply->type != REDIS_REPLY_ARRAY;
    if (which == RAW_ACQUIRE && done)
        snprintf(r->token, sizeof r->token, "%s", reply->str);
    freeReplyObject(reply);
    return done;
}

static inline void raw_redis_acquire(void *one)
{
    struct raw_redis *r = one;
    for (;;) {
        raw_redis_ask(r, RAW_ACQUIRE);
        if (raw_redis_hear(r, RAW_ACQUIRE))
            return;
        redisReply *message = NULL;
        if (r->subscriber == NULL)
            bench_die("the mutex is not free");
        if (redisGetReply(r->subscriber, (void **)&message) != REDIS_OK)
            bench_die("by hand: %s", r->subscriber->errstr);
        freeReplyObject(message);
    }
}

static inline void raw_redis_release(void *one)
{
    struct raw_redis *r = one;
    raw_redis_ask(r, RAW_RELEASE);
    if (!raw_redis_hear(r, RAW_RELEASE))
        bench_die("the mutex was lost");
}

static inline void raw_redis_close(void *one)
{
    struct raw_redis *r = one;
    redisFree(r->c);
    if (r->subscriber != NULL)
        redisFree(r->subscriber);
    free(r);
}

static const struct contest redis_contest = {
    .raw = {raw_redis_open, raw_redis_acquire, raw_redis_release, raw_redis_close},
    .begin = redis_begin,
    .end = redis_end,
};

/* ---- what the server counts ---------------------------------------------------------------- */

static inline double redis_info(const char *section, const char *name)
{
    redisContext *c = redis_dial();
    redisReply *r = redis_run(c, "INFO %s", section);
    const char *at = strstr(r->str, name);
    double value = at != NULL ? strtod(at + strlen(name), NULL) : 0;
    freeReplyObject(r);
    redisFree(c);
    return value;
}
#endif
