/* redis_hold.c: very many mutexes held at once, on one connection; what that costs the client, the
 * network and the server. And what a renewal costs the server, one to a call or many. */
#include "backend/redis/other_epoch_lua.h"
#include "backend/redis/renew_lua.h"
#include "redis_raw.h"

#define HELD 100000
#define TTL_MS 10000
#define GROUP 128

static _Atomic long acquired, lost;

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
    atomic_fetch_add(&acquired, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    if (state->reason != SIMBA_RELEASED)
        atomic_fetch_add(&lost, 1);
}

static double server_cpu_s(void)
{
    return redis_info("cpu", "used_cpu_user:") + redis_info("cpu", "used_cpu_sys:");
}

struct hold {
    const struct bench *bench;
    const char *location;
};

static void hold(void *arg)
{
    const struct hold *h = arg;
    simba_client *client = NULL;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.ttl_ms = TTL_MS;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    if (simba_open(h->location, NULL, &client) != 0)
        bench_die("%s", simba_error_text());
    int64_t began = bench_now();
    for (int i = 0; i < HELD; i++) {
        char mutex[32];
        simba_contender *c = NULL;
        snprintf(mutex, sizeof mutex, "held-%d", i);
        if (simba_contender_create(client, mutex, &o, &c) != 0 || simba_contender_start(c) != 0)
            bench_die("%s", simba_error_text());
    }
    while (atomic_load(&acquired) < HELD && bench_now() - began < INT64_C(60000000000))
        bench_sleep(10000000);
    printf("%-44s %10.1f s\n", "to acquire 100,000", (double)(bench_now() - began) / 1e9);
    bench_sleep(2000000000);
    double cpu = bench_cpu_s(), server = server_cpu_s();
    double in = redis_info("stats", "total_net_input_bytes:"),
           out = redis_info("stats", "total_net_output_bytes:");
    double calls = redis_info("commandstats", "cmdstat_evalsha:calls=");
    began = bench_now();
    bench_sleep(h->bench->run_ns);
    double s = (double)(bench_now() - began) / 1e9;
    calls = redis_info("commandstats", "cmdstat_evalsha:calls=") - calls;
    double ours = (bench_cpu_s() - cpu) / s * 100;
    server = (server_cpu_s() - server) / s * 100;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("%-44s %10ld, acquired %ld\n", "lost", atomic_load(&lost), atomic_load(&acquired));
    printf("%-44s %10.1f %% of a core\n", "client", ours);
    printf("%-44s %10.1f %% of a core\n", "server", server);
    printf("%-44s %10.0f in, %.0f out\n", "bytes per mutex and second, at the server",
           (redis_info("stats", "total_net_input_bytes:") - in) / s / HELD,
           (redis_info("stats", "total_net_output_bytes:") - out) / s / HELD);
    printf("%-44s %10.0f\n", "calls per second", calls / s);
    printf("%-44s %10.0f\n", "client's memory per mutex, bytes, at most",
           (double)u.ru_maxrss * 1024 / HELD);
    bench_figure("held: client, % of a core", -1, -1, ours);
    bench_figure("held: server, % of a core", -1, -1, server);
    bench_figure("held: bytes of the client for each, at most", -1, -1,
                 (double)u.ru_maxrss * 1024 / HELD);
    fflush(stdout);
    if (atomic_load(&lost) > 0 || atomic_load(&acquired) != HELD)
        bench_die("some were lost");
    _exit(0); /* without giving back one by one */
}

/* ---- renewals, as the server sees them ----------------------------------------------------- */

#define EPOCH "bench:epoch" /* what a renewal compares as well, and what it is */
#define NOTE "here"

/* What one would write for one mutex. */
static const char one_lua[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('GET', KEYS[2]) == ARGV[2] then\n"
    "    redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
    "    redis.call('PEXPIRE', KEYS[2], ARGV[3])\n"
    "    return {1}\n"
    "end\n"
    "return {0}\n";

static double renew(struct raw_redis *r, enum raw_script which, int group, int keys)
{
    static const char *argv[5 + 5 * GROUP];
    static char name[2 * GROUP][64];
    char count[16];
    bool is_ours = which == RAW_RENEW;
    snprintf(count, sizeof count, "%d", 2 * group + is_ours);
    for (int at = 0; at < keys; at += group) {
        int n = 0;
        argv[n++] = "EVALSHA";
        argv[n++] = r->sha[which];
        argv[n++] = count;
        if (is_ours)
            argv[n++] = EPOCH;
        for (int i = 0; i < group; i++) {
            snprintf(name[2 * i], 64, "simba:{k%d}", at + i);
            snprintf(name[2 * i + 1], 64, "simba:{k%d}:token", at + i);
            argv[n++] = name[2 * i];
            argv[n++] = name[2 * i + 1];
        }
        if (is_ours)
            argv[n++] = NOTE;
        for (int i = 0; i < group; i++) {
            argv[n++] = r->id;
            argv[n++] = "1753000000000000";
            argv[n++] = RAW_LEASE;
        }
        redisAppendCommandArgv(r->c, n, argv, NULL);
    }
    for (int at = 0; at < keys; at += group) {
        redisReply *reply = NULL;
        if (redisGetReply(r->c, (void **)&reply) != REDIS_OK || reply->type != REDIS_REPLY_ARRAY ||
            reply->elements != 1)
            bench_die("by hand: a renewal failed");
        freeReplyObject(reply);
    }
    return server_cpu_s();
}

static void compare_renewals(void *arg)
{
    const struct hold *h = arg;
    enum { KEYS = 256 * GROUP, TIMES = 5 };
    double cost[2][TIMES];
    struct raw_redis *r = raw_redis_open(h->location, "k", NULL);
    raw_redis_load(r, RAW_ONE, "", one_lua);
    raw_redis_load(r, RAW_RENEW, other_epoch_lua, renew_lua);
    freeReplyObject(redis_run(r->c, "SET " EPOCH " " NOTE));
    for (int i = 0; i < KEYS; i++) {
        freeReplyObject(redis_run(r->c, "SET simba:{k%d} %s PX 600000", i, r->id));
        freeReplyObject(redis_run(r->c, "SET simba:{k%d}:token 1753000000000000 PX 600000", i));
    }
    for (int t = 0; t < TIMES; t++) {
        for (int side = 0; side < 2; side++) {
            double last = server_cpu_s();
            cost[side][t] =
                side == 0 ? renew(r, RAW_ONE, 1, KEYS) : renew(r, RAW_RENEW, GROUP, KEYS);
            cost[side][t] = (cost[side][t] - last) * 1e6 / KEYS;
        }
    }
    double one = bench_median(cost[0], TIMES), many = bench_median(cost[1], TIMES);
    printf("%-44s %10.2f us, %.2f us in groups of %d: %.1f times cheaper; aim >= 2%s\n",
           "a renewal, server's CPU, one to a call", one, many, GROUP, one / many,
           one / many >= 2 ? "" : ", missed");
    raw_redis_close(r);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(
        argc, argv, "redis: 100,000 mutexes held by one client, ttl 10 s; --seconds: for how long.",
        1, 60);
    char location[LOCATION_MAX];
    redis_begin(location);
    struct hold h = {.bench = &b, .location = location};
    bench_run(&b, compare_renewals, &h);
    redis_begin(location);
    bench_run(&(struct bench){.core = -1}, hold, &h);
    return 0;
}
