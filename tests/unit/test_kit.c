/* test_kit.c: what the stores share: requests that wait, pauses before connecting again, options of
 * URLs, passwords in files, calls on threads, a thread for a store that blocks. */
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "backend/kit/findings.h"
#include "backend/kit/handles.h"
#include "backend/kit/offload.h"
#include "backend/kit/password_file.h"
#include "backend/kit/pending.h"
#include "backend/kit/reconnect.h"
#include "backend/kit/worker.h"
#include "base/secrets.h"
#include "core/url.h"

/* ---- a host that remembers ----------------------------------------------------------------- */

static struct {
    char said[256]; /* who was answered, + if more come at once */
    int code, closed;
} heard;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    (void)host;
    size_t n = strlen(heard.said);
    snprintf(heard.said + n, sizeof heard.said - n, "%s%s ", q->mutex, answer->more ? "+" : "");
    heard.code = answer->code;
}

static void on_closed(struct simba_host *host)
{
    (void)host;
    heard.closed++;
}

static void on_say(struct simba_host *host, struct simba_request *q, const struct simba_finding *f)
{
    (void)host;
    snprintf(heard.said, sizeof heard.said, "%s %d %d %s", q->mutex, (int)f->kind, (int)f->level,
             f->text);
}

static struct simba_host host = {.answer = on_answer, .closed = on_closed, .say = on_say};

static int setup(void **state)
{
    (void)state;
    memset(&heard, 0, sizeof heard);
    return 0;
}

/* ---- requests that wait -------------------------------------------------------------------- */

static void pending_keeps_order(void **state)
{
    (void)state;
    struct simba_request a = {.mutex = "a"}, b = {.mutex = "b"}, c = {.mutex = "c"};
    struct pending p;
    pending_init(&p);
    a.next = &b;
    pending_add(&p, &a);
    pending_add(&p, &c);
    assert_ptr_equal(pending_take(&p), &a);
    assert_ptr_equal(b.next, &c);
    assert_null(p.first);
    b.next = NULL;
    pending_add(&p, &c);
    pending_put_back(&p, &a);
    pending_put_back(&p, NULL);
    pending_fail(&p, &host, SIMBA_ESTORE, "down");
    assert_string_equal(heard.said, "a+ b+ c ");
    assert_int_equal(heard.code, SIMBA_ESTORE);
    assert_null(p.first);
    assert_ptr_equal(p.last, &p.first);
}

/* ---- connecting again ---------------------------------------------------------------------- */

static void reconnect_pauses_grow(void **state)
{
    (void)state;
    struct reconnect r;
    static const int64_t longest[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};
    reconnect_init(&r);
    assert_true(reconnect_is_hopeful(&r));
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        int64_t pause = reconnect_pause(&r, 1000);
        assert_in_range(pause, longest[i] / 2, longest[i]);
        assert_false(reconnect_is_hopeful(&r));
    }
    reconnect_ready(&r, 5000);
    assert_in_range(reconnect_pause(&r, 5999), 500, 1000); /* it broke right away */
    reconnect_ready(&r, 7000);
    assert_in_range(reconnect_pause(&r, 8000), 1, 10);
    assert_true(reconnect_is_hopeful(&r));
    assert_in_range(reconnect_pause(&r, 8001), 25, 50);
}

/* ---- options ------------------------------------------------------------------------------- */

static char why[256];

static struct options options_of(struct simba_url *url, const char *text)
{
    assert_int_equal(url_parse(url, text, why, sizeof why), 0);
    why[0] = '\0';
    return (struct options){url, why, sizeof why};
}

static void options_are_read(void **state)
{
    (void)state;
    static const char *const choices[] = {"never", "on", "always", NULL};
    struct simba_url url;
    struct options o = options_of(&url, "x://h?a=on&b=off&c=maybe&d=20ms&e=2h&f=0&g=always");
    bool is_on = false, is_off = true, missing = true;
    int which = 7;
    int64_t ms = -1;
    char *text = NULL;
    assert_int_equal(options_switch(&o, "a", &is_on), 0);
    assert_int_equal(options_switch(&o, "b", &is_off), 0);
    assert_int_equal(options_switch(&o, "z", &missing), 0);
    assert_true(is_on && !is_off && missing);
    assert_int_equal(options_switch(&o, "c", &is_on), SIMBA_EINVAL);
    assert_string_equal(why, "option c is on or off");
    assert_int_equal(options_choice(&o, "z", choices, &which), 0);
    assert_int_equal(which, 7);
    assert_int_equal(options_choice(&o, "g", choices, &which), 0);
    assert_int_equal(which, 2);
    assert_int_equal(options_choice(&o, "c", choices, &which), SIMBA_EINVAL);
    assert_string_equal(why, "option c is never, on or always");
    assert_int_equal(options_duration(&o, "d", 10, 3600000, true, &ms), 0);
    assert_int_equal(ms, 20);
    assert_int_equal(options_duration(&o, "f", 10, 3600000, true, &ms), 0);
    assert_int_equal(ms, 0);
    assert_int_equal(options_duration(&o, "e", 10, 3600000, true, &ms), SIMBA_EINVAL);
    assert_string_equal(why, "option e is a duration from 10ms to 1h, or 0");
    assert_int_equal(options_duration(&o, "f", 100, 86400000, false, &ms), SIMBA_EINVAL);
    assert_string_equal(why, "option f is a duration from 100ms to 1d");
    assert_int_equal(options_duration(&o, "c", 1000, 60000, false, &ms), SIMBA_EINVAL);
    assert_string_equal(why, "option c is a duration from 1s to 1m");
    assert_int_equal(options_text(&o, "z", &text), 0);
    assert_null(text);
    assert_int_equal(options_text(&o, "g", &text), 0);
    assert_string_equal(text, "always");
    free(text);
    url_wipe(&url);
}

