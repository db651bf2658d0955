/* input.c: whatever a user may hand over: names, ids, durations, options and URLs. What is refused
 * is refused before anything is sent, with SIMBA_EINVAL and a text; the rest works bytewise. */
#include "suite.h"

#include <simba/backend.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *repeat(char c, size_t n)
{
    static char text[2][70000];
    static int turn;
    char *out = text[turn++ % 2];
    CHECK(n < sizeof text[0]);
    memset(out, c, n);
    out[n] = '\0';
    return out;
}

/* ---- names --------------------------------------------------------------------------------- */

static const char *const bad_names[] = {
    "",         " ",        "\t \n",        "\xff",
    "a\xc3",    "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
    "ab\x80 d", "\xe2\x82",
};

/* Both kinds of handle and both names go through the same rules. */
static void refuse(simba_client *s, const char *mutex, const char *id)
{
    struct simba_handle_options o = lease_long();
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    o.id = id;
    CHECK_REFUSED(simba_contender_create(s, mutex, &o, &c), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_locker_create(s, mutex, &o, &l), SIMBA_EINVAL, NULL);
}

static void names_refused(void)
{
    simba_client *s = client_open();
    struct simba_owner owner;
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        refuse(s, bad_names[i], NULL);
        refuse(s, "fine", bad_names[i]);
        CHECK_REFUSED(simba_read(s, bad_names[i], 100, &owner), SIMBA_EINVAL, NULL);
    }
    refuse(s, NULL, NULL);
    refuse(s, repeat('m', SIMBA_MUTEX_MAX + 1), NULL);
    refuse(s, repeat('m', 65536), NULL);
    refuse(s, "fine", repeat('i', SIMBA_ID_MAX + 1));
    refuse(s, "fine", repeat('i', 65536));
    CHECK_REFUSED(simba_read(s, NULL, 100, &owner), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_read(s, repeat('m', 67), 100, &owner), SIMBA_EINVAL, "66");
    client_close(s);
}

/* Takes the mutex under the id and reads it back. */
static void use(simba_client *s, const char *mutex, const char *id)
{
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    simba_locker *l = NULL;
    o.id = id;
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner));
    CHECK(simba_owner_is(&owner, id));
    CHECK(owner.token == simba_locker_token(l));
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner));
    CHECK(owner.token == 0);
    simba_locker_destroy(l);
}

static void names_hostile(void)
{
    static const char *const tails[] = {
        "'",
        "\"",
        "\\",
        "`",
        "%s%n",
        "' OR '1'='1",
        "'; DROP TABLE simba_mutex; --",
        "redis.call('del')",
        "]]",
        "${x}",
        "{x}",
        "\xf0\x9f\xa6\x81",
        "\xe7\xae\x80",
        "a b",
        "?ttl=1",
        "#",
        "&",
        "*",
        "-",
    };
    simba_client *s = client_open();
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        snprintf(mutex, sizeof mutex, "%s%s", fresh("h"), tails[i]);
        use(s, mutex, tails[i]);
    }
    char *longest = repeat('m', SIMBA_MUTEX_MAX);
    const char *start = fresh("x");
    memcpy(longest, start, strlen(start));
    use(s, longest, repeat('i', SIMBA_ID_MAX));
    client_close(s);
}

/* T20, T27: names that a collation or a cut would take for one are many, held at the same time. */
static void names_bytewise(void)
{
    static const char *const tails[] = {
        "job",
        "JOB",
        "Job",
        "job ",
        " job",
        "j\xc3\xb6"
        "b",
        "jo\xcc\x88"
        "b",
        "job\t",
    };
    enum { NAMES = sizeof tails / sizeof *tails };
    simba_client *s = client_open();
    const char *start = fresh("n");
    simba_locker *l[NAMES + 2];
    struct simba_handle_options o = lease_long();
    for (int i = 0; i < NAMES + 2; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        if (i < NAMES) {
            snprintf(mutex, sizeof mutex, "%s%s", start, tails[i]);
        } else { /* two of full length that differ in the last byte */
            snprintf(mutex, sizeof mutex, "%s%s", start, repeat('m', SIMBA_MUTEX_MAX));
            mutex[SIMBA_MUTEX_MAX - 1] = (char)('a' + i - NAMES);
        }
        CHECK_OK(simba_locker_create(s, mutex, &o, &l[i]));
        CHECK_OK(simba_locker_acquire(l[i], PATIENCE_MS));
    }
    for (int i = 0; i < NAMES + 2; i++)
        CHECK(simba_locker_is_held(l[i]));
    client_close(s);
}

