/* mysql_lock.c: a free mutex in a MariaDB server. By hand this is a program that blocks, with
 * the same two statements prepared; and, for the acquisition, the UPDATE and SELECT that servers
 * without RETURNING need.
 *   SIMBA_TEST_DURABLE=1 tests/servers/mariadb env SIMBA_BENCH_URL=@URL@ \
 *       SIMBA_MODULE_PATH=$PWD/build/modules build/bench/mysql_lock
 * The server should be on the same core: taskset -c 1 before it all. */
#include <mysql.h>

#include "lock.h"
#include "sql_raw.h"

#define NOW "(TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(3))DIV 1000)"

struct raw {
    MYSQL *m;
    MYSQL_STMT *take, *drop, *update, *select;
    char mutex[64], id[64];
    unsigned long long token;
};

static MYSQL_STMT *prepare(MYSQL *m, const char *text)
{
    MYSQL_STMT *s = mysql_stmt_init(m);
    if (mysql_stmt_prepare(s, text, (unsigned long)strlen(text)) != 0)
        bench_die("%s", mysql_stmt_error(s));
    return s;
}

static void *raw_open(const char *location, const char *mutex, _Atomic uint32_t *futex)
{
    (void)location;
    (void)futex;
    struct sql_location p = sql_location();
    struct raw *r = calloc(1, sizeof *r);
    r->m = mysql_init(NULL);
    if (mysql_real_connect(r->m, p.host, p.user, p.password, p.database, (unsigned)p.port, NULL,
                           CLIENT_FOUND_ROWS) == NULL ||
        mysql_query(r->m, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") != 0)
        bench_die("%s", mysql_error(r->m));
    snprintf(r->mutex, sizeof r->mutex, "%s", mutex);
    snprintf(r->id, sizeof r->id, "0:%d@127.0.0.1-3f9a2c7e", (int)getpid());
    r->take =
        prepare(r->m, "INSERT INTO simba_mutex VALUES(?," NOW "," NOW "+10000," NOW "+16000,?,1,1)"
                      "ON DUPLICATE KEY UPDATE owner_id=IF(transition_at<=" NOW
                      ",VALUES(owner_id),owner_id),"
                      "version=IF(transition_at<=" NOW ",version+1,version),"
                      "fencing_token=IF(transition_at<=" NOW ",version,fencing_token),"
                      "acquired_at=IF(transition_at<=" NOW "," NOW ",acquired_at),"
                      "ttl_at=IF(transition_at<=" NOW ",VALUES(ttl_at),ttl_at),"
                      "transition_at=IF(transition_at<=" NOW ",VALUES(transition_at),transition_at)"
                      "RETURNING fencing_token");
    r->drop =
        prepare(r->m, "UPDATE simba_mutex SET acquired_at=0,ttl_at=0,transition_at=0,owner_id='' "
                      "WHERE mutex=? AND owner_id=? AND fencing_token=?");
    r->update = prepare(r->m, "UPDATE simba_mutex SET owner_id=?,version=version+1,"
                              "fencing_token=version,acquired_at=" NOW ",ttl_at=" NOW "+10000,"
                              "transition_at=" NOW "+16000 WHERE mutex=? AND transition_at<=" NOW);
    r->select = prepare(r->m, "SELECT fencing_token FROM simba_mutex WHERE mutex=?");
    return r;
}

static void bind_text(MYSQL_BIND *b, char *text)
{
    *b = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
                      .buffer = text,
                      .buffer_length = (unsigned long)strlen(text)};
}

static void execute(MYSQL_STMT *s, MYSQL_BIND *in, unsigned long long *out)
{
    MYSQL_BIND result = {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = out, .is_unsigned = 1};
    if (mysql_stmt_bind_param(s, in) != 0 || mysql_stmt_execute(s) != 0)
        bench_die("%s", mysql_stmt_error(s));
    if (out != NULL && (mysql_stmt_bind_result(s, &result) != 0 ||
                        mysql_stmt_store_result(s) != 0 || mysql_stmt_fetch(s) != 0))
        bench_die("no row: %s", mysql_stmt_error(s));
    if (out != NULL)
        mysql_stmt_free_result(s);
}

static void raw_acquire(void *one)
{
    struct raw *r = one;
    MYSQL_BIND in[2];
    bind_text(&in[0], r->mutex);
    bind_text(&in[1], r->id);
    execute(r->take, in, &r->token);
}

static void raw_release(void *one)
{
    struct raw *r = one;
    MYSQL_BIND in[3];
    bind_text(&in[0], r->mutex);
    bind_text(&in[1], r->id);
    in[2] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &r->token, .is_unsigned = 1};
    execute(r->drop, in, NULL);
    if (mysql_stmt_affected_rows(r->drop) != 1)
        bench_die("the mutex was lost");
}

static void raw_acquire_in_two(void *one)
{
    struct raw *r = one;
    MYSQL_BIND in[2];
    bind_text(&in[0], r->id);
    bind_text(&in[1], r->mutex);
    execute(r->update, in, NULL);
    if (mysql_stmt_affected_rows(r->update) != 1)
        bench_die("the mutex is not free");
    bind_text(&in[0], r->mutex);
    execute(r->select, in, &r->token);
}

static void raw_close(void *one)
{
    struct raw *r = one;
    mysql_stmt_close(r->take);
    mysql_stmt_close(r->drop);
    mysql_stmt_close(r->update);
    mysql_stmt_close(r->select);
    mysql_close(r->m);
    free(r);
}

/* ---- the acquisition alone ----------------------------------------------------------------- */

struct acquisition {
    const struct rival *rival;
    double *median;
    int64_t run_ns;
};

static void measure(void *arg)
{
    const struct acquisition *a = arg;
    static double took[200000];
    size_t n = 0;
    void *one = a->rival->open(getenv("SIMBA_BENCH_URL"), "mutex-0", NULL);
    int64_t end = bench_now() + a->run_ns;
    while (bench_now() < end && n < 200000) {
        int64_t began = bench_now();
        a->rival->acquire(one);
        took[n++] = (double)(bench_now() - began) / 1000;
        a->rival->release(one);
    }
    a->rival->close(one);
    *a->median = bench_median(took, n);
}

static void compare_acquisitions(const struct bench *b, const struct rival *in_two)
{
    static double median[2][BENCH_ROUNDS_MAX];
    double *result = bench_share(sizeof *result);
    for (int i = 0; i < b->rounds; i++) {
        for (int side = 0; side < 2; side++) {
            struct acquisition a = {side == 0 ? in_two : &library, result, b->run_ns};
            bench_run(b, measure, &a);
            median[side][i] = *result;
        }
    }
    bench_row("acquire, against UPDATE + SELECT, us", bench_median(median[0], (size_t)b->rounds),
              bench_median(median[1], (size_t)b->rounds), -0.85);
}

int main(int argc, char **argv)
{
    static const struct contest contest = {
        .raw = {raw_open, raw_acquire, raw_release, raw_close}, .begin = sql_begin, .end = sql_end};
    static const struct rival in_two = {raw_open, raw_acquire_in_two, raw_release, raw_close};
    struct bench b = bench_begin(argc, argv,
                                 "mysql: acquire and release a free mutex, against the same two "
                                 "statements by hand.",
                                 7, 0.5);
    bench_head();
    lock_compare(&b, &contest, 1, 0.8);
    compare_acquisitions(&b, &in_two);
    return 0;
}
