/* test_sql_frame.c: the frame of the SQL stores around a server of which the test says what it
 * answers: what becomes of a job one of whose rows is locked, of one that is tried again, of
 * those that find no memory.
 *
 * A mutex is a letter. What is asked of the server is written down, and who is answered what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "backend/sql/sql.h"
#include "runtime/client.h"

#define NAMES 26
#define PATIENCE_S 20 /* with one test: an answer that never comes ends them all */

/* ---- memory that ends ---------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int fails_after = -1; /* so many allocations: one, once; -1: none does */

static bool fails(void)
{
    return fails_after >= 0 && fails_after-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

/* ---- a server ------------------------------------------------------------------------------ */

static struct server {
    const char *locked;       /* rows that somebody's transaction holds */
    const char *others;       /* mutexes that are another's; that is found only by reading */
    const char *unmarked;     /* likewise, but told, and nobody has left a mark that he waits */
    const char *locked_marks; /* rows that cannot be marked for a lock, */
    const char *free_marks;   /* or because they are free by then */
    bool breaks_marks;        /* the connection ends with a mark */
    int failing_commits;      /* of so many acquisitions, after they were told */
    bool notifies, passes;
    const char *lost;   /* mutexes whose owner was evicted: a pass or a release finds nothing */
    const char *marked; /* others wait for them */
    bool has_notes;     /* the table of them */
    bool makes_tables, refuses_tables;
    char said[4096];
    uint64_t token; /* the last one */
    int fd;
} server;

static bool is_in(const char *letters, const char *mutex)
{
    return letters != NULL && mutex[0] != '\0' && strchr(letters, mutex[0]) != NULL;
}

static void note(const struct sql_job *job)
{
    static const char *const names[] = {"contend", "renew", "release", "read",
                                        "leave",   "list",  "evict",   "publish"};
    static const char *const more[] = {"poll", "digest",  "count_eviction", "listen",
                                       "mark", "observe", "make_notes"};
    size_t n = strlen(server.said);
    n += (size_t)snprintf(server.said + n, sizeof server.said - n, "%s%s%s ", n > 0 ? ", " : "",
                          job->op >= SQL_POLL        ? more[job->op - SQL_POLL]
                          : job->op == SQL_PASS      ? "pass"
                          : job->op == SQL_READ_NOTE ? "read_note"
                          : job->op == SQL_LIST_NOTE ? "list_note"
                                                     : names[job->op],
                          job->short_lock_wait ? "!" : "");
    for (size_t i = 0; i < job->count; i++)
        n += (size_t)snprintf(server.said + n, sizeof server.said - n, "%s", job->item[i].mutex);
    assert_true(n < sizeof server.said);
}

/* Before a commit that fails the mutex was ours. */
static void tell(struct sql *s, struct sql_job *job, const struct sql_item *item, bool commits)
{
    struct sql_row row = {.mutex = item->mutex, .owner = "", .token = 1};
    bool unmarked = is_in(server.unmarked, item->mutex);
    if (job->op == SIMBA_LIST || job->op == SQL_LIST_NOTE) /* there are none */
        return;
    if (job->op == SIMBA_CONTEND && commits && is_in(server.others, item->mutex))
        return;
    if (job->op == SQL_MARK && is_in(server.free_marks, item->mutex))
        return;
    if ((job->op == SQL_PASS || job->op == SIMBA_RELEASE) && is_in(server.lost, item->mutex))
        return;
    if (commits && (unmarked || is_in(server.others, item->mutex))) {
        row.owner = "another";
        row.left_ms = 1000;
        row.unmarked = unmarked;
    } else if (item->request != NULL && job->op != SIMBA_READ && job->op != SQL_READ_NOTE) {
        row.owner = item->request->id;
        row.left_ms = 1000;
        row.changed = true;
        row.token = ++server.token;
        row.marked = job->op != SIMBA_CONTEND && is_in(server.marked, item->mutex);
    }
    sql_found(s, job, &row);
}

static bool is_locked(const struct sql_job *job)
{
    const char *rows = job->op == SQL_MARK ? server.locked_marks : server.locked;
    for (size_t i = 0; i < job->count; i++) {
        if (is_in(rows, job->item[i].mutex) && job->op != SIMBA_READ && job->op != SQL_POLL)
            return true;
    }
    return false;
}

static int begin(struct sql *s, void *link, struct sql_job *job, enum sql_end *end)
{
    (void)link;
    note(job);
    sql_fail(s, SIMBA_ESTORE, "locked, or not committed");
    *end = SQL_LOCKED;
    if (is_locked(job))
        return 0;
    *end = SQL_FAILED;
    if (job->op == SQL_MAKE_NOTES && !server.refuses_tables)
        server.has_notes = true;
    if ((job->op == SIMBA_PUBLISH || job->op == SQL_READ_NOTE || job->op == SQL_LIST_NOTE) &&
        !server.has_notes) {
        sql_fail_notes(s, true, "no such table");
        return 0;
    }
    *end = SQL_BROKEN;
    if (job->op == SQL_MARK && server.breaks_marks)
        return 0;
    bool commits = job->op != SIMBA_CONTEND || server.failing_commits-- <= 0;
    for (size_t i = 0; i < job->count; i++)
        tell(s, job, &job->item[i], commits);
    *end = commits ? SQL_DONE : SQL_RETRY;
    return 0;
}

static int go_on(struct sql *s, void *link, struct sql_job *job, int events, enum sql_end *end)
{
    (void)s;
    (void)link;
    (void)job;
    (void)events;
    *end = SQL_BROKEN;
    return 0;
}

static bool dial(const void *config, struct sql_session *out, int *code, char *why)
{
    static const struct sql_inspection nothing;
    (void)config;
    (void)code;
    (void)why;
    server.fd = eventfd(0, EFD_CLOEXEC);
    *out = (struct sql_session){.handle = &server,
                                .fd = server.fd,
                                .notifies = server.notifies,
                                .passes = server.passes,
                                .makes_tables = server.makes_tables,
                                .inspection = &nothing};
    return true;
}

static void hang_up(void *link)
{
    (void)link;
    close(server.fd);
}

static int read_config(const struct options *o, const struct simba_host *host, void *config)
{
    (void)o;
    (void)host;
    (void)config;
    return 0;
}

static bool idle(struct sql *s, void *link)
{
    (void)s;
    (void)link;
    return true;
}

static const struct sql_dialect dialect = {.see_locks = "the server",
                                           .can_notify = true,
                                           .connect = dial,
                                           .disconnect = hang_up,
                                           .read_config = read_config,
                                           .free_config = free,
                                           .config_size = 1,
                                           .begin = begin,
                                           .go_on = go_on,
                                           .idle = idle};

/* ---- the runtime --------------------------------------------------------------------------- */

static struct runtime {
    struct simba_client client; /* its host, and what is of interest */
    uv_loop_t loop;
    void *store;
    struct simba_request request[2 * NAMES];
    char name[2 * NAMES][2];
    int answers[2 * NAMES]; /* to each */
    int open;               /* requests */
    char answered[1024], hinted[64];
    bool is_closed;
} runtime;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *a)
{
    (void)host;
    size_t n = strlen(runtime.answered);
    const char *what = a->code != 0                        ? "failed"
                       : a->granted                        ? "granted"
                       : a->id != NULL && a->id[0] != '\0' ? "held"
                                                           : "free";
    if (q->op != SIMBA_CONTEND && q->op != SIMBA_READ)
        what = a->code == 0 ? "done" : a->code == SIMBA_ELOST ? "lost" : "failed";
    snprintf(runtime.answered + n, sizeof runtime.answered - n, "%s%s %s", n > 0 ? ", " : "",
             q->mutex, what);
    runtime.answers[q - runtime.request]++;
    runtime.open--;
}