/* An id that a collation would take for the owner's is somebody else's. */
static void ids_bytewise(void)
{
    static const char *const others[] = {"NODE-A", "node-a ", "Node-a", "node-\xc3\xa1", "node-"};
    simba_client *s = client_open();
    const char *mutex = fresh("ids");
    struct simba_handle_options o = lease_long();
    simba_locker *owner = NULL;
    o.id = "node-a";
    CHECK_OK(simba_locker_create(s, mutex, &o, &owner));
    CHECK_OK(simba_locker_acquire(owner, PATIENCE_MS));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        simba_locker *l = NULL;
        o.id = others[i];
        CHECK_OK(simba_locker_create(s, mutex, &o, &l));
        CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_EHELD);
    }
    CHECK_OK(simba_locker_release(owner));
    client_close(s);
}

static void ids_generated(void)
{
    char a[SIMBA_ID_MAX + 1], b[SIMBA_ID_MAX + 1], tiny[4];
    CHECK_OK(simba_id_host(a, sizeof a));
    CHECK_OK(simba_id_host(b, sizeof b));
    CHECK(strcmp(a, b) != 0);
    CHECK(strchr(a, '@') != NULL && strchr(a, ':') != NULL);
    char name[64];
    gethostname(name, sizeof name);
    name[sizeof name - 1] = '\0';
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name) && strlen(name) <= 40)
        CHECK(strncmp(strchr(a, '@') + 1, name, strlen(name)) == 0);
    CHECK_OK(simba_id_uuid(a, sizeof a));
    CHECK_OK(simba_id_uuid(b, sizeof b));
    CHECK(strlen(a) == 32 && strspn(a, "0123456789abcdef") == 32);
    CHECK(strcmp(a, b) != 0);
    CHECK(simba_id_host(tiny, sizeof tiny) < 0);
    CHECK(simba_id_uuid(tiny, sizeof tiny) < 0);
    simba_client *s = client_open();
    struct probe p[2] = {{0}, {0}};
    struct simba_handle_options o = lease_long();
    for (int i = 0; i < 2; i++)
        probe_create(&p[i], s, fresh("gen"), &o);
    CHECK(strcmp(simba_contender_id(p[0].c), simba_contender_id(p[1].c)) != 0);
    client_close(s);
}

/* ---- durations of handles ------------------------------------------------------------------ */

static void durations_refused(void)
{
    static const struct {
        int64_t ttl, transition, delay, renew, drain;
        const char *field; /* the text names it */
    } bad[] = {
        {0, 6000, -1, -1, -1, "ttl"},
        {-2, 6000, -1, -1, -1, "ttl"},
        {INT64_MIN, 6000, -1, -1, -1, "ttl"},
        {INT64_MAX, 6000, -1, -1, -1, "ttl"},
        {INT64_MAX, INT64_MAX, -1, -1, -1, "ttl"},
        {SIMBA_LEASE_MAX_MS, 1, -1, -1, -1, NULL},
        {10000, -2, -1, -1, -1, "transition"},
        {10000, INT64_MAX, -1, -1, -1, "transition"},
        {49, 0, -1, -1, -1, NULL},
        {30, 19, -1, -1, -1, NULL},
        {10000, 6000, -2, -1, -1, "delay"},
        {10000, 6000, -1, 10001, -1, "renew"},
        {10000, 6000, -1, -2, -1, "renew"},
        {10000, 6000, -1, INT64_MAX, -1, "renew"},
        {10000, 0, -1, 10000, -1, "renew"}, /* renewal would come with the end (T5) */
        {10000, 6000, -1, -1, -2, "drain"},
    };
    simba_client *s = client_open();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        simba_contender *c = NULL;
        simba_locker *l = NULL;
        o.ttl_ms = bad[i].ttl;
        o.transition_ms = bad[i].transition;
        o.initial_delay_ms = bad[i].delay;
        o.renew_ms = bad[i].renew;
        o.drain_ms = bad[i].drain;
        CHECK_REFUSED(simba_contender_create(s, "m", &o, &c), SIMBA_EINVAL, bad[i].field);
        CHECK_REFUSED(simba_locker_create(s, "m", &o, &l), SIMBA_EINVAL, bad[i].field);
    }
    client_close(s);
}