/* ---- passwords ----------------------------------------------------------------------------- */

/* What the file holds, and what is read: "!" and a part of why it is refused. */
static void check_file(const char *bytes, size_t count, const char *expected)
{
    char path[] = "/tmp/simba-test-XXXXXX", text[64];
    struct simba_url url;
    char *secret = NULL;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
    snprintf(text, sizeof text, "x://h?password_file=%s", path);
    struct options o = options_of(&url, text);
    int rc = password_file_read(&o, NULL, "password_file", &secret);
    assert_int_equal(rc, expected[0] == '!' ? SIMBA_EINVAL : 0);
    if (rc == 0)
        assert_string_equal(secret, expected);
    else
        assert_non_null(strstr(why, expected + 1));
    secrets_free(secret);
    assert_int_equal(password_file_read(&o, "other", "password_file", &secret), SIMBA_EINVAL);
    assert_non_null(strstr(why, "twice"));
    unlink(path);
    url_wipe(&url);
}

static void password_files_are_read(void **state)
{
    (void)state;
    static char longest[PASSWORD_FILE_MAX + 2];
    memset(longest, 'x', PASSWORD_FILE_MAX + 1);
    check_file("secret", 6, "secret");
    check_file("secret\n", 7, "secret");
    check_file("secret\r\n", 8, "secret");
    check_file(" a b \nnot this\n", 15, " a b ");
    check_file("", 0, "!empty");
    check_file("\n", 1, "!empty");
    check_file(longest, PASSWORD_FILE_MAX + 1, "!longer than 4096 bytes");
    longest[PASSWORD_FILE_MAX - 1] = '\n';
    check_file(longest, PASSWORD_FILE_MAX + 1, "!longer than 4096 bytes");
    longest[PASSWORD_FILE_MAX - 1] = 'x';
    longest[PASSWORD_FILE_MAX] = '\0';
    check_file(longest, PASSWORD_FILE_MAX, longest);
}

static void passwords_are_given(void **state)
{
    (void)state;
    struct simba_url url;
    char *secret = NULL;
    struct options o = options_of(&url, "x://h");
    assert_int_equal(password_file_read(&o, NULL, "password_file", &secret), 0);
    assert_null(secret);
    assert_int_equal(password_file_read(&o, "given", "password_file", &secret), 0);
    assert_string_equal(secret, "given");
    secrets_free(secret);
    secrets_free(NULL);
    url_wipe(&url);
    o = options_of(&url, "x://h?password_file=/does/not/exist");
    assert_int_equal(password_file_read(&o, NULL, "password_file", &secret), SIMBA_EINVAL);
    assert_string_equal(
        why, "option password_file: cannot read /does/not/exist: No such file or directory");
    url_wipe(&url);
}

/* ---- findings ------------------------------------------------------------------------------ */

static void findings_are_values(void **state)
{
    (void)state;
    struct simba_request q = {.mutex = "q"};
    const struct findings f = {&host, &q};
    findings_say(&f, SIMBA_LOG_WARN, "%d %s", 3, "servers");
    assert_string_equal(heard.said, "q 0 1 3 servers");
    findings_add(&f, (struct simba_finding){.kind = SIMBA_FINDING_TABLE, .level = SIMBA_LOG_INFO},
                 "one");
    assert_string_equal(heard.said, "q 2 2 one");
    heard.said[0] = '\0';
    findings_end(&f);
    assert_string_equal(heard.said, "q ");
    assert_int_equal(heard.code, 0);
}

/* ---- calls on threads, handles ------------------------------------------------------------- */

struct call {
    struct offload_call call;
    int *done, *freed; /* how many were */
    int go;            /* the thread waits until it can be read; -1: it does not */
};

static void run_call(struct offload_call *c)
{
    char byte;
    struct call *call = (struct call *)(void *)c;
    if (call->go >= 0)
        (void)!read(call->go, &byte, 1);
    assert_string_equal(offload_shared(c), "shared");
}

