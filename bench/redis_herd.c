/* redis_herd.c: very many wait for one mutex: how many scripts the server runs for one
 * hand-over, and how long that takes. 20 processes with 100 contenders each; who gets it gives
 * it back at once and waits again. */
#include "redis_raw.h"

#define PROCESSES 20
#define CONTENDERS 100
#define PAUSE_NS INT64_C(3000000000)

struct herd {
    const char *location;
    struct share {
        _Atomic uint32_t ready, start, tenures, running;
        _Atomic int stop;
    } * share;
};

static struct share *share;

struct one {
    simba_contender *c;
    _Atomic int again;
};

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)mutex;
    (void)state;
    struct one *one = data;
    atomic_fetch_add(&share->tenures, 1);
    bench_await(&share->start, 1); /* the first one waits for the beginning */
    simba_contender_stop(one->c);
    atomic_store(&one->again, 1);
}

static void process(void *arg)
{
    const struct herd *h = arg;
    static struct one one[CONTENDERS];
    simba_client *client = NULL;
    share = h->share;
    if (simba_open(h->location, NULL, &client) != 0)
        bench_die("%s", simba_error_text());
    for (int i = 0; i < CONTENDERS; i++) {
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        o.ttl_ms = 60000;
        o.on_acquired = on_acquired;
        o.data = &one[i];
        if (simba_contender_create(client, "herd", &o, &one[i].c) != 0 ||
            simba_contender_start(one[i].c) != 0)
            bench_die("%s", simba_error_text());
    }
    for (int i = 0; i < CONTENDERS; i++)
        simba_contender_wait(one[i].c, SIMBA_RUNNING, 60000);
    bench_add(&share->ready);
    while (atomic_load(&share->stop) == 0) {
        for (int i = 0; i < CONTENDERS; i++) {
            if (atomic_load(&one[i].again) == 0 ||
                simba_contender_status(one[i].c) != SIMBA_INITIAL)
                continue;
            atomic_store(&one[i].again, 0);
            simba_contender_start(one[i].c);
        }
        bench_sleep(5000000);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct bench b = bench_begin(
        argc, argv, "redis: 2,000 contenders in 20 processes wait for one mutex, and take turns.",
        1, 10);
    char location[LOCATION_MAX];
    pid_t pid[PROCESSES];
    redis_begin(location);
    struct herd h = {.location = location, .share = bench_share(sizeof *h.share)};
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = bench_fork(&(struct bench){.core = -1}, process, &h);
    bench_await(&h.share->ready, PROCESSES);
    bench_sleep(PAUSE_NS); /* all have subscribed and tried again */
    double calls = redis_info("commandstats", "cmdstat_evalsha:calls=");
    uint32_t tenures = atomic_load(&h.share->tenures);
    bench_set(&h.share->start, 1);
    bench_sleep(b.run_ns);
    calls = redis_info("commandstats", "cmdstat_evalsha:calls=") - calls;
    tenures = atomic_load(&h.share->tenures) - tenures;
    atomic_store(&h.share->stop, 1);
    for (int i = 0; i < PROCESSES; i++)
        bench_join(pid[i]);
    double each = tenures > 0 ? calls / tenures : 0;
    bench_figure("scripts of the server per hand-over", -1, -1, each);
    bench_figure("hand-overs per second", -1, -1, tenures * 1e9 / (double)b.run_ns);
    printf("%u hand-overs in %.1f s, %.2f scripts for each; aim <= 4%s\n", tenures,
           (double)b.run_ns / 1e9, each, tenures > 0 && each <= 4 ? "" : ", missed");
    return tenures > 0 && each <= 4 ? 0 : 1;
}
