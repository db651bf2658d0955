/* rights.c: the line of rights that the store says is enough, and what it says if one is missing. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define LINE_MAX_BYTES 1024

static struct server server;

struct findings {
    char rules[LINE_MAX_BYTES], bad[LINE_MAX_BYTES];
    bool has_all;
};

static void on_finding(void *data, enum simba_level level, const char *line)
{
    struct findings *f = data;
    const char *rules = strstr(line, ">PASSWORD ");
    if (rules != NULL)
        snprintf(f->rules, sizeof f->rules, "%s", rules + strlen(">PASSWORD "));
    if (level == SIMBA_LOG_ERROR)
        snprintf(f->bad, sizeof f->bad, "%s", line);
    f->has_all = f->has_all || strstr(line, "has all rights") != NULL;
}

static struct findings diagnose(simba_client *s)
{
    struct findings f = {.has_all = false};
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, on_finding, &f));
    CHECK(f.has_all || f.bad[0] != '\0');
    return f;
}

static int open_as(const char *user, simba_client **out)
{
    char url[384];
    struct simba_owner owner;
    snprintf(url, sizeof url, "redis://%s:pw@127.0.0.1:%d?restart_guard=off", user, server.port);
    CHECK_OK(simba_open(url, NULL, out));
    return simba_read(*out, "m", PATIENCE_MS, &owner); /* the first exchange */
}

