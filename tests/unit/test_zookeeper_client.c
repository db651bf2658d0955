/* test_zookeeper_client.c: a client's contenders in a queue, against a server of which the test
 * says what it answers, and when. */
#include "backend/zookeeper/latch_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SESSION 7
#define TIMEOUT_MS 16000
#define BEATS 10
#define LATE_MS 12000 /* after so long a silence the first write is worth less than a third */

static struct world {
    struct simba_host host;
    struct latch_client client;
    struct latch_session session;
    int64_t now, beat_at; /* 0: there is no beat */
    struct latch_flight *flight[LATCH_ASKS];
    char node[LATCH_NAME_SIZE + 10]; /* "": there is none */
    bool writes, touches;            /* one is under way */
    int64_t czxid;                   /* of that node */
    struct simba_request contends, leaves, before;
    int answers;
    struct simba_answer answer; /* the last one */
} world;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    (void)host;
    (void)q;
    world.answers++;
    world.answer = *answer;
}

static void on_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    (void)host;
    (void)mutex;
    (void)id;
}

static struct latch_session *session_for(struct latch_client *c, int64_t lease_ms)
{
    (void)c;
    (void)lease_ms;
    return &world.session;
}

static bool send_ask(struct latch_flight *f, const char *node, bool watch)
{
    (void)watch;
    world.flight[f->ask] = f;
    if (f->ask == LATCH_ASK_CREATE)
        snprintf(world.node, sizeof world.node, "%s0000000001", node);
    return true;
}

static bool write_once(struct latch_session *s)
{
    (void)s;
    return world.writes = true;
}

static bool touch(struct latch_session *s)
{
    (void)s;
    return world.touches = true;
}

static void heartbeat_in(struct latch_session *s, int64_t ms)
{
    (void)s;
    world.beat_at = world.now + ms;
}

static void watch_own_in(struct latch_session *s, int64_t ms)
{
    (void)s;
    (void)ms;
}

static void read_owner(struct latch_session *s, struct simba_request *q)
{
    static const struct simba_answer nobody = {.age_ms = -1};
    on_answer(s->client->host, q, &nobody);
}

static const struct latch_io io = {.session = session_for,
                                   .send = send_ask,
                                   .write = write_once,
                                   .touch = touch,
                                   .heartbeat_in = heartbeat_in,
                                   .watch_own_in = watch_own_in,
                                   .read = read_owner};

/* The server answers one thing that it was asked. */
static void reply(enum latch_ask ask)
{
    char *names[] = {world.node};
    struct latch_flight *f = world.flight[ask];
    struct latch_result r = {.reply = LATCH_DONE};
    assert_non_null(f);
    world.flight[ask] = NULL;
    if (ask == LATCH_ASK_CREATE) {
        r.name = world.node;
        r.czxid = ++world.czxid;
        r.owner = SESSION;
    } else if (ask == LATCH_ASK_LIST) {
        r.names = names;
        r.count = world.node[0] != '\0';
    } else if (ask == LATCH_ASK_DELETE) {
        world.node[0] = '\0';
    }
    zk_latch_client_replied(f, &r, world.now);
}

/* The next beat, and what it sent is answered at once. */
static void beat(void)
{
    static const struct latch_result done = {.reply = LATCH_DONE};
    assert_int_not_equal(world.beat_at, 0);
    world.now = world.beat_at;
    world.beat_at = 0;
    zk_latch_session_heartbeat(&world.session, world.now);
    if (world.writes) {
        world.writes = false;
        zk_latch_session_written(&world.session, &done, world.now);
    }
    if (world.touches) {
        world.touches = false;
        zk_latch_session_touched(&world.session, true, world.now);
    }
}

static int set_up(void **state)
{
    (void)state;
    world = (struct world){.host = {.answer = on_answer, .hint_one = on_hint_one}};
    assert_int_equal(zk_latch_client_init(&world.client, &world.host, &io), 0);
    zk_latch_session_init(&world.session, &world.client, TIMEOUT_MS);
    zk_latch_session_connected(&world.session, SESSION, TIMEOUT_MS, 0, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    zk_latch_session_close(&world.session, world.now);
    zk_latch_client_free(&world.client);
    return 0;
}

static struct simba_request ask(enum simba_op op)
{
    return (struct simba_request){
        .op = op, .mutex = "m", .id = "me", .ttl_ms = 10000, .transition_ms = 6000};
}

/* It leads, but what the session is worth just now is too little to begin with. */
static void contend(void)
{
    world.now = LATE_MS;
    world.contends = ask(SIMBA_CONTEND);
    zk_latch_client_submit(&world.client, &world.contends, world.now);
    reply(LATCH_ASK_CREATE);
    reply(LATCH_ASK_LIST);
    assert_int_equal(world.answers, 0);
}

static void await_grant(void)
{
    for (int i = 0; i < BEATS && world.answers == 0; i++) {
        beat();
        if (world.flight[LATCH_ASK_CREATE] != NULL)
            reply(LATCH_ASK_CREATE);
        if (world.flight[LATCH_ASK_LIST] != NULL)
            reply(LATCH_ASK_LIST);
    }
    assert_int_equal(world.answers, 1);
    assert_true(world.answer.granted);
    assert_true(world.answer.left_ms >= TIMEOUT_MS / 3);
}

static void who_leads_waits_until_it_is_worth_it(void **state)
{
    (void)state;
    contend();
    await_grant();
}

/* Nobody else is there for whom the session would write. */
static void who_leaves_meanwhile_is_answered(void **state)
{
    (void)state;
    contend();
    world.leaves = ask(SIMBA_LEAVE);
    zk_latch_client_submit(&world.client, &world.leaves, world.now);
    reply(LATCH_ASK_DELETE);
    for (int i = 0; i < BEATS; i++)
        beat();
    assert_int_equal(world.answers, 2);
    assert_int_equal(world.session.members_count, 0);
}

/* By another hand. What it asked for waits for a write, and then it joins again. */
static void who_loses_its_node_meanwhile_joins_again(void **state)
{
    (void)state;
    contend();
    zk_latch_queue_event(&world.session, "m", world.node, true, world.now);
    assert_int_equal(world.session.members_count, 0);
    world.node[0] = '\0';
    await_grant();
}

/* Its contender has joined again meanwhile. */
static void what_is_left_of_an_old_tenure_ends_alone(void **state)
{
    (void)state;
    world.client.disconnect_releases = true;
    world.before = ask(SIMBA_CONTEND);
    zk_latch_client_submit(&world.client, &world.before, 0);
    reply(LATCH_ASK_CREATE);
    reply(LATCH_ASK_LIST);
    assert_true(world.answer.granted);
    zk_latch_session_disconnected(&world.session, 0);
    zk_latch_session_connected(&world.session, SESSION, TIMEOUT_MS, 0, 0);
    world.answers = 0;
    contend();
    world.leaves = ask(SIMBA_RELEASE);
    world.leaves.token = 1;
    zk_latch_client_submit(&world.client, &world.leaves, world.now);
    assert_int_equal(world.answers, 0);
    await_grant();
    assert_int_equal(world.answer.token, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_leads_waits_until_it_is_worth_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_leaves_meanwhile_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_loses_its_node_meanwhile_joins_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_left_of_an_old_tenure_ends_alone, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
