/* sqlite.c: the store in a file. The loop hands batches to a worker thread, which applies each in one
 * transaction and answers when it is committed; a second thread listens to the bell. */
#include "backend/sqlite/sqlite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "backend/sqlite/db.h"
#include "backend/sqlite/watch.h"
#include "backend/worker.h"
#include "runtime/process.h"

#define LOOK_MS 500 /* how soon a killed owner is noticed */

struct sqlite {
    struct simba_host *host;
    struct place place;
    struct worker worker;
    struct watch watch;
    uv_async_t ended; /* the worker has */

    /* worker thread */
    struct db db;
    struct db_result *result; /* room for the answers of a batch */
    size_t results;
};

/* ---- a batch, on the worker thread ----------------------------------------------------------- */

static void answer_all(struct sqlite *s, struct simba_request *batch, int code, const char *text)
{
    const struct simba_answer failed = {.code = code, .age_ms = -1, .text = text};
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        s->host->answer(s->host, batch, &failed);
    }
}

static bool make_room(struct sqlite *s, size_t count)
{
    if (count <= s->results)
        return true;
    struct db_result *more = realloc(s->result, count * sizeof *more);
    if (more == NULL)
        return false;
    s->result = more;
    s->results = count;
    return true;
}

static int be_open(struct sqlite *s)
{
    if (s->db.handle != NULL && db_is_replaced(&s->db)) {
        s->host->log(s->host, SIMBA_LOG_ERROR, "the database file was deleted or replaced");
        db_close(&s->db);
    }
    int rc = db_open(&s->db);
    if (rc == 0 && watch_open(&s->watch, s->place.bell) != 0)
        s->host->log(s->host, SIMBA_LOG_WARN, "cannot open the bell: waiting takes longer");
    return rc;
}

static int apply_all(struct sqlite *s, struct simba_request *batch)
{
    size_t i = 0;
    int rc = db_begin(&s->db);
    if (rc < 0)
        return rc;
    for (struct simba_request *q = batch; q != NULL; q = q->next) {
        rc = db_apply(&s->db, q, &s->result[i++]);
        if (rc < 0) {
            db_rollback(&s->db);
            return rc;
        }
    }
    return db_commit(&s->db);
}

/* Committed: tell everybody. Those who wait are woken before the one who left hears of it. */
static void publish(struct sqlite *s, struct simba_request *batch)
{
    size_t i = 0;
    for (struct simba_request *q = batch, *next; q != NULL; q = next) {
        struct db_result *r = &s->result[i++];
        next = q->next;
        r->answer.id = r->answer.id != NULL ? r->id : NULL; /* the array may have moved */
        if (q->op == SIMBA_CONTEND) {
            bool any = watch_answered(&s->watch, q->mutex, !r->answer.granted, r->owner_client);
            worker_tick(&s->worker, any ? LOOK_MS : 0);
        }
        if (r->ring && s->watch.bell.words != NULL)
            bell_ring(&s->watch.bell, bell_slot(q->mutex));
        s->host->answer(s->host, q, &r->answer);
    }
}

static void run_batch(void *store, struct simba_request *batch)
{
    struct sqlite *s = store;
    size_t count = 0;
    for (struct simba_request *q = batch; q != NULL; q = q->next)
        count++;
    if (!make_room(s, count)) {
        answer_all(s, batch, SIMBA_ELIMIT, "out of memory");
        return;
    }
    int rc = be_open(s);
    if (rc == 0)
        rc = apply_all(s, batch);
    if (rc == 0) {
        publish(s, batch);
        return;
    }
    answer_all(s, batch, rc, s->db.why);
    if ((sqlite3_extended_errcode(s->db.handle) & 0xff) != SQLITE_BUSY)
        db_close(&s->db); /* begin afresh next time */
}

static void look(void *store)
{
    struct sqlite *s = store;
    if (s->db.handle != NULL)
        watch_look(&s->watch, &s->db);
}

static void end(void *store)
{
    struct sqlite *s = store;
    db_close(&s->db);
    live_close(&s->db.retired);
    watch_stop(&s->watch);
    uv_async_send(&s->ended);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct sqlite *s = handle->data;
    struct simba_host *host = s->host;
    watch_free(&s->watch);
    free(s->result);
    free(s);
    host->closed(host);
}

static void on_ended(uv_async_t *async)
{
    struct sqlite *s = async->data;
    worker_join(&s->worker);
    uv_close((uv_handle_t *)async, on_closed);
}

static void submit(void *store, struct simba_request *batch)
{
    worker_submit(&((struct sqlite *)store)->worker, batch);
}

static void watch(void *store, const char *mutex, bool on)
{
    watch_set(&((struct sqlite *)store)->watch, mutex, on);
}

static void close_sqlite(void *store)
{
    worker_stop(&((struct sqlite *)store)->worker);
}

/* SQLite remembers per process which file locks it has, and a forked child inherits the memory but
 * not the locks. */
static bool is_usable_here(void)
{
    static _Atomic uint32_t used_by;
    uint32_t nobody = 0, here = process_generation();
    return atomic_compare_exchange_strong(&used_by, &nobody, here) || nobody == here;
}

static int open_sqlite(struct simba_host *host, const struct simba_url *url, void **store,
                       char *why, size_t why_size)
{
    if (!is_usable_here()) {
        snprintf(why, why_size,
                 "SQLite cannot be used in a forked child of a process that used it; "
                 "open it only after the fork, or exec");
        return SIMBA_EFORKED;
    }
    struct sqlite *s = calloc(1, sizeof *s);
    if (s == NULL)
        goto err;
    int rc = place_find(&s->place, simba_url_path(url), why, why_size);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->host = host;
    s->worker.store = s;
    s->worker.run = run_batch;
    s->worker.idle = look;
    s->worker.end = end;
    db_init(&s->db, &s->place, host->command_timeout_ms);
    watch_init(&s->watch, host);
    if (uv_async_init(host->loop, &s->ended, on_ended) != 0)
        goto err_after_watch;
    s->ended.data = s;
    if (worker_start(&s->worker, "simba-sqlite") < 0)
        goto err_after_async;
    *store = s;
    return 0;

err_after_async:
    uv_close((uv_handle_t *)&s->ended, NULL);
    uv_run(host->loop, UV_RUN_NOWAIT);
err_after_watch:
    watch_free(&s->watch);
    free(s);
err:
    snprintf(why, why_size, "out of memory, descriptors or threads");
    return SIMBA_ELIMIT;
}

static const char *const schemes[] = {"sqlite", NULL};
static const char *const options[] = {NULL};

const struct simba_backend sqlite_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = options,
    .open = open_sqlite,
    .submit = submit,
    .watch = watch,
    .close = close_sqlite,
};
