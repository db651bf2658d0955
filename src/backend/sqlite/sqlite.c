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

#define LOOK_MS 500       /* how soon one who waits notices that an owner was killed */
#define LOOK_IDLE_MS 5000 /* how soon one who does not notices that the database was replaced */
#define BATCH_MAX 1000    /* requests in one transaction: others want to write, too */

struct sqlite {
    struct simba_host *host;
    struct place place;
    struct worker worker;
    struct watch watch;
    uv_async_t ended; /* the worker has */
    _Atomic int live; /* the descriptor that shows that we are there; -1: none yet */

    /* worker thread */
    struct db db;
    struct db_result *result; /* room for the answers of a batch */
    size_t results;
    bool is_deaf; /* the bell cannot be opened, and that was said */
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
        db_retire(&s->db);
    }
    int rc = db_open(&s->db);
    if (rc == 0 && watch_open(&s->watch, s->place.bell) != 0 && !s->is_deaf) {
        s->is_deaf = true;
        s->host->log(s->host, SIMBA_LOG_WARN, "cannot open the bell: waiting takes longer");
    }
    return rc;
}

static int apply_all(struct sqlite *s, struct simba_request *batch)
{
    size_t i = 0;
    bool write = false;
    for (struct simba_request *q = batch; q != NULL; q = q->next)
        write = write || (q->op != SIMBA_READ && q->op != SIMBA_LEAVE);
    int rc = db_begin(&s->db, write);
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

/* Others may have a new bell, because somebody has deleted ours: then that one. */
static void ring(struct sqlite *s, unsigned slot)
{
    struct bell now;
    if (bell_is_ours(&s->watch.bell, s->place.bell)) {
        bell_ring(&s->watch.bell, slot);
    } else if (bell_open(&now, s->place.bell) == 0) {
        bell_ring(&now, slot);
        bell_close(&now);
    }
}

/* Committed: tell everybody. Those who wait are woken before the one who left hears of it. */
static void publish(struct sqlite *s, struct simba_request *batch)
{
    size_t i = 0;
    for (struct simba_request *q = batch, *next; q != NULL; q = next) {
        struct db_result *r = &s->result[i++];
        next = q->next;
        if (q->op == SIMBA_CONTEND) {
            bool any = watch_answered(&s->watch, q->mutex, !r->answer.granted, r->owner_client);
            worker_tick(&s->worker, any ? LOOK_MS : LOOK_IDLE_MS);
        }
        if (r->ring)
            ring(s, bell_slot(q->mutex));
        s->host->answer(s->host, q, &r->answer);
    }
}

static void run_part(struct sqlite *s, struct simba_request *part, size_t count)
{
    if (!make_room(s, count)) {
        answer_all(s, part, SIMBA_ELIMIT, "out of memory");
        return;
    }
    int rc = be_open(s);
    if (rc == 0 && (rc = apply_all(s, part)) == 0) {
        atomic_store(&s->live, s->db.live.fd);
        publish(s, part);
        return;
    }
    answer_all(s, part, rc, s->db.why);
    if (s->db.is_broken)
        db_close(&s->db); /* begin afresh next time */
}

static void run_batch(void *store, struct simba_request *batch)
{
    while (batch != NULL) {
        struct simba_request *part = batch, *last = batch;
        size_t count = 1;
        for (; count < BATCH_MAX && last->next != NULL; count++)
            last = last->next;
        batch = last->next;
        last->next = NULL;
        run_part(store, part, count);
    }
}

/* Also when nobody waits: a client of a database that is gone must notice, and give up its lock. */
static void look(void *store)
{
    struct sqlite *s = store;
    if (s->db.handle != NULL && be_open(s) == 0)
        watch_look(&s->watch, &s->db, !bell_is_ours(&s->watch.bell, s->place.bell));
}

static void end(void *store)
{
    struct sqlite *s = store;
    db_end(&s->db);
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

static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    watch_set(&((struct sqlite *)store)->watch, mutex, interest != SIMBA_NO_INTEREST);
}

static int liveness(void *store)
{
    return atomic_load(&((struct sqlite *)store)->live);
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
    struct boot boot;
    int rc = place_find(&s->place, simba_url_path(url), why, why_size);
    if (rc == 0)
        rc = boot_read(&boot, why, why_size);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->host = host;
    atomic_init(&s->live, -1);
    s->worker.store = s;
    s->worker.run = run_batch;
    s->worker.idle = look;
    s->worker.end = end;
    /* Within what the machine waits for an answer, so that it hears the reason. */
    db_init(&s->db, &s->place, &boot, host->command_timeout_ms / 2);
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
    .liveness = liveness,
};