static void on_hint(struct simba_host *host, const char *mutex)
{
    (void)host;
    size_t n = strlen(runtime.hinted);
    snprintf(runtime.hinted + n, sizeof runtime.hinted - n, "%s", mutex != NULL ? mutex : "*");
}

static void on_log(struct simba_host *host, enum simba_level level, const char *line)
{
    (void)host;
    (void)level;
    (void)line;
}

static void on_reconnected(struct simba_host *host)
{
    (void)host;
}

static void on_closed(struct simba_host *host)
{
    (void)host;
    runtime.is_closed = true;
}

/* A batch of one kind, a letter each; run() begins a new record and returns when all are answered. */
static struct simba_request *batch(int first, enum simba_op op, const char *letters)
{
    struct simba_request *next = NULL;
    for (int i = (int)strlen(letters) - 1; i >= 0; i--) {
        struct simba_request *q = &runtime.request[first + i];
        char *name = runtime.name[first + i];
        name[0] = letters[i];
        name[1] = '\0';
        *q = (struct simba_request){.op = op,
                                    .mutex = name,
                                    .id = "me",
                                    .token = 1,
                                    .ttl_ms = 1000,
                                    .transition_ms = 1000,
                                    .next = next};
        runtime.answers[first + i] = 0;
        runtime.open++;
        next = q;
    }
    return next;
}

