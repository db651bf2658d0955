/* session.c: a session with the ensemble; its connection is wire.c's.
 *
 * What keeps the session is a write: every sixth of its timeout a transaction that only checks that
 * our root is there. It goes through the leader and its quorum as any write does, changes nothing and
 * wakes no watch. A read would be answered by a follower that is cut off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/zookeeper/health.h"
#include "backend/zookeeper/zookeeper.h"

#define DEFAULT_MS (SIMBA_TTL_MS + SIMBA_TRANSITION_MS)
#define GUARD_MS 20 /* a tenure shorter than this needs no watch on its node */
#define BEAT_MIN_MS 5
#define PART_FIRST 6 /* joining is a write by itself: the next is due S/6 later */
#define PART_FRESH 4 /* a write within S/4: no need to wait for the next */

/* ---- what others ask -------------------------------------------------------------------------- */

int64_t zk_session_timeout_ms(const struct session *s)
{
    return s->established ? s->standing.timeout : s->asked_ms;
}

int64_t zk_session_left(const struct session *s, int64_t now)
{
    int64_t left = zk_standing_until(&s->standing) - now - 1; /* now was rounded down */
    return left > 0 ? left : 0;
}

bool zk_session_is_fresh(const struct session *s, int64_t now)
{
    return s->connected && now - s->standing.written <= s->standing.timeout / PART_FRESH;
}

bool zk_session_is_hopeful(const struct session *s)
{
    return !s->store->closing && s->failures < (int)s->store->config.hosts;
}

/* ---- the write that keeps the session --------------------------------------------------------- */

static void on_beat(uv_timer_t *timer);

static void wait_for_beat(struct session *s)
{
    int64_t ms = zk_standing_write_at(&s->standing) - simba_now();
    zk_wire_later(&s->beat, on_beat, ms > BEAT_MIN_MS ? ms : BEAT_MIN_MS);
}

static void on_written(int rc, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    int64_t sent = s->beat_sent;
    s->beat_sent = 0;
    if (s->store->closing)
        return;
    if (rc == ZOK || rc == ZNONODE) /* a refused transaction has gone through the quorum as well */
        zk_session_wrote(s, sent);
    zk_member_written(s, rc == ZNONODE ? ZOK : rc);
    if (s->connected)
        wait_for_beat(s);
}

void zk_session_write_now(struct session *s)
{
    if (!s->connected || s->beat_sent != 0)
        return;
    zoo_check_op_init(&s->beat_op, s->store->base, -1);
    s->beat_sent = simba_now();
    if (zoo_amulti(s->handle, 1, &s->beat_op, &s->beat_result, on_written, s) != ZOK)
        s->beat_sent = 0;
}

static void on_touched(int rc, const struct Stat *stat, const void *data)
{
    struct session *s = (struct session *)(uintptr_t)data;
    (void)stat;
    if (rc == ZOK || rc == ZNONODE)
        zk_standing_heard(&s->standing, s->touch_sent, simba_now());
    s->touch_sent = 0;
}

/* Without members there is nothing to keep; but a read now and then, in place of the library's ping,
 * makes the next write worth its full length. */
static void idle(struct session *s, int64_t now)
{
    if (s->touch_sent == 0) {
        s->touch_sent = now;
        if (zoo_aexists(s->handle, s->store->base, 0, on_touched, s) != ZOK)
            s->touch_sent = 0;
    }
    zk_wire_later(&s->beat, on_beat, zk_standing_idle_ms(&s->standing));
}

static void on_beat(uv_timer_t *timer)
{
    struct session *s = timer->data;
    int64_t now = simba_now();
    if (!s->connected)
        return;
    if (s->members_count == 0) {
        idle(s, now);
        zk_wire_pump(s);
        return;
    }
    zk_member_scan(s, now);
    if (now + BEAT_MIN_MS > zk_standing_write_at(&s->standing))
        zk_session_write_now(s);
    else
        wait_for_beat(s);
    zk_wire_pump(s);
}

void zk_session_keep(struct session *s)
{
    if (!s->connected)
        return;
    if (s->members_count > 1 && uv_is_active((uv_handle_t *)&s->beat))
        return; /* it is kept already */
    zk_wire_later(&s->beat, on_beat, s->standing.timeout / PART_FIRST);
}

void zk_session_wrote(struct session *s, int64_t sent)
{
    zk_standing_wrote(&s->standing, sent, simba_now());
}

/* ---- its beginning ------------------------------------------------------------------------------ */

static void comment(struct session *s)
{
    char line[SESSION_TEXT_MAX];
    bool serious;
    struct zookeeper_facts facts = {
        .asked_ms = s->asked_ms, .granted_ms = s->standing.timeout, .containers = true};
    for (size_t n = 0; zookeeper_health_says(&facts, n, line, sizeof line, &serious); n++)
        s->store->host->log(s->store->host, serious ? SIMBA_LOG_WARN : SIMBA_LOG_INFO, line);
}

