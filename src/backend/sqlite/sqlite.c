/* sqlite.c: the store in a file. A worker thread, or a caller that would wait for it, applies each
 * batch in one transaction and answers when it is committed; a second thread waits for wakeups. */
#include "backend/sqlite/sqlite.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "backend/kit/handles.h"
#include "backend/kit/worker.h"
#include "backend/sqlite/database.h"
#include "backend/sqlite/inspect.h"
#include "backend/sqlite/watcher.h"
#include "base/fork.h"
#include "base/time.h"

#define POLL_MS 500       /* how soon one who waits notices that an owner was killed */
#define POLL_IDLE_MS 5000 /* how soon one who does not notices that the database was replaced */
#define OBSERVED_MS 15000 /* how long others go on waking an observer that is gone */
#define BATCH_MAX 1000    /* requests in one transaction: others want to write, too */

struct sqlite {
    struct simba_host *host;
    struct paths paths;
    struct kit_worker worker;
    struct sqlite_watcher watcher;
    struct handles handles;
    uv_async_t ended; /* the worker has */
    _Atomic int live; /* the descriptor for children, which shows that we are there; -1: none yet */

    /* the worker's, or whoever does its work */
    struct database db;
    bool wakeup_failed; /* the wakeup file cannot be opened, and that was logged */
};

/* ---- a batch ------------------------------------------------------------------------------- */

/* Before a question, and then while nothing happens: from now on others signal every change. */
static void observe(struct sqlite *s)
{
    if (s->host->interest(s->host, NULL) == SIMBA_OBSERVES)
        wakeup_observe(&s->watcher.wakeup, boot_clock_now(&s->db.boot) + OBSERVED_MS * NS_PER_MS);
}

/* The wakeup file before all that may have to wait for another writer, but not beside a file that is
 * no database of ours. */
static int open_database(struct sqlite *s)
{
    int rc = database_find(&s->db);
    if (rc < 0)
        return rc;
    if (watcher_open(&s->watcher, s->paths.wakeup_file) != 0 && !s->wakeup_failed) {
        s->wakeup_failed = true;
        s->host->log(s->host, SIMBA_LOG_WARN,
                     "cannot open the wakeup file: waiters poll, so waiting takes longer");
    }
    return database_open(&s->db);
}

static int be_open(struct sqlite *s, bool write)
{
    int rc = s->db.handle != NULL ? 0 : open_database(s);
    if (rc == SIMBA_EDENIED && !write) {
        char why[DATABASE_TEXT_MAX];
        memcpy(why, s->db.why, sizeof why); /* the reason that helps, if this fails, too */
        if (database_open_reader(&s->db) == 0)
            return 0;
        memcpy(s->db.why, why, sizeof why);
        return rc;
    }
    observe(s);
    return rc;
}

static bool only_reads(const struct simba_request *q)
{
    return q->op == SIMBA_READ || q->op == SIMBA_LEAVE || q->op == SIMBA_LIST;
}

/* Files that are not the store's any more are closed, and those that are there now opened. */
static int begin(struct sqlite *s, bool write)
{
    s->db.is_stale = false;
    int rc = be_open(s, write);
    if (rc == 0)
        rc = database_begin(&s->db, write);
    if (rc == 0 || !s->db.is_stale)
        return rc;
    s->host->log(s->host, SIMBA_LOG_ERROR, s->db.why);
    database_close(&s->db);
    s->db.is_stale = false;
    rc = be_open(s, write);
    return rc == 0 ? database_begin(&s->db, write) : rc;
}

static int apply_all(struct sqlite *s, struct simba_request *part)
{
    int rc = begin(s, !only_reads(part));
    if (rc < 0)
        return rc;
    for (struct simba_request *q = part; q != NULL; q = q->next) {
        struct database_result *result = q->store;
        result->waited = q->op == SIMBA_CONTEND && watcher_waited(&s->watcher, q->mutex);
        rc = database_apply(&s->db, q, result);
        if (rc == 0 && q->op == SIMBA_LIST)
            rc = database_list(&s->db, s->host, q);
        if (rc < 0) {
            database_rollback(&s->db);
            return rc;
        }
    }
    return database_commit(&s->db);
}

/* Others may have a new wakeup file, because somebody has deleted ours: then that one. */
static void wake_others(struct sqlite *s, unsigned slot, int most)
{
    struct wakeup now;
    if (wakeup_is_ours(&s->watcher.wakeup, s->paths.wakeup_file)) {
        wakeup_signal(&s->watcher.wakeup, slot, most);
    } else if (wakeup_open(&now, s->paths.wakeup_file) == 0) {
        wakeup_signal(&now, slot, most);
        wakeup_close(&now);
    }
}