static const struct simba_backend backend = {.asks = true};

static void run(struct simba_request *list)
{
    server.said[0] = runtime.answered[0] = runtime.hinted[0] = '\0';
    sql_submit(runtime.store, list);
    while (runtime.open > 0)
        uv_run(&runtime.loop, UV_RUN_ONCE);
}

static void watch(const char *mutex, enum simba_interest interest)
{
    assert_int_equal(interest_change(&runtime.client, mutex, SIMBA_NO_INTEREST, interest), 0);
    sql_watch(runtime.store, mutex, interest);
}

/* By this connection, and the next ones. */
static void let_server_tell(void)
{
    server.notifies = ((struct sql *)runtime.store)->connection->session.notifies = true;
}

/* Not ONCE: that waits for the next timer although what we wait for has happened. */
static void await_said(const char *what)
{
    while (strstr(server.said, what) == NULL)
        uv_run(&runtime.loop, UV_RUN_NOWAIT);
}

static int set_up(void **state)
{
    char why[64];
    (void)state;
    alarm(PATIENCE_S);
    server = (struct server){.locked = NULL};
    runtime = (struct runtime){.client.host = {.loop = &runtime.loop,
                                               .connect_timeout_ms = 1000,
                                               .command_timeout_ms = 1000,
                                               .answer = on_answer,
                                               .hint = on_hint,
                                               .log = on_log,
                                               .reconnected = on_reconnected,
                                               .closed = on_closed}};
    runtime.client.backend = &backend;
    assert_int_equal(interest_init(&runtime.client), 0);
    assert_int_equal(uv_loop_init(&runtime.loop), 0);
    struct simba_url url;
    assert_int_equal(url_parse(&url, "x://h?poll=0", why, sizeof why), 0);
    assert_int_equal(
        sql_open(&runtime.client.host, &dialect, &url, &runtime.store, why, sizeof why), 0);
    run(batch(0, SIMBA_READ, "a")); /* connected */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sql_close(runtime.store);
    while (!runtime.is_closed)
        uv_run(&runtime.loop, UV_RUN_ONCE);
    uv_run(&runtime.loop, UV_RUN_DEFAULT);
    interest_free(&runtime.client);
    return uv_loop_close(&runtime.loop);
}

/* ---- a row that is locked ------------------------------------------------------------------ */

static void a_job_is_split_at_a_locked_row(void **state)
{
    (void)state;
    server.locked = "c";
    run(batch(0, SIMBA_RENEW, "abcdefgh"));
    assert_string_equal(server.said, "renew abcdefgh, renew! abcd, renew! ab, renew! cd, renew! c, "
                                     "renew! d, renew! efgh");
    assert_string_equal(runtime.answered, "a done, b done, c failed, d done, e done, f done, "
                                          "g done, h done");
}

/* Who asks for their mutexes is answered: nobody gets them yet. */
static void several_locked_rows_are_answered_for_themselves(void **state)
{
    (void)state;
    server.locked = "adh";
    run(batch(0, SIMBA_CONTEND, "abcdefgh"));
    assert_string_equal(runtime.answered, "a free, b granted, c granted, d free, e granted, "
                                          "f granted, g granted, h free");
}

