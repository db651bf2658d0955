/* latch_session.c: a session with the ensemble: the writes that keep it, and what its fate means
 * for its members. See session_deadline.h for what a write is worth.
 *
 * Every sixth of its timeout a session that has members writes, and one whose write is waited
 * for. One without has nothing to keep; but a read now and then makes the next write worth its
 * full length. */
#include "backend/zookeeper/latch_member.h"

#define WATCH_OWN_MS 20 /* a tenure shorter than this needs no watch on its node */
#define HEARTBEAT_MIN_MS 5
#define PART_FIRST 6     /* joining is a write by itself: the next is due S/6 later */
#define PART_FRESH 4     /* a write within S/4: no need to wait for the next */
#define PART_BEGIN 3     /* a tenure begins with S/3 or more */
#define SILENCE_PARTS 3  /* a contender that waits comes again after one session timeout */
#define SILENCE_MS 10000 /* on top of that */

void zk_latch_session_init(struct latch_session *s, struct latch_client *c, int64_t asked_ms)
{
    *s = (struct latch_session){.client = c, .asked_ms = asked_ms, .why = ""};
    pending_init(&s->stalled);
    s->next = c->sessions;
    c->sessions = s;
}

int64_t zk_latch_session_timeout_ms(const struct latch_session *s)
{
    return s->established ? s->deadline.timeout : s->asked_ms;
}

int64_t zk_latch_session_left(const struct latch_session *s)
{
    /* now was rounded down */
    int64_t left = zk_session_deadline_until(&s->deadline) - s->client->now - 1;
    return left > 0 ? left : 0;
}

bool zk_latch_session_is_fresh(const struct latch_session *s)
{
    return s->connected && s->client->now - s->deadline.written <= s->deadline.timeout / PART_FRESH;
}

/* After a long silence the first writes are worth little (session_deadline.h): a tenure that
 * began now would have to be given back at once. In quiet times there is always more left than
 * this. */
bool zk_latch_session_can_begin(const struct latch_session *s)
{
    return zk_latch_session_is_fresh(s) &&
           zk_latch_session_left(s) >= s->deadline.timeout / PART_BEGIN;
}

/* ---- the write that keeps it --------------------------------------------------------------- */

static void wait_for_heartbeat(struct latch_session *s)
{
    int64_t ms = zk_session_deadline_write_at(&s->deadline) - s->client->now;
    s->client->io->heartbeat_in(s, ms > HEARTBEAT_MIN_MS ? ms : HEARTBEAT_MIN_MS);
}

static void write_now(struct latch_session *s)
{
    if (!s->connected || s->write_sent != 0)
        return;
    s->write_sent = s->client->now;
    if (!s->client->io->write(s))
        s->write_sent = 0;
}

void zk_latch_session_keep(struct latch_session *s)
{
    if (s->connected && s->members_count <= 1) /* else it is kept already */
        s->client->io->heartbeat_in(s, s->deadline.timeout / PART_FIRST);
}

/* Until a write is acknowledged: one that is sent now, or, if the last one is fresh but worth
 * little, the next one that can show more. */
void zk_latch_session_stall(struct latch_session *s, struct simba_request *list)
{
    pending_add(&s->stalled, list);
    if (zk_latch_session_is_fresh(s))
        wait_for_heartbeat(s);
    else
        write_now(s);
}

/* r: a refused transaction has gone through the quorum as well. */
void zk_latch_session_written(struct latch_session *s, const struct latch_result *r, int64_t now)
{
    bool done = r->reply == LATCH_DONE || r->reply == LATCH_NO_NODE;
    s->client->now = now;
    int64_t sent = s->write_sent;
    s->write_sent = 0;
    if (done)
        zk_session_deadline_wrote(&s->deadline, sent, now);
    else
        zk_latch_client_fail(s->client, &s->stalled, r->code, r->why);
    struct simba_request *list = pending_take(&s->stalled);
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        list->next = NULL;
        zk_latch_client_submit(s->client, list, now);
    }
    if (s->connected)
        wait_for_heartbeat(s);
}

void zk_latch_session_touched(struct latch_session *s, bool answered, int64_t now)
{
    if (answered)
        zk_session_deadline_heard(&s->deadline, s->touch_sent, now);
    s->touch_sent = 0;
}