/* The line without one word of it. */
static void make_user(const char *user, const char *rules, const char *without)
{
    const char *word[64] = {"ACL", "SETUSER", user, "reset", "on", ">pw"};
    static char copy[LINE_MAX_BYTES];
    char *rest = NULL;
    int n = 6;
    snprintf(copy, sizeof copy, "%s", rules);
    for (char *w = strtok_r(copy, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        CHECK(n < 64);
        if (without == NULL || strcmp(w, without) != 0)
            word[n++] = w;
    }
    run(&server, "PING"); /* the connection is there */
    redisReply *r = redisCommandArgv(server.raw, n, word, NULL);
    CHECK(r != NULL && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
}

/* ---- enough -------------------------------------------------------------------------------- */

static _Atomic int changes, lines;
static char line_seen[512]; /* the first */

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
    atomic_fetch_add(&changes, 1);
}

static void on_entry(void *data, const struct simba_entry *entry)
{
    (void)entry;
    ++*(int *)data;
}

static void on_log(void *data, enum simba_level level, const char *line)
{
    (void)data;
    bool denied = strstr(line, "permission") != NULL || strstr(line, "cannot subscribe") != NULL;
    if (level <= SIMBA_LOG_WARN && denied && atomic_fetch_add(&lines, 1) == 0)
        snprintf(line_seen, sizeof line_seen, "%s", line);
}

static void use_all(const char *url)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    struct simba_handle_options h = lease(400, 8000), w = lease_long();
    simba_client *s = NULL;
    simba_locker *l = NULL;
    simba_contender *a = NULL, *b = NULL;
    simba_observer *one = NULL, *all = NULL;
    o.log = on_log;
    w.on_changed = on_changed;
    CHECK_OK(simba_open(url, &o, &s));
    CHECK_OK(simba_observer_create(s, "m", &w, &one));
    CHECK_OK(simba_observer_create(s, NULL, &w, &all));
    AWAIT(atomic_load(&changes) >= 1); /* nobody owns it */
    CHECK_OK(simba_locker_create(s, "m", NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    AWAIT(atomic_load(&changes) >= 3);
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_contender_create(s, "m", &h, &a)); /* renews several times, while b waits */
    CHECK_OK(simba_contender_create(s, "m", &h, &b));
    CHECK_OK(simba_contender_start(a));
    AWAIT(simba_contender_is_owner(a));
    CHECK_OK(simba_contender_start(b));
    nap(1500);
    CHECK(simba_contender_is_owner(a));
    int found = 0;
    CHECK_OK(simba_list(s, NULL, PATIENCE_MS, on_entry, &found));
    CHECK(found == 1);
    CHECK_OK(simba_evict(s, "m", NULL, false, PATIENCE_MS));
    CHECK_OK(simba_contender_stop(a));
    AWAIT(simba_contender_is_owner(b));
    CHECK_OK(simba_evict(s, "m", NULL, true, PATIENCE_MS));
    CHECK_OK(simba_contender_stop(b));
    simba_observer_destroy(one);
    simba_observer_destroy(all);
    client_close(s);
}

static void redis_rights_enough(void)
{
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    simba_client *s = NULL;
    char url[384];
    CHECK_OK(simba_open(server.url, NULL, &s));
    struct findings f = diagnose(s); /* also connects */
    client_close(s);
    CHECK(f.has_all && strstr(f.rules, "-@all") != NULL);
    make_user("simba", f.rules, NULL);
    CHECK_OK(open_as("simba", &s));
    struct findings as_user = diagnose(s);
    CHECK(as_user.has_all && as_user.bad[0] == '\0');
    CHECK(strcmp(as_user.rules, f.rules) == 0);
    client_close(s);
    run(&server, "SCRIPT FLUSH");
    snprintf(url, sizeof url, "redis://simba:pw@127.0.0.1:%d?restart_guard=off", server.port);
    use_all(url);
    const redisReply *refused = run(&server, "ACL LOG 1");
    if (refused->elements > 0) /* count, reason, context, object, ... */
        suite_fail(__FILE__, __LINE__, refused->element[0]->element[7]->str);
    if (atomic_load(&lines) > 0)
        suite_fail(__FILE__, __LINE__, line_seen);
    server_end(&server);
    folder_remove();
}

/* Any one of them is missed: at once, or when the store is asked how it is. */
static void redis_rights_missing(void)
{
    static const char user[] = "key-access"; /* newer servers name the user in what they say */
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    simba_client *s = NULL;
    CHECK_OK(simba_open(server.url, NULL, &s));
    struct findings f = diagnose(s); /* also connects */
    client_close(s);
    char copy[LINE_MAX_BYTES], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", f.rules);
    int tried = 0;
    for (char *w = strtok_r(copy, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        if (strchr("+&~", w[0]) == NULL)
            continue;
        char what[LINE_MAX_BYTES + 64];
        make_user(user, f.rules, w);
        run(&server, "SCRIPT FLUSH");
        int code = open_as(user, &s);
        struct findings poor = {.has_all = false};
        if (code == 0 || w[0] == '~')
            poor = diagnose(s);
        snprintf(what, sizeof what, "%s: code %d, %s", w, code, poor.bad);
        if (code != 0 ? code != SIMBA_EDENIED : poor.has_all)
            suite_fail(__FILE__, __LINE__, what);
        if ((code == 0 || w[0] == '~') && strstr(poor.bad, w) == NULL)
            suite_fail(__FILE__, __LINE__, what);
        if (w[0] != '+' && strchr(poor.bad, '+') != NULL) /* no command is to blame */
            suite_fail(__FILE__, __LINE__, what);
        client_close(s);
        tried++;
    }
    CHECK(tried > 30);
    server_end(&server);
    folder_remove();
}

/* All commands, but on the keys of others, or only to read: it is the keys that are named. */
static void redis_rights_keys(void)
{
    static const char *const rules[] = {"~other:* &* +@all", "%R~simba:* &* +@all"};
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        simba_client *s = NULL;
        make_user("poor", rules[i], NULL);
        open_as("poor", &s);
        struct findings f = diagnose(s);
        if (strcmp(f.bad, "the user lacks rights: ~simba:*") != 0)
            suite_fail(__FILE__, __LINE__, f.bad);
        client_close(s);
    }
    server_end(&server);
    folder_remove();
}

/* Databases that have keys are looked at when an epoch begins (T126): who may not do that is told so. */
static void redis_rights_select(void)
{
    simba_client *s = NULL;
    simba_locker *l = NULL;
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    make_user("poor", "~simba:* &* +@all -select", NULL);
    open_as("poor", &s);
    CHECK_OK(simba_locker_create(s, "m", NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS)); /* there is no other database */
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    run(&server, "SELECT 1");
    run(&server, "SET simba:epoch something");
    run(&server, "SELECT 0");
    run(&server, "DEL simba:epoch");
    open_as("poor", &s);
    CHECK_OK(simba_locker_create(s, "m", NULL, &l));
    CHECK_REFUSED(simba_locker_acquire(l, 0), SIMBA_EDENIED, "permission");
    client_close(s);
    make_user("poor", "~simba:* &* +@all", NULL);
    open_as("poor", &s);
    CHECK_OK(simba_locker_create(s, "m", NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS)); /* what is not ours there is left alone */
    client_close(s);
    run(&server, "SELECT 1");
    CHECK(strcmp(run(&server, "GET simba:epoch")->str, "something") == 0);
    server_end(&server);
    folder_remove();
}

struct question {
    simba_client *client;
    const char *mutex;
    int code;
};

static void *ask(void *arg)
{
    struct question *q = arg;
    struct simba_owner owner;
    q->code = simba_read(q->client, q->mutex, PATIENCE_MS, &owner);
    return NULL;
}

/* Some may be read and others not: who asks for both at once gets an answer for the former. They ask
 * before the client is connected, so all is in one call. */
static void redis_rights_some(void)
{
    struct question q[] = {{NULL, "yes-1", 1}, {NULL, "no", 1}, {NULL, "yes-2", 1}};
    pthread_t thread[3];
    simba_client *s = NULL;
    char url[384];
    folder_make();
    server = (struct server){.name = "a"};
    server_start(&server);
    make_user("some", "~simba:{yes* ~simba:epoch &* +@all", NULL);
    snprintf(url, sizeof url, "redis://some:pw@127.0.0.1:%d?restart_guard=off", server.port);
    kill(server.pid, SIGSTOP); /* it answers when all have asked */
    CHECK_OK(simba_open(url, NULL, &s));
    for (int i = 0; i < 3; i++) {
        q[i].client = s;
        CHECK(pthread_create(&thread[i], NULL, ask, &q[i]) == 0);
    }
    nap(300);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    CHECK_OK(q[0].code);
    CHECK(q[1].code == SIMBA_EDENIED);
    CHECK_OK(q[2].code);
    client_close(s);
    server_end(&server);
    folder_remove();
}

const struct test redis_rights_tests[] = {
    {"redis_rights_enough", redis_rights_enough, REDIS_ONLY, 0},
    {"redis_rights_missing", redis_rights_missing, REDIS_ONLY, 0},
    {"redis_rights_keys", redis_rights_keys, REDIS_ONLY, 0},
    {"redis_rights_select", redis_rights_select, REDIS_ONLY, 0},
    {"redis_rights_some", redis_rights_some, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