static void what_was_locked_is_not_waited_for_again(void **state)
{
    (void)state;
    server.locked = "c";
    run(batch(0, SIMBA_RENEW, "abcd"));
    run(batch(0, SIMBA_RENEW, "abcd"));
    assert_string_equal(server.said, "renew! c, renew abd");
    assert_string_equal(runtime.answered, "c failed, a done, b done, d done");
    server.locked = NULL;
    run(batch(0, SIMBA_RENEW, "abcd"));
    assert_string_equal(runtime.answered, "c done, a done, b done, d done");
}

/* ---- answers that do not hold -------------------------------------------------------------- */

static void what_a_failed_commit_reported_is_forgotten(void **state)
{
    (void)state;
    server.failing_commits = 1;
    server.others = "b";
    run(batch(0, SIMBA_CONTEND, "ab"));
    assert_string_equal(server.said, "contend ab, contend ab, read b");
    assert_string_equal(runtime.answered, "a granted, b held");
}

static void commits_that_fail_are_not_tried_for_ever(void **state)
{
    (void)state;
    server.failing_commits = 1000;
    run(batch(0, SIMBA_CONTEND, "a"));
    assert_string_equal(runtime.answered, "a failed");
    assert_in_range(server.failing_commits, 990, 999);
}

/* ---- what goes together -------------------------------------------------------------------- */

static void what_keeps_a_tenure_goes_first(void **state)
{
    (void)state;
    struct simba_request *list = batch(0, SIMBA_CONTEND, "a");
    list->next = batch(1, SIMBA_RELEASE, "b");
    list->next->next = batch(2, SIMBA_RENEW, "dc");
    run(list);
    assert_string_equal(server.said, "renew cd, release b, contend a");
}

