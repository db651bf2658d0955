/* sql_keep.c: many mutexes held by one process for a while: is any lost, and what does it cost?
 * Run as mysql_lock or postgres_lock; [--count 20000] [--seconds 60]. */
#include <sys/resource.h>

#include "sql_raw.h"

static _Atomic int lost;

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    if (state->reason != SIMBA_RELEASED && atomic_fetch_add(&lost, 1) < 10)
        fprintf(stderr, "lost %s, reason %d\n", mutex, (int)state->reason);
}

/* Why, if any is. The lines about each acquisition are too many. */
static void on_log(void *data, enum simba_level level, const char *line)
{
    (void)data;
    if (level <= SIMBA_LOG_WARN && strstr(line, "dropped") == NULL)
        fprintf(stderr, "%s\n", line);
}

/* That the server has run so far, as it says itself. */
static double statements(void)
{
    const char *ask = strncmp(getenv("SIMBA_BENCH_URL"), "postgres", 8) == 0
                          ? "psql -qAt \"$SIMBA_BENCH_URL\" -c \"select 'x', sum(xact_commit) from "
                            "pg_stat_database\" "
                            "| tr '|' ' '"
                          : "mariadb --no-defaults --socket=\"$SIMBA_TEST_FOLDER/sock\" -uroot -N "
                            "-e \"show global status like 'questions'\"";
    double count = 0;
    FILE *f = popen(ask, "r"); /* NOLINT(cert-env33-c) */
    if (f == NULL || fscanf(f, "%*s %lf", &count) != 1)
        bench_die("the server does not tell how many statements it has run");
    pclose(f);
    return count;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    int count = 20000, seconds = 60;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            count = (int)bench_number(argv[i], argv[i + 1], 1, 1000000);
        else
            seconds = (int)bench_number(argv[i], argv[i + 1], 1, 86400);
    }
    simba_client *s = NULL;
    simba_contender **c = calloc((size_t)count, sizeof *c);
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    o.on_released = on_released;
    struct simba_options so = SIMBA_OPTIONS_INIT;
    so.log = on_log;
    sql_location();
    if (simba_open(getenv("SIMBA_BENCH_URL"), &so, &s) != 0)
        bench_die("%s", simba_error_text());
    int64_t began = bench_now();
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "held-%d", i);
        if (simba_contender_create(s, name, &o, &c[i]) != 0 || simba_contender_start(c[i]) != 0)
            bench_die("%s", simba_error_text());
    }
    for (int i = 0; i < count; i++) {
        while (!simba_contender_is_owner(c[i]))
            bench_sleep(1000000);
    }
    printf("%d mutexes acquired in %.2f s, ttl 10 s\n", count, (double)(bench_now() - began) / 1e9);
    double before = cpu_seconds(), ran = statements();
    began = bench_now();
    bench_sleep((int64_t)seconds * 1000000000);
    double took = (double)(bench_now() - began) / 1e9;
    double cpu = (cpu_seconds() - before) / took * 100;
    int owned = 0;
    for (int i = 0; i < count; i++)
        owned += simba_contender_is_owner(c[i]);
    printf("held for %.0f s: %d lost, %d owned at the end, %.1f %% of a core, %.0f statements per "
           "second\n",
           took, atomic_load(&lost), owned, cpu, (statements() - ran) / took);
    if (simba_close(s, 60000) != 0)
        bench_die("%s", simba_error_text());
    free(c);
    return atomic_load(&lost) == 0 && owned == count ? 0 : 1;
}