/* Of those who wait for the mutex one is next, if it was released; but if its owner is evicted, that
 * one has to hear of it. */
static int count_to_wake(const struct simba_request *q, const struct database_result *r)
{
    if (!r->wake)
        return 0;
    return q->op == SIMBA_RELEASE ? WAKEUP_FEW : WAKEUP_ALL;
}

/* Committed: wake those who wait, before the one who left hears of it. */
static void wake_for(struct sqlite *s, struct simba_request *part)
{
    bool turn_wanted, observed = wakeup_is_observed(&s->watcher.wakeup, boot_clock_now(&s->db.boot),
                                                    &turn_wanted);
    if (turn_wanted)
        wakeup_pass_turn(&s->watcher.wakeup);
    for (struct simba_request *q = part; q != NULL; q = q->next) {
        struct database_result *r = q->store;
        if (q->op == SIMBA_CONTEND || q->op == SIMBA_READ) {
            bool owned = r->answer.id != NULL && !r->answer.granted;
            bool waits = watcher_answered(&s->watcher, q->mutex, owned, r->owner_client);
            if (waits)
                worker_tick(&s->worker, POLL_MS);
            if (waits || s->host->interest(s->host, NULL) == SIMBA_OBSERVES)
                worker_need(&s->worker);
            if (waits || r->answer.granted) /* an owner hears that it is evicted */
                watcher_listen(&s->watcher);
        }
        if (r->wake || (r->changed && observed))
            wake_others(s, wakeup_slot(q->mutex), count_to_wake(q, r));
    }
}

/* The results are one piece of memory, which the first request has. False: out of memory. */
static bool add_results(struct simba_request *part, size_t count)
{
    struct database_result *result = calloc(count, sizeof *result);
    for (size_t i = 0; part != NULL; part = part->next)
        part->store = result != NULL ? &result[i++] : NULL;
    return result != NULL;
}

static void free_results(struct simba_request *part)
{
    struct database_result *results = part->store;
    for (const struct simba_request *q = part; results != NULL && q != NULL; q = q->next)
        free(((struct database_result *)q->store)->note);
    free(results);
}

static void fail_all(struct sqlite *s, struct simba_request *part, int code)
{
    for (struct simba_request *q = part; q != NULL; q = q->next) {
        struct database_result *r = q->store;
        r->answer = (struct simba_answer){.code = code, .age_ms = -1, .text = r->text};
        snprintf(r->text, sizeof r->text, "%s", s->db.why);
    }
}

/* False: it would have to wait, and was not to. */
static bool run_part(struct sqlite *s, struct simba_request *part, bool may_wait)
{
    s->db.may_wait = may_wait;
    if (!may_wait && database_needs_tidying(&s->db))
        return false;
    int rc = apply_all(s, part);
    if (rc < 0 && s->db.is_full && may_wait && s->db.handle != NULL) {
        database_tidy(&s->db); /* maybe it is full of our own log */
        rc = apply_all(s, part);
    }
    if (s->db.is_reader || (rc < 0 && s->db.is_broken))
        database_close(&s->db); /* begin afresh next time */
    if (rc < 0 && (s->db.is_busy || s->db.is_full) && !may_wait)
        return false;
    if (rc < 0) {
        fail_all(s, part, rc);
        return true;
    }
    atomic_store(&s->live, s->db.lock.number != 0 ? s->db.lock.tree : -1);
    wake_for(s, part);
    if (may_wait && database_needs_tidying(&s->db))
        database_tidy(&s->db);
    return true;
}

/* Those who only read come first: they need not wait for another's transaction. */
static struct simba_request *sort(struct simba_request *batch)
{
    struct simba_request *reads = NULL, **last = &reads, *writes = NULL, **end = &writes;
    for (struct simba_request *next; batch != NULL; batch = next) {
        struct simba_request ***at = only_reads(batch) ? &last : &end;
        next = batch->next;
        batch->next = NULL;
        **at = batch;
        *at = &batch->next;
    }
    *last = writes;
    return reads;
}

static struct simba_request *run(void *store, struct simba_request **batch, bool may_wait)
{
    *batch = sort(*batch);
    struct simba_request *part = *batch, *last = part, *rest;
    size_t count = 1;
    assert(part != NULL);
    for (; count < BATCH_MAX && last->next != NULL && only_reads(last->next) == only_reads(part);
         count++)
        last = last->next;
    rest = last->next;
    last->next = NULL;
    if (add_results(part, count) && !run_part(store, part, may_wait)) {
        free_results(part);
        last->next = rest;
        return NULL;
    }
    *batch = rest;
    return part;
}