static void done_call(struct offload_call *c)
{
    ++*((struct call *)(void *)c)->done;
}

static void free_call(struct offload_call *c)
{
    __atomic_add_fetch(((struct call *)(void *)c)->freed, 1, __ATOMIC_SEQ_CST);
    free(c);
}

static struct call *start_call(struct offload *o, int go, int *done, int *freed)
{
    struct call *c = calloc(1, sizeof *c);
    *c = (struct call){{.run = run_call, .done = done_call, .free = free_call}, done, freed, go};
    assert_int_equal(offload_start(o, &c->call), 0);
    return c;
}

static int stores_freed, shares_freed;

static void free_store(void *store)
{
    assert_string_equal(store, "store");
    stores_freed++;
}

static void free_shared(void *shared)
{
    assert_string_equal(shared, "shared");
    __atomic_add_fetch(&shares_freed, 1, __ATOMIC_SEQ_CST);
}

static void offload_calls_and_leaves_behind(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_timer_t timer;
    struct handles handles;
    int go[2], done = 0, freed = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(pipe(go), 0);
    host.loop = &loop;
    handles_init(&handles, &host, free_store, (void *)(uintptr_t) "store");
    struct offload *o = offload_open(&loop, (void *)(uintptr_t) "shared", free_shared);
    assert_non_null(o);
    handles_add(&handles);
    handles_add_timer(&handles, &timer, NULL);
    start_call(o, -1, &done, &freed);
    while (done == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(freed, 1);
    struct call *forgotten = start_call(o, go[0], &done, &freed);
    offload_forget(&forgotten->call);
    start_call(o, go[0], &done, &freed); /* it still runs when all is closed */
    offload_close(o, handles_drop, &handles);
    handles_close(&handles, &timer);
    assert_int_equal(stores_freed, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(stores_freed, 1);
    assert_int_equal(heard.closed, 1);
    assert_int_equal(done, 1);
    assert_int_equal(__atomic_load_n(&shares_freed, __ATOMIC_SEQ_CST), 0);
    close(go[1]);
    while (__atomic_load_n(&shares_freed, __ATOMIC_SEQ_CST) == 0)
        sched_yield();
    assert_int_equal(__atomic_load_n(&freed, __ATOMIC_SEQ_CST), 3);
    close(go[0]);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- the worker ---------------------------------------------------------------------------- */

#define TICK_MS 20

struct slow_store {
    struct kit_worker worker;
    sem_t polled, ended;
    int answered;
};

/* Takes a while, in which the thread comes and finds it busy. */
static struct simba_request *run_slowly(void *store, struct simba_request **batch, bool may_wait)
{
    struct slow_store *s = store;
    struct simba_request *all = *batch;
    int64_t until = simba_now() + TICK_MS / 2;
    (void)may_wait;
    *batch = NULL;
    worker_tick(&s->worker, TICK_MS);
    worker_need(&s->worker);
    while (simba_now() < until)
        sched_yield();
    return all;
}

static void answer_slowly(void *store, struct simba_request *done)
{
    for (; done != NULL; done = done->next)
        ((struct slow_store *)store)->answered++;
}

static void poll_slowly(void *store)
{
    sem_post(&((struct slow_store *)store)->polled);
}

static void end_slowly(void *store)
{
    sem_post(&((struct slow_store *)store)->ended);
}

static bool comes(sem_t *sem)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    return sem_timedwait(sem, &until) == 0;
}

/* Another thread works in place of the worker's, which is needed meanwhile. After that nobody
 * works: still it ticks, and ends. */
static void worker_ticks_after_help(void **state)
{
    (void)state;
    struct simba_request q = {.mutex = "q"};
    struct slow_store s = {.worker = {.store = &s,
                                      .run = run_slowly,
                                      .answer = answer_slowly,
                                      .idle = poll_slowly,
                                      .end = end_slowly}};
    sem_init(&s.polled, 0, 0);
    sem_init(&s.ended, 0, 0);
    worker_init(&s.worker, "test");
    worker_submit(&s.worker, &q);
    worker_work(&s.worker, true);
    assert_int_equal(s.answered, 1);
    assert_true(comes(&s.polled));
    assert_true(comes(&s.polled));
    worker_stop(&s.worker);
    assert_true(comes(&s.ended));
    worker_join(&s.worker);
    sem_destroy(&s.polled);
    sem_destroy(&s.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pending_keeps_order, setup),
        cmocka_unit_test_setup(reconnect_pauses_grow, setup),
        cmocka_unit_test_setup(options_are_read, setup),
        cmocka_unit_test_setup(password_files_are_read, setup),
        cmocka_unit_test_setup(passwords_are_given, setup),
        cmocka_unit_test_setup(findings_are_values, setup),
        cmocka_unit_test_setup(offload_calls_and_leaves_behind, setup),
        cmocka_unit_test_setup(worker_ticks_after_help, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