/* A session without a length or a number is none. Its nodes, if it has any, stay until the server ends
 * it: who relied on them has to end first. */
static void refuse_session(struct session *s, int timeout)
{
    s->over = true;
    s->refused = true;
    s->code = SIMBA_ESTORE;
    s->failures = (int)s->store->config.hosts;
    snprintf(s->why, sizeof s->why,
             "%.100s grants a session of %d ms, which cannot be: is it a ZooKeeper server?",
             s->addresses, timeout);
    s->store->host->log(s->store->host, SIMBA_LOG_WARN, s->why);
}

void zk_session_connected(struct session *s)
{
    const clientid_t *id = zoo_client_id(s->handle);
    int timeout = zoo_recv_timeout(s->handle);
    if (timeout <= 0 || id->client_id == 0) {
        refuse_session(s, timeout);
        return;
    }
    s->connected = true;
    s->failures = 0;
    if (!s->established) {
        s->established = true;
        s->id = id->client_id;
        zk_standing_begin(&s->standing, timeout, s->tried_at);
        comment(s);
    } else {
        zk_standing_moved(&s->standing, timeout, s->tried_at);
        if (s->store->host->reconnected != NULL)
            s->store->host->reconnected(s->store->host);
    }
    zk_member_connected(s);
    zk_store_connected(s);
    zk_session_keep(s);
}

/* ---- watches ---------------------------------------------------------------------------------- */

/* Of whatever node: which one is in its path, so that a watch outlives whoever asked for it. */
void zk_session_on_node(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct session *s = context;
    size_t base = strlen(s->store->base);
    char node[PATH_NODE_SIZE], mutex[SIMBA_MUTEX_MAX + 1];
    (void)handle;
    (void)state;
    if (type == ZOO_SESSION_EVENT || s->store->closing || s->over ||
        strncmp(path, s->store->base, base) != 0)
        return;
    if (path[base] == '\0') {
        zk_look_root_event(s);
        return;
    }
    const char *name = path + base + 1, *slash = strchr(name, '/');
    size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);
    if (path[base] != '/' || n >= sizeof node)
        return;
    memcpy(node, name, n);
    node[n] = '\0';
    if (!zk_path_decode(mutex, node))
        return;
    zk_member_event(s, type, path, mutex, slash != NULL ? slash + 1 : "");
    zk_look_event(s, type, mutex);
}

static void on_guard(uv_timer_t *timer)
{
    struct session *s = timer->data;
    if (s->connected)
        zk_member_guard(s);
    zk_wire_pump(s);
}

void zk_session_guard_soon(struct session *s)
{
    if (!uv_is_active((uv_handle_t *)&s->guard))
        zk_wire_later(&s->guard, on_guard, GUARD_MS);
}

/* ---- making and ending ------------------------------------------------------------------------ */

static struct session *make(struct zookeeper *z, int64_t asked_ms)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->store = z;
    s->asked_ms = asked_ms;
    s->stalled_last = &s->stalled;
    uv_timer_t *const timers[] = {&s->timer, &s->beat, &s->guard};
    for (size_t i = 0; i < 3; i++) {
        uv_timer_init(z->host->loop, timers[i]);
        timers[i]->data = s;
    }
    z->handles += 3;
    s->next = z->sessions;
    z->sessions = s;
    z->sessions_count++;
    zk_wire_begin(s);
    return s;
}

struct session *zk_session_for(struct zookeeper *z, int64_t lease_ms)
{
    int64_t asked = z->config.session_timeout_ms > 0 ? z->config.session_timeout_ms : lease_ms;
    struct session *best = NULL;
    for (struct session *s = z->sessions; s != NULL; s = s->next) {
        if (s->asked_ms == asked)
            return s;
        /* If it must be another: the longest that is shorter. */
        bool fits = s->asked_ms < asked;
        if (best == NULL || (fits && (best->asked_ms > asked || best->asked_ms < s->asked_ms)) ||
            (!fits && best->asked_ms > s->asked_ms))
            best = s;
    }
    return z->sessions_count < SESSIONS_MAX ? make(z, asked) : best;
}

struct session *zk_session_any(struct zookeeper *z)
{
    for (struct session *s = z->sessions; s != NULL; s = s->next) {
        if (s->connected)
            return s;
    }
    return z->sessions != NULL ? z->sessions : zk_session_for(z, DEFAULT_MS);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct session *s = handle->data;
    zk_store_handle_closed(s->store);
}

/* Freed with the store, when the loop has let go of everything. */
void zk_session_close(struct session *s)
{
    for (size_t i = 0; i < s->store->config.hosts; i++) {
        if (s->question[i] != NULL)
            resolve_forget(s->question[i]);
        s->question[i] = NULL;
    }
    zk_wire_close(s);
    zk_member_close(s);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
    uv_close((uv_handle_t *)&s->beat, on_timer_closed);
    uv_close((uv_handle_t *)&s->guard, on_timer_closed);
}
