/* doctor.c: what a store says about itself: as it is at that moment, without the loop waiting for
 * anybody. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

#define TEXT_MAX 8192

static struct ensemble e;
static char said[TEXT_MAX]; /* a line each, with E, W or I in front */

static void begin(int servers, const char *java)
{
    folder_make();
    e = (struct ensemble){.servers = servers, .java = java};
    ensemble_start(&e);
}

static void end(void)
{
    ensemble_end(&e);
    folder_remove();
}

static void on_finding(void *data, enum simba_level level, const char *line)
{
    size_t used = strlen(said);
    (void)data;
    CHECK(strstr(line, "secret") == NULL);
    snprintf(said + used, sizeof said - used, "%c %s\n",
             level == SIMBA_LOG_ERROR  ? 'E'
             : level == SIMBA_LOG_WARN ? 'W'
                                       : 'I',
             line);
}

static void ask(simba_client *s)
{
    said[0] = '\0';
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, on_finding, NULL));
}

static bool was_late(void)
{
    return strstr(said, "timed out") != NULL || strstr(said, "not answer in time") != NULL ||
           strstr(said, "no session with the servers") != NULL;
}

/* A server on a busy machine may need longer than the doctor waits for it: then it is asked again. */
static void ask_until(simba_client *s, const char *part)
{
    AWAIT((ask(s), strstr(said, part) != NULL && !was_late()));
}

static bool says(const char *part)
{
    if (strstr(said, part) != NULL)
        return true;
    dprintf(STDERR_FILENO, "no '%s' in:\n%s", part, said);
    return false;
}

static simba_client *open_like(const char *url, struct simba_handle_options like)
{
    simba_client *s = NULL;
    struct simba_options o = SIMBA_OPTIONS_INIT;
    o.ttl_ms = like.ttl_ms;
    o.transition_ms = like.transition_ms;
    CHECK_OK(simba_open(url, &o, &s));
    return s;
}

static bool has_error(void)
{
    return said[0] == 'E' || strstr(said, "\nE ") != NULL;
}

/* Its version and role, the timeout and its bounds, the rights. */
static void zookeeper_doctor_one(void)
{
    begin(1, NULL);
    simba_client *s = open_like(e.url, lease(2000, 1000));
    ask_until(s, "from 200 to 60000 ms"); /* also as the first thing of all */
    CHECK(says("ZooKeeper 3.") && says("standalone") && says("our session"));
    CHECK(says("W a single server"));
    CHECK(says("session timeout 3000 ms, as asked for"));
    CHECK(says("I rights: nodes can be made in /, where our root is to be"));
    CHECK(says("W anybody who reaches the server can delete our nodes"));
    CHECK(!has_error());
    CHECK(raw_children(&e, "/simba", NULL, 0) == ZNONODE); /* nothing is left of it */
    CHECK(raw_children(&e, "/", NULL, 0) == 1);            /* zookeeper */
    client_close(s);

    s = open_like(e.url, lease(80000, 1000));
    ask_until(s, "W the server allows no session longer than 60000 ms");
    client_close(s);
    s = open_like(e.url, lease(50, 50));
    ask_until(s, "W the server allows no session shorter than 200 ms");
    client_close(s);
    end();
}

static void zookeeper_doctor_ensemble(void)
{
    begin(3, NULL);
    simba_client *s = open_like(e.url, lease_long()),
                 *one = open_like(ensemble_url(&e, 1, NULL), lease_long());
    ask_until(s, "I all 3 servers serve: 1 of them may fail");
    CHECK(says("leader") && says("follower"));
    CHECK(!has_error());
    ask_until(one, "W the URL names 1 of the 3 servers");
    client_close(one);
    ensemble_kill(&e, 2);
    for (int i = 0; i < 2; i++)
        ensemble_await(&e, i);
    ask_until(s, "W 2 of 3 servers serve: when one more fails nobody can own anything");
    CHECK(says("connection refused"));
    CHECK(!has_error());
    ensemble_kill(&e, 1); /* no majority: no session either, but it is said */
    simba_client *late = open_like(e.url, lease_long());
    AWAIT((ask(late), strstr(said, "runs, but serves nobody") != NULL)); /* it notices in a while */
    CHECK(says("E 0 of 3 servers serve, and it takes 2"));
    CHECK(says("E no session with the servers"));
    client_close(late);
    client_close(s);
    end();
}

/* Somebody else's tree: what is missing is said, and it is enough. */
static void zookeeper_doctor_rights(void)
{
    char url[160];
    begin(1, NULL);
    CHECK(raw_create_readable(&e, "/theirs") == ZOK);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d/theirs", e.port[0]);
    simba_client *s = open_like(url, lease_long());
    ask_until(s, "E rights: no node can be made in /theirs, where our root is to be");
    CHECK(says("setAcl /theirs world:anyone:cr"));
    client_close(s);
    snprintf(url, sizeof url, "zookeeper://me:my-secret@127.0.0.1:%d/theirs", e.port[0]);
    s = open_like(url, lease_long());
    ask_until(s, "setAcl /theirs digest:me:HASH:cr");
    client_close(s);
    snprintf(url, sizeof url, "zookeeper://me:my-secret@127.0.0.1:%d", e.port[0]);
    s = open_like(url, lease_long());
    ask_until(s, "I rights: nodes can be made in /, where our root is to be");
    CHECK(!has_error() && strstr(said, "anybody") == NULL);
    client_close(s);
    end();
}

