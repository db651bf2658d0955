/* postgres_raw.h: the postgresql: store by hand: a program that blocks, with the same statements
 * prepared. */
#ifndef BENCH_POSTGRES_RAW_H
#define BENCH_POSTGRES_RAW_H

#include <libpq-fe.h>
#include <poll.h>

#include "sql_raw.h"

#define RAW_NOW "floor(extract(epoch from clock_timestamp())*1000)::bigint"

struct raw_postgres {
    PGconn *conn;
    char mutex[64], id[64], token[32];
    bool waits; /* somebody does: tell, and listen */
};

static inline PGresult *raw_check(PGconn *c, PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        bench_die("%s", PQerrorMessage(c));
    return r;
}

static inline void raw_prepare(PGconn *c, const char *name, const char *text)
{
    PQclear(raw_check(c, PQprepare(c, name, text, 0, NULL)));
}

static inline void *raw_postgres_open(const char *location, const char *mutex,
                                      _Atomic uint32_t *futex)
{
    struct raw_postgres *r = calloc(1, sizeof *r);
    r->conn = PQconnectdb(location);
    if (PQstatus(r->conn) != CONNECTION_OK)
        bench_die("%s", PQerrorMessage(r->conn));
    snprintf(r->mutex, sizeof r->mutex, "%s", mutex);
    snprintf(r->id, sizeof r->id, "0:%d@127.0.0.1-3f9a2c7e", (int)getpid());
    r->waits = futex != NULL;
    raw_prepare(r->conn, "take",
                "INSERT INTO simba_mutex AS t VALUES($1," RAW_NOW "," RAW_NOW "+10000," RAW_NOW
                "+16000,$2,1,1)ON CONFLICT(mutex)DO UPDATE SET acquired_at=" RAW_NOW
                ",ttl_at=" RAW_NOW "+10000,transition_at=" RAW_NOW "+16000,owner_id=$2,"
                "version=t.version+1,fencing_token=greatest(t.version,t.fencing_token)+1 "
                "WHERE t.transition_at<=" RAW_NOW " RETURNING fencing_token");
    raw_prepare(r->conn, "drop",
                "UPDATE simba_mutex SET acquired_at=0,ttl_at=0,transition_at=0,owner_id='' "
                "WHERE mutex=$1 AND owner_id=$2 AND fencing_token=$3");
    raw_prepare(
        r->conn, "tell",
        "WITH r AS(UPDATE simba_mutex SET acquired_at=0,ttl_at=0,transition_at=0,owner_id='' "
        "WHERE mutex=$1 AND owner_id=$2 AND fencing_token=$3 RETURNING mutex)"
        "SELECT pg_notify('simba',mutex)FROM r");
    if (r->waits)
        PQclear(raw_check(r->conn, PQexec(r->conn, "LISTEN simba")));
    return r;
}

static inline bool raw_postgres_take(struct raw_postgres *r)
{
    const char *values[] = {r->mutex, r->id};
    PGresult *result =
        raw_check(r->conn, PQexecPrepared(r->conn, "take", 2, values, NULL, NULL, 0));
    bool taken = PQntuples(result) == 1;
    if (taken)
        snprintf(r->token, sizeof r->token, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return taken;
}

static inline void raw_postgres_acquire(void *one)
{
    struct raw_postgres *r = one;
    while (!raw_postgres_take(r)) {
        PGnotify *n;
        if (!r->waits)
            bench_die("the mutex is not free");
        struct pollfd p = {.fd = PQsocket(r->conn), .events = POLLIN};
        while ((n = PQnotifies(r->conn)) == NULL) {
            poll(&p, 1, -1);
            PQconsumeInput(r->conn);
        }
        PQfreemem(n);
    }
}

static inline void raw_postgres_release(void *one)
{
    struct raw_postgres *r = one;
    const char *values[] = {r->mutex, r->id, r->token};
    PQclear(raw_check(
        r->conn, PQexecPrepared(r->conn, r->waits ? "tell" : "drop", 3, values, NULL, NULL, 0)));
}

static inline void raw_postgres_close(void *one)
{
    PQfinish(((struct raw_postgres *)one)->conn);
    free(one);
}

static const struct contest postgres_contest = {
    .raw = {raw_postgres_open, raw_postgres_acquire, raw_postgres_release, raw_postgres_close},
    .begin = sql_begin,
    .end = sql_end,
};
#endif