static void answer(void *store, struct simba_request *done)
{
    static const struct simba_answer no_memory = {
        .code = SIMBA_ELIMIT, .age_ms = -1, .text = "out of memory"};
    struct simba_host *host = ((struct sqlite *)store)->host;
    struct database_result *results = done->store;
    for (struct simba_request *next; done != NULL; done = next) {
        struct database_result *r = done->store;
        next = done->next;
        if (r != NULL)
            r->answer.more = next != NULL;
        char *note = r != NULL ? r->note : NULL;
        host->answer(host, done, r != NULL ? &r->answer : &no_memory);
        free(note);
    }
    free(results);
}

/* Also when nobody waits: a client of a database that is gone must notice, and give up its lock. */
static void poll_files(void *store)
{
    struct sqlite *s = store;
    s->db.may_wait = true;
    observe(s);
    watcher_listen(&s->watcher);
    bool polled = s->db.is_reader, waits = polled && watcher_poll(&s->watcher, &s->db, true);
    if (s->db.handle != NULL && begin(s, false) == 0) {
        database_rollback(&s->db);
        waits = watcher_poll(&s->watcher, &s->db,
                             !wakeup_is_ours(&s->watcher.wakeup, s->paths.wakeup_file));
        polled = true;
    } else if (s->db.handle != NULL && s->db.is_broken) {
        database_close(&s->db);
    }
    if (polled)
        worker_tick(&s->worker, waits ? POLL_MS : POLL_IDLE_MS);
}

static void end(void *store)
{
    struct sqlite *s = store;
    database_end(&s->db);
    watcher_stop(&s->watcher);
    uv_async_send(&s->ended);
}

/* ---- on the loop --------------------------------------------------------------------------- */

static void free_store(void *store)
{
    struct sqlite *s = store;
    watcher_free(&s->watcher);
    free(s);
}

static void on_ended(uv_async_t *async)
{
    struct sqlite *s = async->data;
    worker_join(&s->worker);
    handles_close(&s->handles, async);
}

static void submit(void *store, struct simba_request *batch)
{
    worker_submit(&((struct sqlite *)store)->worker, batch);
}

static enum simba_lend work(void *store, bool here)
{
    worker_work(&((struct sqlite *)store)->worker, here);
    return SIMBA_LEND_STORE;
}

static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    watcher_set(&((struct sqlite *)store)->watcher, mutex, interest);
}

static int liveness(void *store)
{
    return atomic_load(&((struct sqlite *)store)->live);
}

/* Paths and boot do not change. */
static void examine(void *store, struct simba_request *q)
{
    struct sqlite *s = store;
    const struct findings f = {s->host, q};
    inspect(&f, &s->paths, &s->db.boot, liveness(s));
    findings_end(&f);
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
    uint32_t nobody = 0, here = fork_generation();
    return atomic_compare_exchange_strong(&used_by, &nobody, here) || nobody == here;
}

/* What a shell, or the rules of other URLs, would make of it is not what we would open. */
static int check_url(const struct simba_url *url, char *why, size_t why_size)
{
    const char *host, *path = simba_url_path(url);
    int port;
    if (simba_url_host(url, 0, &host, &port) && host[0] != '\0' && strcmp(host, "localhost") != 0) {
        snprintf(why, why_size,
                 "a file has no host: write sqlite:%.100s%.150s or sqlite:/%.100s%.150s", host,
                 path, host, path);
        return SIMBA_EINVAL;
    }
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        snprintf(why, why_size,
                 "~ is not expanded: write the folder in full, or sqlite:./%.150s for one that is "
                 "called ~",
                 path);
        return SIMBA_EINVAL;
    }
    return 0;
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
    struct boot_clock boot;
    int rc = check_url(url, why, why_size);
    if (rc == 0)
        rc = paths_find(&s->paths, simba_url_path(url), why, why_size);
    if (rc == 0)
        rc = boot_clock_read(&boot, why, why_size);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->host = host;
    atomic_init(&s->live, -1);
    s->worker.store = s;
    s->worker.run = run;
    s->worker.answer = answer;
    s->worker.idle = poll_files;
    s->worker.end = end;
    /* Within what the machine waits for an answer, so that it hears the reason. */
    database_init(&s->db, &s->paths, &s->watcher.wakeup, &boot, host->command_timeout_ms / 2);
    watcher_init(&s->watcher, host);
    if (uv_async_init(host->loop, &s->ended, on_ended) != 0)
        goto err_after_watcher;
    s->ended.data = s;
    handles_init(&s->handles, host, free_store, s);
    handles_add(&s->handles);
    worker_init(&s->worker, "simba-sqlite");
    *store = s;
    return 0;

err_after_watcher:
    watcher_free(&s->watcher);
    free(s);
err:
    snprintf(why, why_size, "out of memory");
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
    .asks = true,
    .watch = watch,
    .close = close_sqlite,
    .work = work,
    .liveness = liveness,
    .examine = examine,
};
