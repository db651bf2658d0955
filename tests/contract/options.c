/* options.c: URLs and the options of a client. None of this reaches a store; it runs on every one
 * because a store has its own part of the URL to check. */
#include "suite.h"

#include <simba/backend.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void url_refused_text(const char *url, int want, const char *part)
{
    simba_client *s = NULL;
    int code = simba_open(url, NULL, &s);
    if (code == 0)
        dprintf(2, "accepted: %s\n", url);
    CHECK_REFUSED(code, want, part);
    CHECK(strstr(simba_error_text(), "s3cr3t") == NULL);
}

static void urls_refused(void)
{
    static const char *const bad[] = {
        "",
        " ",
        "memory",
        ":",
        "://",
        "memory :x",
        "1memory:x",
        "me_mory:x",
        "../evil:x",
        "memory:x?ttl=abc",
        "memory:x?ttl=-1s",
        "memory:x?ttl=0",
        "memory:x?ttl",
        "memory:x?=1",
        "memory:x?ttl=1w",
        "memory:x?transition=-1",
        "memory:x?ttl=10ms&transition=10ms",
        "memory:%00",
        "memory:%zz",
        "memory:x?ttl=9999999999999999999s",
        "memory:\xff",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        url_refused_text(bad[i], SIMBA_EINVAL, NULL);
    static char huge[70000] = "memory:";
    memset(huge + 7, 'x', sizeof huge - 8);
    url_refused_text(huge, SIMBA_EINVAL, NULL);
}

/* A scheme nobody serves: what is missing is said, and where it would have been sought. */
static void scheme_unknown(void)
{
    url_refused_text("nosuch:x", SIMBA_EMODULE, "nosuch");
    url_refused_text("nosuch://h:1/x", SIMBA_EMODULE, "nosuch");
    url_refused_text("nosuch://user:s3cr3t@host/db", SIMBA_EMODULE, "nosuch");
}

static void option_unknown(void)
{
    url_refused_text("memory:x?tll=5s", SIMBA_EINVAL, "ttl");
    url_refused_text("memory:x?transitoin=5s", SIMBA_EINVAL, "transition");
    url_refused_text("memory:x?comand_timeout=5s", SIMBA_EINVAL, "command_timeout");
    url_refused_text("memory:x?TTL=5s", SIMBA_EINVAL, "a-z");
}

/* Not in an error of any kind, and not by way of a mistake in another part. */
static void password_never_shown(void)
{
    static const char *const bad[] = {
        "nosuch://u:s3cr3t@h:65536/0", "nosuch://u:s3cr3t@h:0/0", "nosuch://u:s3cr3t@h:x/0",
        "nosuch://u:s3cr3t@h/0?tll=1", "nosuch://:s3cr3t@h/0",    "nosuch://u:s3cr3t%@h",
        "nosuch://u:s3cr3t@[::1/0",    "nosuch://u:s3cr3t@",      "memory:x?password=s3cr3t",
        "nosuch://u:s3cr3t%00@h",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        simba_client *s = NULL;
        CHECK(simba_open(bad[i], NULL, &s) < 0);
        CHECK(*simba_error_text() != '\0');
        CHECK(strstr(simba_error_text(), "s3cr3t") == NULL);
    }
}

/* ---- option structures --------------------------------------------------------------------- */

static void options_refused(void)
{
    static const struct simba_options init = SIMBA_OPTIONS_INIT;
    struct simba_options bad[12];
    for (int i = 0; i < 12; i++)
        bad[i] = init;
    bad[0].size = 0;
    bad[1].size = 8;
    bad[2].size = sizeof(struct simba_options) - 1;
    bad[3].ttl_ms = 0;
    bad[4].ttl_ms = -2;
    bad[5].ttl_ms = INT64_MAX;
    bad[6].transition_ms = -2;
    bad[7].ttl_ms = 30, bad[7].transition_ms = 10;
    bad[8].connect_timeout_ms = -2;
    bad[9].command_timeout_ms = -2;
    bad[10].drift_ppm = -2;
    bad[11].drift_ppm = 1000000;
    for (int i = 0; i < 12; i++) {
        simba_client *s = NULL;
        int code = simba_open(suite_url(), &bad[i], &s);
        if (code == 0)
            dprintf(2, "accepted: number %d\n", i);
        CHECK_REFUSED(code, SIMBA_EINVAL, NULL);
    }
    simba_client *s = NULL;
    struct simba_executor none = {0};
    struct simba_options o = init;
    o.executor = &none;
    CHECK_REFUSED(simba_open(suite_url(), &o, &s), SIMBA_EINVAL, NULL);
}

static void handle_options_refused(void)
{
    static const size_t sizes[] = {0, 1, 8, sizeof(struct simba_handle_options) - 1};
    simba_client *s = client_open();
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        o.size = sizes[i];
        CHECK_REFUSED(simba_contender_create(s, "m", &o, &c), SIMBA_EINVAL, NULL);
        CHECK_REFUSED(simba_locker_create(s, "m", &o, &l), SIMBA_EINVAL, NULL);
    }
    client_close(s);
}