/* Our root is ours, but what is above is not: there are mutexes, and no notes. */
static void zookeeper_doctor_notes(void)
{
    char url[160];
    struct simba_note note;
    struct simba_handle_options like = lease_long();
    simba_locker *l = NULL;
    begin(1, NULL);
    CHECK(raw_create(&e, "/theirs", "") == ZOK && raw_create(&e, "/theirs/simba", "") == ZOK);
    CHECK(raw_make_readable(&e, "/theirs") == ZOK);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d/theirs", e.port[0]);
    simba_client *s = open_like(url, like);
    CHECK_OK(simba_locker_create(s, "m", &like, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_REFUSED(simba_locker_publish(l, "x", PATIENCE_MS), SIMBA_EDENIED, "/theirs/simba-notes");
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(note.token == 0 && simba_locker_is_held(l));
    ask_until(s, "W rights: no node can be made in /theirs, where /theirs/simba-notes is to be");
    CHECK(says("I rights: nodes can be made in /theirs/simba, and deleted below"));
    CHECK(!has_error());
    client_close(s);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d/ours", e.port[0]);
    s = open_like(url, like);
    CHECK_OK(simba_locker_create(s, "m", &like, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    ask_until(s, "I rights: notes can be kept in /ours/simba-notes");
    CHECK_OK(simba_locker_publish(l, "x", PATIENCE_MS));
    ask_until(s, "I rights: notes can be kept in /ours/simba-notes");
    client_close(s);
    end();
}

/* A server that hides how it is set up (srvr it always answers): no fault, and how to see it is
 * said. */
static void zookeeper_doctor_hidden(void)
{
    begin(1, "-Dzookeeper.4lw.commands.whitelist=ruok");
    simba_client *s = open_like(e.url, lease_long());
    ask_until(s, "they do not say");
    CHECK(says("4lw.commands.whitelist=srvr,conf"));
    CHECK(says("our session") && says("I rights: nodes can be made"));
    CHECK(!has_error());
    client_close(s);
    end();
}

/* One that takes connections and says nothing. Meanwhile others of the client are served; and it
 * can be closed in the middle. */
static atomic_bool asked;

static void *ask_there(void *s)
{
    said[0] = '\0';
    simba_diagnose(s, PATIENCE_MS, on_finding, NULL);
    atomic_store(&asked, true);
    return NULL;
}

static void zookeeper_doctor_waits_for_nobody(void)
{
    char url[160];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    begin(1, NULL);
    CHECK(bind(mute, (struct sockaddr *)&a, size) == 0 && listen(mute, 64) == 0);
    CHECK(getsockname(mute, (struct sockaddr *)&a, &size) == 0);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d,127.0.0.1:%d", e.port[0],
             ntohs(a.sin_port));
    simba_client *s = open_like(url, lease_long());
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(s, "m", NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    /* Hundreds, in the second and a half that the mute one is given; a machine that stands still
     * for just as long leaves no time for any. */
    int64_t until = simba_now() + PATIENCE_MS;
    pthread_t asks;
    for (int served = 0; served <= 2;) {
        CHECK(simba_now() < until);
        served = 0;
        atomic_store(&asked, false);
        asks = spawn(ask_there, s);
        while (!atomic_load(&asked)) {
            CHECK_OK(simba_locker_release(l));
            CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
            served++;
        }
        join(asks);
        CHECK(says("no answer: connection timed out"));
    }
    CHECK_OK(simba_locker_release(l));
    simba_locker_destroy(l);
    asks = spawn(ask_there, s);
    nap(200);
    client_close(s);
    join(asks);
    close(mute);
    end();
}

const struct test zookeeper_doctor_tests[] = {
    {"zookeeper_doctor_one", zookeeper_doctor_one, ZOOKEEPER_ONLY, 0},
    {"zookeeper_doctor_ensemble", zookeeper_doctor_ensemble, ZOOKEEPER_ONLY, 0},
    {"zookeeper_doctor_rights", zookeeper_doctor_rights, ZOOKEEPER_ONLY, 0},
    {"zookeeper_doctor_notes", zookeeper_doctor_notes, ZOOKEEPER_ONLY, 0},
    {"zookeeper_doctor_hidden", zookeeper_doctor_hidden, ZOOKEEPER_ONLY, 0},
    {"zookeeper_doctor_waits_for_nobody", zookeeper_doctor_waits_for_nobody, ZOOKEEPER_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