/* The shortest and the longest lease, no transition, and renewal only at the ttl. */
static void durations_at_limits(void)
{
    static const struct {
        int64_t ttl, transition, renew;
    } good[] = {
        {50, 0, -1},
        {SIMBA_LEASE_MAX_MS, 0, -1},
        {1, SIMBA_LEASE_MAX_MS - 1, -1},
        {2000, 1000, 2000},
        {-1, -1, -1},
    };
    simba_client *s = client_open();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        simba_contender *c = NULL;
        o.ttl_ms = good[i].ttl;
        o.transition_ms = good[i].transition;
        o.renew_ms = good[i].renew;
        CHECK_OK(simba_contender_create(s, fresh("limits"), &o, &c));
        CHECK_OK(simba_contender_start(c));
        CHECK_OK(simba_contender_wait(c, SIMBA_RUNNING, PATIENCE_MS));
    }
    client_close(s);
}

static void durations_parsed(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"500ms", 500}, {"10s", 10000}, {"5m", 300000}, {"1h", 3600000}, {"1d", 86400000},
        {"10", 10000},  {"0.5", 500},   {"1.5s", 1500}, {"0", 0},        {"0ms", 0},
    };
    static const char *const bad[] = {
        "",      " ", "abc", "1w", "-1s",   "+1s",  "1e3", " 1s", "1s ",
        "1 s",   "s", "ms",  ".",  "1.2.3", "0x10", "inf", "nan", "99999999999999999999s",
        "1h30m",
    };
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ms = -7;
        CHECK_OK(simba_duration_parse(good[i].text, &ms));
        CHECK(ms == good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_REFUSED(simba_duration_parse(bad[i], &ms), SIMBA_EINVAL, NULL);
    CHECK_REFUSED(simba_duration_parse(NULL, &ms), SIMBA_EINVAL, NULL);
}

static int no_work(void *data, const simba_run *run)
{
    (void)data;
    (void)run;
    return 0;
}