/* The client's durations are the handles' defaults, and the URL's are the client's. */
static void options_layered(void)
{
    char url[512];
    const char *joint = strchr(suite_url(), '?') != NULL ? "&" : "?";
    snprintf(url, sizeof url, "%s%sttl=20s&transition=10s", suite_url(), joint);
    simba_client *s[2] = {NULL, NULL};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.ttl_ms = 3000;
    options.transition_ms = 0;
    CHECK_OK(simba_open(url, NULL, &s[0]));
    CHECK_OK(simba_open(url, &options, &s[1]));
    static const int64_t ttl[] = {20000, 3000}, transition[] = {10000, 0};
    for (int i = 0; i < 2; i++) {
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        struct probe p = {0};
        struct simba_state state;
        probe_start(&p, s[i], fresh("layers"), &o);
        AWAIT(probe_leads(&p));
        simba_contender_state(p.c, &state);
        CHECK(state.after.transition_at - state.after.ttl_at == transition[i]);
        CHECK(state.after.ttl_at <= simba_now() + ttl[i]);
        CHECK(simba_contender_remaining(p.c) < ttl[i] + transition[i]);
        CHECK(i == 1 || simba_contender_remaining(p.c) > 10000);
        client_close(s[i]);
    }
}

static void url_from_environment(void)
{
    simba_client *s = NULL;
    CHECK(setenv("SIMBA_URL", suite_url(), 1) == 0);
    CHECK_OK(simba_open(NULL, NULL, &s));
    client_close(s);
    CHECK(setenv("SIMBA_URL", "nosuch:x", 1) == 0);
    CHECK_REFUSED(simba_open(NULL, NULL, &s), SIMBA_EMODULE, NULL);
    s = client_open(); /* what is given wins */
    client_close(s);
}

static void faults_refused(void)
{
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    simba_client *s = client_open();
    f.size = 0;
    CHECK_CODE(simba_memory_set_faults(suite_url(), &f), SIMBA_EINVAL);
    client_close(s);
}

/* ---- constants and helpers ----------------------------------------------------------------- */

static void every_error_has_a_text(void)
{
#define SIMBA_X(name, code, text) CHECK(strcmp(simba_strerror(SIMBA_E##name), text) == 0);
    SIMBA_ERRORS(SIMBA_X)
#undef SIMBA_X
    CHECK(simba_strerror(0) != NULL && *simba_strerror(0) != '\0');
    CHECK(simba_strerror(-9999) != NULL && *simba_strerror(-9999) != '\0');
    CHECK(simba_strerror(INT32_MIN) != NULL);
    CHECK(simba_error_text() != NULL);
    CHECK(strstr(simba_version(), "0.1") != NULL);
    int64_t now = simba_now();
    CHECK(simba_wall_ms(now + 1000) - simba_wall_ms(now) >= 0);
    CHECK(simba_now() >= now);
}

static void state_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

static void nothing(void *data)
{
    (void)data;
}

static void in_danger(void *data, const char *mutex, int64_t left_ms)
{
    (void)data;
    (void)mutex;
    (void)left_ms;
}

/* What a handle would ignore, it refuses: nobody relies on an option in vain. */
static void foreign_options_refused(void)
{
    enum { CONTENDER = 1, LOCKER = 2, OBSERVER = 4 };
    static const struct {
        const char *name;
        int taken_by;
    } option[] = {
        {"on_acquired", CONTENDER},
        {"on_released", CONTENDER},
        {"on_stopped", CONTENDER},
        {"progress_ms", CONTENDER},
        {"on_lost", LOCKER},
        {"on_endangered", CONTENDER | LOCKER},
        {"at_least_ms", CONTENDER | LOCKER},
        {"on_changed", OBSERVER},
    };
    simba_client *s = client_open();
    for (size_t i = 0; i < sizeof option / sizeof option[0]; i++) {
        struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        simba_contender *c = NULL;
        simba_locker *l = NULL;
        simba_observer *w = NULL;
        o.on_acquired = i == 0 ? state_changed : NULL;
        o.on_released = i == 1 ? state_changed : NULL;
        o.on_stopped = i == 2 ? nothing : NULL;
        o.progress_ms = i == 3 ? 1000 : SIMBA_DEFAULT;
        o.on_lost = i == 4 ? state_changed : NULL;
        o.on_endangered = i == 5 ? in_danger : NULL;
        o.at_least_ms = i == 6 ? 1 : SIMBA_DEFAULT;
        o.on_changed = i == 7 ? state_changed : NULL;
        if ((option[i].taken_by & CONTENDER) != 0)
            CHECK_OK(simba_contender_create(s, "x", &o, &c));
        else
            CHECK_REFUSED(simba_contender_create(s, "x", &o, &c), SIMBA_EINVAL, option[i].name);
        if ((option[i].taken_by & LOCKER) != 0)
            CHECK_OK(simba_locker_create(s, "x", &o, &l));
        else
            CHECK_REFUSED(simba_locker_create(s, "x", &o, &l), SIMBA_EINVAL, option[i].name);
        o.on_changed = state_changed;
        if ((option[i].taken_by & OBSERVER) == 0)
            CHECK_REFUSED(simba_observer_create(s, "x", &o, &w), SIMBA_EINVAL, option[i].name);
    }
    client_close(s);
}

const struct test option_tests[] = {
    {"urls_refused", urls_refused, ANY_STORE, 0},
    {"scheme_unknown", scheme_unknown, ANY_STORE, 0},
    {"option_unknown", option_unknown, ANY_STORE, 0},
    {"password_never_shown", password_never_shown, ANY_STORE, 0},
    {"options_refused", options_refused, ANY_STORE, 0},
    {"handle_options_refused", handle_options_refused, ANY_STORE, 0},
    {"foreign_options_refused", foreign_options_refused, ANY_STORE, 0},
    {"options_layered", options_layered, ANY_STORE, 0},
    {"url_from_environment", url_from_environment, ANY_STORE, 0},
    {"faults_refused", faults_refused, MEMORY_FAULTS, 0},
    {"every_error_has_a_text", every_error_has_a_text, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