static void touch(struct latch_session *s)
{
    if (s->touch_sent == 0) {
        s->touch_sent = s->client->now;
        if (!s->client->io->touch(s))
            s->touch_sent = 0;
    }
    s->client->io->heartbeat_in(s, zk_session_deadline_idle_ms(&s->deadline));
}

/* Contenders that have not been heard of: their tenures are over, their nodes are given up. */
static void scan(struct latch_session *s)
{
    int64_t silence = SILENCE_PARTS * zk_latch_session_timeout_ms(s) + SILENCE_MS;
    EACH_MEMBER(m, s)
    {
        int64_t silent = s->client->now - m->asked_at;
        m->stuck = false;
        if (!m->is_member) {
            zk_latch_node_drive(m);
        } else if (m->asking.first == NULL && silent > (m->granted ? m->lease_ms : silence)) {
            m->over = true;
            zk_latch_node_discard(m);
        }
    }
}

void zk_latch_session_heartbeat(struct latch_session *s, int64_t now)
{
    s->client->now = now;
    if (!s->connected)
        return;
    if (s->members_count == 0 && s->stalled.first == NULL) {
        touch(s);
        return;
    }
    scan(s);
    if (now + HEARTBEAT_MIN_MS > zk_session_deadline_write_at(&s->deadline))
        write_now(s);
    else
        wait_for_heartbeat(s);
}

/* ---- its fate ------------------------------------------------------------------------------ */

void zk_latch_session_connected(struct latch_session *s, int64_t id, int64_t timeout_ms,
                                int64_t sent, int64_t now)
{
    struct latch_client *c = s->client;
    c->now = now;
    s->connected = true;
    s->hopeless = false;
    if (s->established)
        zk_session_deadline_moved(&s->deadline, timeout_ms, sent);
    else
        zk_session_deadline_begin(&s->deadline, timeout_ms, sent);
    s->established = true;
    s->id = id;
    EACH_MEMBER(m, s)
    {
        m->stuck = false;
        zk_latch_node_drive(m);
    }
    if (s->unwatched != NULL)
        zk_latch_session_watch_own_soon(s);
    if (c->refused)
        c->host->hint(c->host, NULL);
    c->refused = false;
    wait_for_heartbeat(s);
}

void zk_latch_session_disconnected(struct latch_session *s, int64_t now)
{
    s->client->now = now;
    s->connected = false;
    if (!s->client->disconnect_releases)
        return;
    EACH_MEMBER(m, s)
    {
        if (m->granted && !m->over) {
            m->over = true;
            zk_latch_queue_hint(m);
        }
    }
}

static void refuse_all(struct latch_session *s, int code, const char *why)
{
    struct latch_client *c = s->client;
    zk_latch_client_fail(c, &s->stalled, code, why);
    EACH_MEMBER(m, s)
    {
        zk_latch_client_fail(c, &m->asking, code, why);
        zk_latch_client_fail(c, &m->ending, code, why);
    }
}

void zk_latch_session_unreachable(struct latch_session *s, int64_t now)
{
    s->client->now = now;
    s->hopeless = true;
    refuse_all(s, s->code, s->why);
}

void zk_latch_session_expired(struct latch_session *s, int64_t now)
{
    s->client->now = now;
    s->connected = false;
    s->write_sent = s->touch_sent = 0;
    zk_latch_client_fail(s->client, &s->stalled, s->code, s->why);
    EACH_MEMBER(m, s)
    {
        zk_latch_client_fail(s->client, &m->asking, s->code, s->why);
        zk_latch_node_vanished(m);
    }
    s->established = false;
}

void zk_latch_session_close(struct latch_session *s, int64_t now)
{
    s->client->now = now;
    s->connected = false;
    refuse_all(s, SIMBA_ECANCELED, "the client is being closed");
    while (s->members != NULL)
        zk_latch_node_free(s->members);
}

/* ---- watches ------------------------------------------------------------------------------- */

void zk_latch_session_watch_own_soon(struct latch_session *s)
{
    s->client->io->watch_own_in(s, WATCH_OWN_MS);
}

void zk_latch_session_watch_own(struct latch_session *s, int64_t now)
{
    struct latch_member *list = s->unwatched;
    s->client->now = now;
    if (!s->connected)
        return;
    s->unwatched = NULL;
    for (struct latch_member *next; list != NULL; list = next) {
        next = list->unwatched_next;
        zk_latch_queue_watch_own(list);
    }
}