/* NULL instead of a client, a handle, a value or a place for the result is refused everywhere. */
static void null_client(void)
{
    struct simba_owner owner;
    struct simba_metrics m = SIMBA_METRICS_INIT;
    struct simba_schedule every = SIMBA_SCHEDULE_INIT;
    simba_contender *c;
    simba_locker *l;
    simba_observer *w;
    simba_scheduler *x;
    int64_t ms;
    CHECK_CODE(simba_open("memory:", NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_default_url(NULL, 0), SIMBA_EINVAL);
    CHECK_CODE(simba_duration_parse(NULL, &ms), SIMBA_EINVAL);
    CHECK_CODE(simba_duration_parse("1s", NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_id_host(NULL, 0), SIMBA_EINVAL);
    CHECK_CODE(simba_id_uuid(NULL, 0), SIMBA_EINVAL);
    CHECK(strcmp(simba_store_text(NULL), "") == 0);
    CHECK(simba_liveness_fd(NULL) == -1);
    CHECK_CODE(simba_read(NULL, "m", 0, &owner), SIMBA_EINVAL);
    CHECK_CODE(simba_list(NULL, NULL, 0, NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_evict(NULL, "m", NULL, false, 0), SIMBA_EINVAL);
    CHECK_CODE(simba_diagnose(NULL, 0, NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_examine(NULL, 0, NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_metrics_read(NULL, &m), SIMBA_EINVAL);
    CHECK_CODE(simba_metrics_each(NULL, NULL, NULL), SIMBA_EINVAL);
    CHECK(simba_metrics_prometheus(NULL, 1, 0, NULL, 0) == SIMBA_EINVAL);
    CHECK(simba_metrics_prometheus(NULL, 0, 2, NULL, 0) == SIMBA_EINVAL);
    CHECK_CODE(simba_poll_fd(NULL), SIMBA_EINVAL);
    CHECK(simba_poll_timeout(NULL) == SIMBA_EINVAL);
    CHECK_CODE(simba_poll(NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_contender_create(NULL, "m", NULL, &c), SIMBA_EINVAL);
    CHECK_CODE(simba_locker_create(NULL, "m", NULL, &l), SIMBA_EINVAL);
    CHECK_CODE(simba_observer_create(NULL, "m", NULL, &w), SIMBA_EINVAL);
    CHECK_CODE(simba_scheduler_create(NULL, "m", &every, no_work, NULL, &x), SIMBA_EINVAL);
    CHECK_OK(simba_close(NULL, 0));
}

static void null_handles(void)
{
    struct simba_state state;
    memset(&state, 1, sizeof state);
    CHECK_REFUSED(simba_contender_start(NULL), SIMBA_EINVAL, "NULL");
    CHECK_CODE(simba_contender_stop(NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_contender_wait(NULL, SIMBA_INITIAL, 0), SIMBA_EINVAL);
    CHECK(simba_contender_status(NULL) == SIMBA_INITIAL);
    CHECK(!simba_contender_is_owner(NULL) && !simba_contender_owns(NULL, 0));
    CHECK(simba_contender_token(NULL) == 0 && simba_contender_remaining(NULL) == 0);
    CHECK(strcmp(simba_contender_id(NULL), "") == 0);
    simba_contender_state(NULL, &state);
    CHECK(state.reason == SIMBA_UNCHANGED && state.after.token == 0);
    simba_contender_state(NULL, NULL);
    simba_contender_destroy(NULL);
    CHECK_REFUSED(simba_locker_acquire(NULL, 0), SIMBA_EINVAL, "NULL");
    CHECK_CODE(simba_locker_release(NULL), SIMBA_EINVAL);
    CHECK(!simba_locker_is_held(NULL) && simba_locker_token(NULL) == 0);
    CHECK(simba_locker_remaining(NULL) == 0 && strcmp(simba_locker_id(NULL), "") == 0);
    simba_locker_destroy(NULL);
    memset(&state, 1, sizeof state);
    simba_observer_state(NULL, &state);
    CHECK(state.reason == SIMBA_UNCHANGED && state.after.token == 0);
    simba_observer_destroy(NULL);
    CHECK(simba_scheduler_contender(NULL) == NULL);
    simba_scheduler_destroy(NULL);
    CHECK(simba_run_should_stop(NULL) && simba_run_token(NULL) == 0);
    CHECK(!simba_owner_is(NULL, "x") && !simba_owner_exists(NULL, 0));
    CHECK(!simba_owner_in_ttl(NULL, 0) && !simba_owner_in_transition(NULL, 0));
    CHECK(!simba_state_changed(NULL) && !simba_state_acquired(NULL, "x"));
    CHECK(!simba_state_released(NULL, "x"));
}

const struct test name_tests[] = {
    {"null_client", null_client, ANY_STORE, 0},
    {"null_handles", null_handles, ANY_STORE, 0},
    {"names_refused", names_refused, ANY_STORE, 0},
    {"names_hostile", names_hostile, ANY_STORE, 0},
    {"names_bytewise", names_bytewise, ANY_STORE, 0},
    {"ids_bytewise", ids_bytewise, ANY_STORE, 0},
    {"ids_generated", ids_generated, ANY_STORE, 0},
    {"durations_refused", durations_refused, ANY_STORE, 0},
    {"durations_at_limits", durations_at_limits, ANY_STORE, 0},
    {"durations_parsed", durations_parsed, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
