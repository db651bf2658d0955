/* sql_raw.h: what is the same for programs that talk to an SQL server by hand. The server is one
 * that tests/servers/ has started; its URL is in SIMBA_BENCH_URL. */
#ifndef BENCH_SQL_RAW_H
#define BENCH_SQL_RAW_H

#include "rival.h"

struct sql_location {
    char host[64], user[64], password[64], database[64];
    int port;
};

static inline struct sql_location sql_location(void)
{
    struct sql_location p;
    const char *url = getenv("SIMBA_BENCH_URL");
    if (url == NULL || sscanf(url, "%*[a-z]://%63[^:]:%63[^@]@%63[^:]:%d/%63[a-z0-9]", p.user,
                              p.password, p.host, &p.port, p.database) != 5)
        bench_die("run it as: tests/servers/NAME env SIMBA_BENCH_URL=@URL@ %s",
                  program_invocation_short_name);
    return p;
}

/* The library makes the table, for both. */
static inline void sql_make(void *location)
{
    void *one = library.open(location, "first", NULL);
    library.acquire(one);
    library.release(one);
    library.close(one);
}

static inline void sql_begin(char location[LOCATION_MAX])
{
    sql_location();
    snprintf(location, LOCATION_MAX, "%s", getenv("SIMBA_BENCH_URL"));
    bench_run(&(struct bench){.core = -1}, sql_make, location);
}

static inline void sql_end(const char *location)
{
    (void)location;
}
#endif