static void of_one_tenure_one_renewal_is_enough(void **state)
{
    (void)state;
    struct simba_request *list = batch(0, SIMBA_RENEW, "aab");
    runtime.request[1].token = 2;
    list->next->next->next = batch(3, SIMBA_RENEW, "ab");
    run(list);
    assert_int_equal(runtime.open, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(runtime.answers[i], 1);
    assert_string_equal(server.said, "renew ab, renew a");
}

/* ---- marks, and listening ------------------------------------------------------------------ */

static void who_listens_polls_once(void **state)
{
    (void)state;
    let_server_tell();
    server.others = "a";
    run(batch(0, SIMBA_CONTEND, "a"));
    server.said[0] = '\0';
    watch("a", SIMBA_WAITS);
    await_said("poll");
    assert_string_equal(server.said, "listen , poll a");
}

static void who_waits_leaves_marks(void **state)
{
    (void)state;
    let_server_tell();
    server.unmarked = "bc";
    run(batch(0, SIMBA_CONTEND, "abc"));
    assert_string_equal(server.said, "contend abc, mark bc");
    assert_string_equal(runtime.hinted, "");
}

static void what_is_free_when_it_is_to_be_marked_is_asked_for(void **state)
{
    (void)state;
    let_server_tell();
    server.unmarked = "abc";
    server.free_marks = "b";
    run(batch(0, SIMBA_CONTEND, "abc"));
    assert_string_equal(runtime.hinted, "b");
}

static void a_locked_row_does_not_keep_others_from_marks(void **state)
{
    (void)state;
    let_server_tell();
    server.unmarked = "abcd";
    server.locked_marks = "b";
    run(batch(0, SIMBA_CONTEND, "abcd"));
    assert_string_equal(server.said,
                        "contend abcd, mark abcd, mark! ab, mark! a, mark! b, mark! cd");
    assert_string_equal(runtime.hinted, "");
}

/* The store is asked to look at nothing (poll=0), and does after something went wrong. */
static void a_mark_that_was_lost_is_left_again(void **state)
{
    (void)state;
    let_server_tell();
    server.unmarked = "ab";
    server.breaks_marks = true;
    watch("a", SIMBA_WAITS);
    watch("b", SIMBA_OBSERVES);
    run(batch(0, SIMBA_CONTEND, "a"));
    server.breaks_marks = false;
    server.said[0] = '\0';
    await_said("mark");
    assert_string_equal(server.said, "listen , observe , poll ab, mark a");
}

static void a_mark_that_found_a_lock_is_left_later(void **state)
{
    (void)state;
    let_server_tell();
    server.unmarked = "a";
    server.locked_marks = "a";
    watch("a", SIMBA_WAITS);
    await_said("poll"); /* it listens */
    run(batch(0, SIMBA_CONTEND, "a"));
    assert_string_equal(server.said, "contend a, mark a");
    server.locked_marks = NULL;
    server.said[0] = '\0';
    assert_true(uv_is_active((uv_handle_t *)&((struct sql *)runtime.store)->poller.timer));
    sql_poller_poll_in(runtime.store, 0); /* now, and not in five seconds */
    await_said("mark");
    assert_string_equal(server.said, "poll a, mark a");
}

/* ---- polling ------------------------------------------------------------------------------- */

static int64_t next_poll_ms(void)
{
    struct sql *s = runtime.store;
    assert_true(uv_is_active((uv_handle_t *)&s->poller.timer));
    return (int64_t)uv_timer_get_due_in(&s->poller.timer);
}

/* What is waited for is ours: only the row of evictions is polled, once a second. */
static void wait_for_our_own(void)
{
    ((struct sql *)runtime.store)->poller.poll_ms = 250;
    watch("a", SIMBA_WAITS);
    run(batch(0, SIMBA_CONTEND, "a"));
    sql_poller_poll_in(runtime.store, 0);
    await_said("poll");
    assert_in_range(next_poll_ms(), 500, 1200);
    ((struct sql *)runtime.store)->poller.pause_ms =
        10; /* as after polls that have found something */
}

static void a_new_waiter_is_polled_for_soon(void **state)
{
    (void)state;
    wait_for_our_own();
    watch("b", SIMBA_WAITS);
    assert_in_range(next_poll_ms(), 0, 50);
}

/* The runtime has said before that it is waited for; it was ours until then. */
static void what_another_has_got_from_us_is_polled_soon(void **state)
{
    (void)state;
    wait_for_our_own();
    run(batch(0, SIMBA_RELEASE, "a"));
    server.others = "a";
    run(batch(0, SIMBA_CONTEND, "a"));
    assert_string_equal(runtime.answered, "a held");
    assert_in_range(next_poll_ms(), 0, 50);
}

/* Who asks again and again does not make polls more frequent. */
static void a_refusal_does_not_hurry_a_poll(void **state)
{
    (void)state;
    struct sql *s = runtime.store;
    s->poller.poll_ms = 250;
    server.others = "a";
    watch("a", SIMBA_WAITS);
    s->poller.pause_ms = 250;
    sql_poller_poll_in(runtime.store, 200);
    run(batch(0, SIMBA_CONTEND, "a"));
    assert_in_range(next_poll_ms(), 100, 200);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Whichever allocation fails: each request is answered once, what is not kept is told as a
 * failure, and all goes on with the next. */
/* ---- from handle to handle ------------------------------------------------------------------ */

static void let_server_pass(void)
{
    let_server_tell();
    server.passes = ((struct sql *)runtime.store)->connection->session.passes = true;
}

/* One of us owns "a", and others of us wait for it, as far as that matters to the store. */
static void own_among_waiters(void)
{
    let_server_pass();
    watch("a", SIMBA_WAITS);
    await_said("poll a");
    struct simba_request *q = batch(0, SIMBA_CONTEND, "a");
    q->others = true;
    run(q);
    assert_string_equal(runtime.answered, "a granted");
}

/* In a turn of the runtime: the owner releases it; the one who is hinted asks for it, or not; then
 * the store may go on. */
static char at_once[sizeof server.said]; /* what was said in that turn */

static void release_and_ask(bool asks, const char *id)
{
    server.said[0] = runtime.answered[0] = runtime.hinted[0] = '\0';
    sql_submit(runtime.store, batch(0, SIMBA_RELEASE, "a"));
    if (asks) {
        struct simba_request *q = batch(1, SIMBA_CONTEND, "a");
        q->id = id;
        q->others = true;
        sql_submit(runtime.store, q);
    }
    sql_work(runtime.store, true);
    memcpy(at_once, server.said, sizeof at_once);
    while (runtime.open > 0)
        uv_run(&runtime.loop, UV_RUN_ONCE);
}

static void a_mutex_is_passed_on(void **state)
{
    (void)state;
    own_among_waiters();
    release_and_ask(true, "you");
    assert_string_equal(runtime.hinted, "a");
    assert_string_equal(server.said, "pass a");
    assert_string_equal(runtime.answered, "a done, a granted");
    release_and_ask(false, NULL); /* nobody came: the release does not wait for ever */
    assert_string_equal(at_once, "release a");
    assert_string_equal(runtime.answered, "a done");
}

static void a_pass_that_finds_nothing_is_a_release_and_a_question(void **state)
{
    (void)state;
    own_among_waiters();
    server.lost = "a";
    release_and_ask(true, "you");
    assert_string_equal(server.said, "pass a, release a, contend a");
    assert_string_equal(runtime.answered, "a lost, a granted");
    server.lost = NULL;
    server.locked = "a";
    release_and_ask(true, "me");
    assert_string_equal(server.said, "pass a");
    assert_string_equal(runtime.answered, "a failed, a failed");
}

static void who_waits_outside_gets_it_after_some_passes(void **state)
{
    (void)state;
    own_among_waiters();
    int passes = 0;
    server.marked = "a";
    for (release_and_ask(true, "you"); strcmp(server.said, "pass a") == 0; passes++)
        release_and_ask(true, "you");
    assert_in_range(passes, 1, 8);
    /* The release goes at once, and who asks again here only when the others have had time. */
    assert_string_equal(at_once, "release a");
    assert_string_equal(server.said, "release a, contend a");
    assert_string_equal(runtime.answered, "a done, a granted");
    server.marked = NULL;
    passes = 0;
    for (release_and_ask(true, "you"); strcmp(server.said, "pass a") == 0; passes++)
        release_and_ask(true, "you");
    assert_int_equal(passes, 32); /* others may wait that leave no marks */
}

static void what_we_own_is_refused_here(void **state)
{
    (void)state;
    own_among_waiters();
    struct simba_request *q = batch(1, SIMBA_CONTEND, "a");
    q->id = "you";
    run(q);
    assert_string_equal(server.said, "");
    assert_string_equal(runtime.answered, "a held");
    sql_notified(runtime.store, "a"); /* it was evicted, perhaps */
    q = batch(1, SIMBA_CONTEND, "a");
    q->id = "you";
    q->others = true;
    run(q);
    assert_string_equal(server.said, "contend a");
    run(batch(0, SIMBA_EVICT, "a")); /* by this very client, to whom nothing is notified */
    run(batch(1, SIMBA_CONTEND, "a"));
    assert_string_equal(server.said, "contend a");
}

static void who_was_refused_here_hears_of_a_loss(void **state)
{
    (void)state;
    own_among_waiters();
    server.lost = "a";
    server.others = "a";
    run(batch(0, SIMBA_RENEW, "a"));
    assert_string_equal(runtime.answered, "a lost");
    assert_string_equal(runtime.hinted, "a");
    struct simba_request *q = batch(1, SIMBA_CONTEND, "a");
    q->id = "you";
    run(q);
    assert_string_equal(server.said, "contend a, read a");
}

/* ---- notes --------------------------------------------------------------------------------- */

static struct simba_request *note_batch(enum simba_op op, const char *letters, bool needed)
{
    struct simba_request *list = batch(0, op, letters);
    for (struct simba_request *q = list; q != NULL; q = q->next) {
        q->with_note = true;
        q->needs_note = needed;
    }
    return list;
}

static void who_needs_a_note_makes_the_table(void **state)
{
    struct sql *s = runtime.store;
    (void)state;
    s->connection->session.makes_tables = true;
    run(note_batch(SIMBA_READ, "ab", true));
    assert_string_equal(server.said, "read_note ab, make_notes , read_note ab");
    assert_string_equal(runtime.answered, "a free, b free");
    server.has_notes = false; /* somebody has dropped it */
    run(batch(0, SIMBA_PUBLISH, "a"));
    assert_string_equal(server.said, "publish a");
    assert_string_equal(runtime.answered, "a failed");
    s->make_notes_after -= SQL_NOTES_MS; /* time passes */
    run(batch(0, SIMBA_PUBLISH, "a"));
    assert_string_equal(server.said, "publish a, make_notes , publish a");
    assert_string_equal(runtime.answered, "a done");
}

static void a_table_of_notes_that_cannot_be_made_is_not_tried_all_the_time(void **state)
{
    struct sql *s = runtime.store;
    (void)state;
    s->connection->session.makes_tables = server.refuses_tables = true;
    for (int times = 0; times < 2; times++) {
        run(note_batch(SIMBA_READ, "a", true));
        assert_string_equal(server.said, "read_note a, make_notes , read_note a");
        assert_string_equal(runtime.answered, "a failed");
        run(note_batch(SIMBA_READ, "a", true));
        assert_string_equal(server.said, "read_note a");
        s->make_notes_after -= SQL_NOTES_MS;
    }
    s->connection->session.makes_tables = false;
    run(note_batch(SIMBA_READ, "a", true));
    assert_string_equal(server.said, "read_note a");
}

/* One that was there before the first note shows it in the end. */
static void a_missing_table_of_notes_is_asked_for_again(void **state)
{
    struct sql *s = runtime.store;
    (void)state;
    run(note_batch(SIMBA_READ, "ab", false));
    assert_string_equal(server.said, "read_note ab, read ab");
    assert_string_equal(runtime.answered, "a free, b free");
    server.has_notes = true; /* another client has made it */
    run(note_batch(SIMBA_READ, "ab", false));
    assert_string_equal(server.said, "read ab");
    run(note_batch(SIMBA_LIST, "a", false));
    assert_string_equal(server.said, "list a");
    s->no_notes_until -= SQL_NOTES_MS; /* time passes */
    run(note_batch(SIMBA_READ, "ab", false));
    assert_string_equal(server.said, "read_note ab");
    run(note_batch(SIMBA_LIST, "a", false));
    assert_string_equal(server.said, "list_note a");
}

static void each_is_answered_without_memory(void **state)
{
    (void)state;
    bool failed = true;
    int failures = 0;
    let_server_tell();
    server.others = "lm";
    server.unmarked = "jk";
    server.locked_marks = "j";
    for (int after = 0; failed; after++) {
        server.locked = "ci";
        server.failing_commits = 1;
        struct simba_request *list = batch(0, SIMBA_RENEW, "abcda"), *last = list;
        while (last->next != NULL)
            last = last->next;
        last->next = batch(5, SIMBA_CONTEND, "hijkklm");
        fails_after = after;
        run(list);
        failed = fails_after < 0;
        fails_after = -1;
        failures += strstr(runtime.answered, "d failed") != NULL;
        for (int i = 0; i < 12; i++)
            assert_int_equal(runtime.answers[i], 1);
        server.locked = NULL;
        server.failing_commits = 0;
        run(batch(0, SIMBA_RENEW, "abcdefghij"));
        assert_null(strstr(runtime.answered, "failed"));
    }
    assert_true(failures > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_split_at_a_locked_row),
        TEST(several_locked_rows_are_answered_for_themselves),
        TEST(what_was_locked_is_not_waited_for_again),
        TEST(what_a_failed_commit_reported_is_forgotten),
        TEST(commits_that_fail_are_not_tried_for_ever),
        TEST(what_keeps_a_tenure_goes_first),
        TEST(of_one_tenure_one_renewal_is_enough),
        TEST(who_listens_polls_once),
        TEST(who_waits_leaves_marks),
        TEST(what_is_free_when_it_is_to_be_marked_is_asked_for),
        TEST(a_locked_row_does_not_keep_others_from_marks),
        TEST(a_mark_that_was_lost_is_left_again),
        TEST(a_mark_that_found_a_lock_is_left_later),
        TEST(a_new_waiter_is_polled_for_soon),
        TEST(what_another_has_got_from_us_is_polled_soon),
        TEST(a_refusal_does_not_hurry_a_poll),
        TEST(a_mutex_is_passed_on),
        TEST(a_pass_that_finds_nothing_is_a_release_and_a_question),
        TEST(who_waits_outside_gets_it_after_some_passes),
        TEST(what_we_own_is_refused_here),
        TEST(who_was_refused_here_hears_of_a_loss),
        TEST(who_needs_a_note_makes_the_table),
        TEST(a_table_of_notes_that_cannot_be_made_is_not_tried_all_the_time),
        TEST(a_missing_table_of_notes_is_asked_for_again),
        TEST(each_is_answered_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
