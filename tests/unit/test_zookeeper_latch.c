/* test_zookeeper_latch.c: names and order of the members of a queue, and the life of one of
 * them; by hand, and by chance against a server that loses answers, expires sessions and deletes
 * nodes. */
#include "backend/zookeeper/latch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define U1 "11111111-1111-4111-8111-111111111111"
#define U2 "22222222-2222-4222-8222-222222222222"
#define NODE(uuid, digits) "_c_" uuid "-latch-" digits

/* ---- names --------------------------------------------------------------------------------- */

static void a_uuid_is_one(void **state)
{
    (void)state;
    char text[LATCH_UUID_SIZE], prefix[LATCH_NAME_SIZE];
    static const unsigned char zeros[10],
        ones[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    zk_latch_uuid(text, zeros, 0);
    assert_string_equal(text, "00000000-0000-8000-8000-000000000000");
    zk_latch_uuid(text, ones, 0x123456789abcdef);
    assert_string_equal(text, "ffffffff-ffff-8fff-bfff-456789abcdef");
    zk_latch_prefix(prefix, sizeof prefix, text);
    assert_string_equal(prefix, "_c_ffffffff-ffff-8fff-bfff-456789abcdef-latch-");
}

/* Who made a node is in its name; the id in it may be another process's as well. */
static void makers_are_distinguished(void **state)
{
    (void)state;
    static const unsigned char one[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                               two[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11};
    struct latch l;
    char uuid[LATCH_UUID_SIZE], name[LATCH_NAME_SIZE];
    zk_latch_uuid(uuid, one, 7);
    zk_latch_init(&l, uuid);
    static const struct {
        const unsigned char *client;
        uint64_t number;
        bool is_for, is_sibling;
    } rows[] = {{one, 7, true, true}, {one, 8, false, true}, {two, 7, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zk_latch_uuid(uuid, rows[i].client, rows[i].number);
        snprintf(name, sizeof name, "_c_%s-latch-0000000001", uuid);
        assert_true(zk_latch_heeds_evictions(name));
        assert_int_equal(zk_latch_is_for(&l, name), rows[i].is_for);
        assert_int_equal(zk_latch_is_sibling(&l, name), rows[i].is_sibling);
        assert_false(zk_latch_is_sibling(&l, name + 1));
    }
    static const char *const others[] = {NODE(U1, "0000000001"), "latch-0000000001", "_c_", "",
                                         "_c_11111111-1111-8111-8111-111111111111"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(zk_latch_heeds_evictions(others[i]));
        assert_false(zk_latch_is_sibling(&l, others[i]));
    }
}

static void members_are_recognised(void **state)
{
    (void)state;
    int32_t n = -1;
    assert_true(zk_latch_parse(NODE(U1, "0000000042"), &n));
    assert_int_equal(n, 42);
    assert_true(zk_latch_parse("latch-0000000007", &n)); /* Curator without protection */
    assert_int_equal(n, 7);
    assert_true(zk_latch_parse(NODE(U1, "-2147483648"), &n)); /* T52 */
    assert_int_equal(n, INT32_MIN);
    assert_true(zk_latch_parse(NODE(U1, "-000000005"), &n));
    assert_int_equal(n, -5);
    assert_true(zk_latch_parse("latch-latch-0000000009", &n));
    assert_int_equal(n, 9);
    static const char *const others[] = {"0",
                                         "lock-0000000001",
                                         "latch-",
                                         "latch-1",
                                         "latch-00000000012",
                                         "latch-000000000x",
                                         "latch-4294967296",
                                         "latch-9999999999",
                                         "latch--0000000001",
                                         "",
                                         "latch-0000000001-x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(zk_latch_parse(others[i], &n));
    char too_long[2 * LATCH_NAME_SIZE];
    memset(too_long, 'x', sizeof too_long);
    snprintf(too_long + LATCH_NAME_SIZE, LATCH_NAME_SIZE, "latch-0000000001");
    assert_false(zk_latch_parse(too_long, &n));
}

static void sequences_run_over(void **state)
{
    (void)state;
    assert_true(zk_latch_before(1, 2));
    assert_false(zk_latch_before(2, 1));
    assert_false(zk_latch_before(2, 2));
    assert_true(zk_latch_before(INT32_MAX, INT32_MIN));
    assert_false(zk_latch_before(INT32_MIN, INT32_MAX));
    assert_true(zk_latch_before(-1, 0));
}

/* ---- who leads ----------------------------------------------------------------------------- */

static struct latch member(const char *uuid, const char *name)
{
    struct latch l;
    zk_latch_init(&l, uuid);
    snprintf(l.name, sizeof l.name, "%s", name);
    return l;
}

static void the_lowest_leads(void **state)
{
    (void)state;
    char *names[] = {NODE(U2, "0000000012"), "0", NODE(U1, "0000000011"), "junk",
                     "latch-0000000010"};
    int members;
    assert_int_equal(zk_latch_lowest(names, 5, &members), 4);
    assert_int_equal(members, 3);
    struct latch l = member(U2, names[0]);
    struct latch_view v = zk_latch_view_of(&l, names, 5);
    assert_int_equal(v.own, 0);
    assert_int_equal(v.ahead, 2);
    assert_int_equal(v.leader, 4);
    assert_int_equal(v.orphan, -1);
    l = member(U1, names[2]);
    v = zk_latch_view_of(&l, names, 4); /* without the last one */
    assert_int_equal(v.ahead, -1);
    assert_int_equal(v.leader, 2);
    l = member(U1, NODE(U1, "0000000099"));
    v = zk_latch_view_of(&l, names, 4);
    assert_int_equal(v.own, -1);
    assert_int_equal(v.orphan, 2); /* another of ours is there: not what we lead with */
    assert_int_equal(zk_latch_lowest(names, 0, &members), -1);
    assert_int_equal(zk_latch_lowest(names + 1, 1, &members), -1); /* T50 */
}

static void the_lowest_leads_beyond_the_end(void **state)
{
    (void)state;
    char *names[] = {NODE(U1, "-2147483648"), NODE(U2, "2147483647")};
    struct latch l = member(U1, names[0]);
    struct latch_view v = zk_latch_view_of(&l, names, 2);
    assert_int_equal(v.leader, 1);
    assert_int_equal(v.ahead, 1);
}

/* T53: by the UUID alone; if there are two, the older one is kept. */
static void an_orphan_is_found(void **state)
{
    (void)state;
    char *names[] = {NODE(U1, "0000000005"), NODE(U2, "0000000001"), NODE(U1, "0000000003")};
    struct latch l = member(U1, "");
    struct latch_view v = zk_latch_view_of(&l, names, 3);
    assert_int_equal(v.own, 2);
    assert_int_equal(v.orphan, 0);
    l = member(U1, names[0]);
    v = zk_latch_view_of(&l, names, 3);
    assert_int_equal(v.own, 0);
    assert_int_equal(v.orphan, 2);
    assert_int_equal(v.ahead, 2);
}

/* ---- the machine, step by step ------------------------------------------------------------- */

static void send_next(struct latch *l, enum latch_act want)
{
    assert_int_equal(zk_latch_next(l), want);
    zk_latch_sent(l);
    assert_int_equal(zk_latch_next(l), LATCH_REST);
}

static void comes_and_goes(void **state)
{
    (void)state;
    struct latch l;
    zk_latch_init(&l, U1);
    send_next(&l, LATCH_CREATE);
    zk_latch_created(&l, LATCH_NO_NODE, "", 0, 0, 7);
    send_next(&l, LATCH_CREATE); /* when there is a parent */
    zk_latch_created(&l, LATCH_DONE, NODE(U1, "0000000001"), 55, 7, 7);
    assert_int_equal(zk_latch_next(&l), LATCH_REST);
    assert_int_equal(l.czxid, 55);
    l.wanted = false;
    send_next(&l, LATCH_DELETE);
    zk_latch_deleted(&l, LATCH_UNKNOWN);
    send_next(&l, LATCH_DELETE);
    zk_latch_deleted(&l, LATCH_NO_NODE);
    assert_int_equal(zk_latch_next(&l), LATCH_END);
}

static void an_answer_is_lost(void **state)
{
    (void)state;
    struct latch l;
    zk_latch_init(&l, U1);
    send_next(&l, LATCH_CREATE);
    zk_latch_created(&l, LATCH_UNKNOWN, "", 0, 0, 7);
    send_next(&l, LATCH_FIND);
    zk_latch_found(&l, LATCH_UNKNOWN, NULL);
    send_next(&l, LATCH_FIND);
    zk_latch_found(&l, LATCH_DONE, NODE(U1, "0000000001"));
    send_next(&l, LATCH_STAT);
    zk_latch_stat(&l, LATCH_UNKNOWN, 0, 0, 7);
    send_next(&l, LATCH_STAT);
    zk_latch_stat(&l, LATCH_DONE, 55, 7, 7);
    assert_int_equal(l.state, LATCH_IN);
    assert_int_equal(zk_latch_next(&l), LATCH_REST);
}

static void nothing_is_found(void **state)
{
    (void)state;
    struct latch l;
    zk_latch_init(&l, U1);
    send_next(&l, LATCH_CREATE);
    zk_latch_created(&l, LATCH_UNKNOWN, "", 0, 0, 7);
    send_next(&l, LATCH_FIND);
    zk_latch_found(&l, LATCH_DONE, NODE(U1, "0000000001"));
    send_next(&l, LATCH_STAT);
    zk_latch_stat(&l, LATCH_NO_NODE, 0, 0, 7); /* gone in between */
    send_next(&l, LATCH_CREATE);
    zk_latch_created(&l, LATCH_UNKNOWN, "", 0, 0, 7);
    l.wanted = false; /* and yet it must be looked for */
    send_next(&l, LATCH_FIND);
    zk_latch_found(&l, LATCH_NO_NODE, NULL);
    assert_int_equal(zk_latch_next(&l), LATCH_END);
}

/* T51: a node of another session of ours, which is about to die. */
static void a_node_of_another_session(void **state)
{
    (void)state;
    struct latch l;
    zk_latch_init(&l, U1);
    send_next(&l, LATCH_CREATE);
    zk_latch_created(&l, LATCH_UNKNOWN, "", 0, 0, 7);
    send_next(&l, LATCH_FIND);
    zk_latch_found(&l, LATCH_DONE, NODE(U1, "0000000001"));
    send_next(&l, LATCH_STAT);
    zk_latch_stat(&l, LATCH_DONE, 55, 6, 7);
    assert_false(l.wanted);
    send_next(&l, LATCH_DELETE);
}

static void late_answers_mean_nothing(void **state)
{
    (void)state;
    struct latch l;
    zk_latch_init(&l, U1);
    send_next(&l, LATCH_CREATE);
    zk_latch_vanished(&l); /* the session has expired */
    zk_latch_created(&l, LATCH_DONE, NODE(U1, "0000000001"), 55, 7, 7);
    zk_latch_found(&l, LATCH_DONE, NODE(U1, "0000000001"));
    zk_latch_stat(&l, LATCH_DONE, 55, 7, 7);
    zk_latch_deleted(&l, LATCH_UNKNOWN);
    assert_int_equal(zk_latch_next(&l), LATCH_END);
    assert_int_equal(l.czxid, 0);
}

/* T103: what a broken server says is no reason to stop, and no reason to believe it. */
static void absurd_answers_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t czxid;
    } rows[] = {
        {NODE(U1, "0000000001"), 0},  {NODE(U1, "0000000001"), -1},
        {NODE(U2, "0000000001"), 55}, /* another's */
        {NODE(U1, "1"), 55},          {"", 55},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct latch l;
        zk_latch_init(&l, U1);
        send_next(&l, LATCH_CREATE);
        zk_latch_created(&l, LATCH_DONE, rows[i].name, rows[i].czxid, 7, 7);
        send_next(&l, LATCH_FIND);
        zk_latch_found(&l, LATCH_DONE, NODE(U1, "0000000001"));
        send_next(&l, LATCH_STAT);
        zk_latch_stat(&l, LATCH_DONE, -(int64_t)i, 7, 7);
        send_next(&l, LATCH_STAT);
        zk_latch_stat(&l, LATCH_DONE, 55, 7, 7);
        assert_int_equal(l.state, LATCH_IN);
        assert_int_equal(l.czxid, 55);
    }
}

/* ---- by chance ----------------------------------------------------------------------------- */

#define CONTENDERS 4
#define NODES_MAX 256

struct node {
    char name[LATCH_NAME_SIZE];
    int64_t czxid;
    int session; /* 0: free */
};

/* One contender with its session and its connection, which carries one request at a time. */
struct contender {
    struct latch l;
    int session;
    enum latch_act sent; /* LATCH_REST: nothing */
    bool applied, leads;
    int64_t token;
    enum latch_reply reply; /* what it will be told */
    char name[LATCH_NAME_SIZE];
    int64_t czxid, owner;
};

struct world {
    uint64_t random;
    struct node node[NODES_MAX];
    struct contender c[CONTENDERS];
    uint32_t sequence;
    int64_t zxid, last_leader;
    int sessions, tenures;
};

static bool chance(struct world *w, int64_t of)
{
    return rng_between(&w->random, 0, of - 1) == 0;
}

static void join_again(struct world *w, struct contender *c)
{
    unsigned char bytes[LATCH_CLIENT_SIZE];
    char uuid[LATCH_UUID_SIZE];
    for (int i = 0; i < LATCH_CLIENT_SIZE; i++)
        bytes[i] = (unsigned char)rng_between(&w->random, 0, 255);
    zk_latch_uuid(uuid, bytes, 0);
    zk_latch_init(&c->l, uuid);
    c->sent = LATCH_REST;
    c->leads = false;
}

static struct node *find(struct world *w, const char *name)
{
    for (int i = 0; i < NODES_MAX; i++) {
        if (w->node[i].session != 0 && strcmp(w->node[i].name, name) == 0)
            return &w->node[i];
    }
    return NULL;
}

static int names_of(struct world *w, char *names[NODES_MAX])
{
    int n = 0;
    for (int i = 0; i < NODES_MAX; i++) {
        if (w->node[i].session != 0)
            names[n++] = w->node[i].name;
    }
    return n;
}

/* What the server does with the request, at the latest before the next one of this session. */
static void apply(struct world *w, struct contender *c)
{
    char *names[NODES_MAX];
    struct node *n = find(w, c->l.name);
    if (c->applied || c->sent == LATCH_REST)
        return;
    c->applied = true;
    c->reply = LATCH_DONE;
    if (c->sent == LATCH_CREATE) {
        for (n = w->node; n->session != 0; n++)
            ;
        assert_true(n < w->node + NODES_MAX);
        char prefix[LATCH_NAME_SIZE];
        zk_latch_prefix(prefix, sizeof prefix, c->l.uuid);
        snprintf(n->name, sizeof n->name, "%.100s%010d", prefix, (int32_t)w->sequence++);
        n->session = c->session;
        n->czxid = ++w->zxid;
    } else if (c->sent == LATCH_DELETE) {
        c->reply = n != NULL ? LATCH_DONE : LATCH_NO_NODE;
        if (n != NULL)
            n->session = 0;
        return;
    } else if (c->sent == LATCH_FIND) {
        struct latch_view v = zk_latch_view_of(&c->l, names, names_of(w, names));
        n = v.own >= 0 ? find(w, names[v.own]) : NULL;
        c->name[0] = '\0';
    } else if (n == NULL) {
        c->reply = LATCH_NO_NODE;
    }
    if (n != NULL) {
        snprintf(c->name, sizeof c->name, "%s", n->name);
        c->czxid = n->czxid;
        c->owner = n->session;
    }
}

/* The connection breaks, before the server had the request or after; or the answer comes. */
static void deliver(struct world *w, struct contender *c)
{
    if (!chance(w, 6))
        apply(w, c);
    enum latch_reply reply = c->applied && !chance(w, 5) ? c->reply : LATCH_UNKNOWN;
    enum latch_act act = c->sent;
    if (reply == LATCH_UNKNOWN && chance(w, 2))
        apply(w, c); /* late, but before whatever this session sends next */
    c->sent = LATCH_REST;
    if (act == LATCH_CREATE)
        zk_latch_created(&c->l, reply, c->name, c->czxid, c->owner, c->session);
    else if (act == LATCH_FIND)
        zk_latch_found(&c->l, reply, c->name[0] != '\0' ? c->name : NULL);
    else if (act == LATCH_STAT)
        zk_latch_stat(&c->l, reply, c->czxid, c->owner, c->session);
    else
        zk_latch_deleted(&c->l, reply);
}

static void expire(struct world *w, struct contender *c)
{
    for (int i = 0; i < NODES_MAX; i++) {
        if (w->node[i].session == c->session)
            w->node[i].session = 0;
    }
    zk_latch_vanished(&c->l);
    c->session = ++w->sessions;
    join_again(w, c);
}

/* It may lead if a list says so; and then nobody else's node is in front, and tokens rise. */
static void view_all(struct world *w, struct contender *c)
{
    char *names[NODES_MAX];
    if (c->l.state != LATCH_IN || !c->l.wanted)
        return;
    struct latch_view v = zk_latch_view_of(&c->l, names, names_of(w, names));
    assert_int_equal(v.orphan, -1);
    c->leads = v.own >= 0 && v.ahead < 0;
    if (v.own < 0)
        zk_latch_vanished(&c->l);
    if (!c->leads || c->token == c->l.czxid)
        return;
    c->token = c->l.czxid;
    w->tenures++;
    assert_true(c->token > w->last_leader);
    w->last_leader = c->token;
    for (int i = 0; i < CONTENDERS; i++) {
        const struct contender *other = &w->c[i];
        assert_false(other != c && other->leads && find(w, other->l.name) != NULL);
    }
}

static void turn(struct world *w)
{
    struct contender *c = &w->c[rng_between(&w->random, 0, CONTENDERS - 1)];
    enum latch_act act = zk_latch_next(&c->l);
    if (c->sent != LATCH_REST && chance(w, 2)) {
        deliver(w, c);
    } else if (act == LATCH_END) {
        join_again(w, c);
    } else if (act != LATCH_REST) {
        zk_latch_sent(&c->l);
        c->sent = act;
        c->applied = false;
        c->name[0] = '\0';
        if (chance(w, 2))
            apply(w, c);
    } else if (chance(w, 20)) {
        c->l.wanted = false;
    } else if (chance(w, 200)) {
        expire(w, c);
    } else if (chance(w, 200)) { /* T54: somebody deletes it */
        struct node *n = find(w, c->l.name);
        if (n != NULL)
            n->session = 0;
    } else {
        view_all(w, c);
    }
}

static void settle(struct world *w)
{
    char *names[NODES_MAX];
    for (int i = 0; i < CONTENDERS; i++) {
        struct contender *c = &w->c[i];
        c->l.wanted = false;
        for (int n = 0; c->sent != LATCH_REST || zk_latch_next(&c->l) != LATCH_END; n++) {
            assert_true(n < 1000);
            if (c->sent != LATCH_REST) {
                deliver(w, c);
                continue;
            }
            c->sent = zk_latch_next(&c->l);
            c->applied = false;
            c->name[0] = '\0';
            zk_latch_sent(&c->l);
        }
    }
    assert_int_equal(names_of(w, names), 0); /* T53: nothing is left behind */
}

static void never_two_and_nothing_left(void **state)
{
    (void)state;
    int tenures = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        static struct world w;
        w = (struct world){.random = seed, .zxid = 100};
        w.sequence = seed % 3 == 0 ? (uint32_t)INT32_MAX - 5 : seed % 3 == 1 ? (uint32_t)-5 : 0;
        for (int i = 0; i < CONTENDERS; i++) {
            w.c[i].session = ++w.sessions;
            join_again(&w, &w.c[i]);
        }
        for (int i = 0; i < 2000; i++)
            turn(&w);
        settle(&w);
        tenures += w.tenures;
    }
    assert_true(tenures > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_uuid_is_one),
        cmocka_unit_test(makers_are_distinguished),
        cmocka_unit_test(members_are_recognised),
        cmocka_unit_test(sequences_run_over),
        cmocka_unit_test(the_lowest_leads),
        cmocka_unit_test(the_lowest_leads_beyond_the_end),
        cmocka_unit_test(an_orphan_is_found),
        cmocka_unit_test(comes_and_goes),
        cmocka_unit_test(an_answer_is_lost),
        cmocka_unit_test(nothing_is_found),
        cmocka_unit_test(a_node_of_another_session),
        cmocka_unit_test(late_answers_mean_nothing),
        cmocka_unit_test(absurd_answers_are_none),
        cmocka_unit_test(never_two_and_nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
