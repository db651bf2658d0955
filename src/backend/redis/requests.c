/* requests.c: see requests.h. What is alike goes out in one call. */
#include "backend/redis/requests.h"

#include <string.h>

#include "backend/redis/list.h"
#include "backend/redis/redis.h"
#include "backend/redis/votes.h"

int64_t requests_lease_ms(const struct simba_request *q)
{
    return q->ttl_ms + q->transition_ms;
}

/* The longest lease that may have been forgotten, as far as this lease is ours to know. */
static int64_t forgotten_ms(const struct redis *s, int64_t lease_ms)
{
    if (!s->config.restart_grace)
        return 0;
    return s->config.restart_grace_ms > 0 ? s->config.restart_grace_ms : lease_ms;
}

static int64_t epoch_age_ms(const struct redis *s, int64_t now)
{
    return s->server.epoch.age_ms + now - s->server.info_at;
}

bool requests_doubt_sentinels(const struct redis *s)
{
    int64_t now = simba_now();
    return votes_vouched_ms(&s->sentinels, now) < epoch_age_ms(s, now);
}

int64_t requests_restart_grace_ms(const struct redis *s, int64_t lease_ms, int64_t now)
{
    int64_t longest = forgotten_ms(s, lease_ms);
    if (longest == 0)
        return 0;
    int64_t age = epoch_age_ms(s, now), vouched = votes_vouched_ms(&s->sentinels, now);
    int64_t left = longest - (vouched < age ? vouched : age);
    return left > 0 ? left : 0;
}

/* ---- to commands --------------------------------------------------------------------------- */

size_t requests_count(const struct simba_request *list)
{
    size_t count = 0;
    for (; list != NULL; list = list->next)
        count++;
    return count;
}

static void write_token(struct buffer *b, uint64_t token)
{
    if (token == 0)
        resp_argument(b, "");
    else
        resp_number(b, (int64_t)token);
}

/* Who asks right behind this release, if anybody; `store` until it is written. */
static void write_successor(struct redis *s, struct buffer *b, const struct simba_request *q)
{
    const struct simba_request *successor =
        q->op == SIMBA_RELEASE && q->store != q ? q->store : NULL;
    resp_argument(b, successor != NULL ? successor->id : "");
    bool overtakes =
        successor != NULL && subscriber_overtakes(&s->subscriber, successor->mutex, successor->id);
    resp_argument(b, overtakes ? "1" : "");
}

/* The arguments of the script, for one request. */
static void write_arguments(struct redis *s, struct buffer *b, const struct simba_request *q,
                            int64_t now)
{
    const struct exact_id *exact = q->op == SIMBA_EVICT ? q->store : NULL;
    if (exact != NULL)
        resp_bytes(b, exact->bytes, exact->length);
    else if (q->op != SIMBA_READ)
        resp_argument(b, q->id);
    switch (q->op) {
    case SIMBA_CONTEND:
        resp_number(b, requests_lease_ms(q));
        resp_argument(b, subscriber_asks(&s->subscriber, q->mutex, q->id));
        resp_number(b, requests_restart_grace_ms(s, requests_lease_ms(q), now));
        break;
    case SIMBA_RENEW:
        write_token(b, q->token);
        resp_number(b, requests_lease_ms(q));
        break;
    case SIMBA_EVICT:
        write_token(b, q->token);
        resp_argument(b, q->forced ? "1" : "0");
        break;
    case SIMBA_READ:
        resp_argument(b, q->with_note ? "1" : "");
        break;
    case SIMBA_PUBLISH:
        write_token(b, q->token);
        resp_number(b, (int64_t)q->serial);
        resp_argument(b, q->note);
        break;
    default:
        write_token(b, q->op == SIMBA_RELEASE ? q->token : 0);
        write_successor(s, b, q);
        break;
    }
}

static enum script script_of(const struct simba_request *q)
{
    bool many = q->next != NULL;
    switch (q->op) {
    case SIMBA_CONTEND:
        return many ? SCRIPT_ACQUIRE_MANY : SCRIPT_ACQUIRE;
    case SIMBA_RENEW:
        return SCRIPT_RENEW;
    case SIMBA_READ:
        return SCRIPT_READ;
    case SIMBA_EVICT:
        return SCRIPT_EVICT;
    case SIMBA_PUBLISH:
        return SCRIPT_PUBLISH;
    default:
        return many ? SCRIPT_RELEASE_MANY : SCRIPT_RELEASE;
    }
}

/* Whoever owns a mutex by the reply, or has published, asks the sentinels as well. */
static uint64_t round_of(struct redis *s, enum simba_op op)
{
    if (op != SIMBA_CONTEND && op != SIMBA_RENEW && op != SIMBA_PUBLISH)
        return 0;
    if (s->round == 0)
        s->round = sentinels_ask(&s->sentinels);
    return s->round;
}

/* For how long the sentinels that confirm the reply must have named the master. 0: nothing that is
 * free is granted by it. */
static int64_t vouched_ms(const struct redis *s, const struct simba_request *list, int64_t now)
{
    int64_t longest = 0;
    if (list->op != SIMBA_CONTEND || s->sentinels.count == 0)
        return 0;
    for (const struct simba_request *q = list; q != NULL; q = q->next) {
        int64_t needed_ms = forgotten_ms(s, requests_lease_ms(q));
        bool is_refused = requests_restart_grace_ms(s, requests_lease_ms(q), now) > 0;
        longest = needed_ms > longest && !is_refused ? needed_ms : longest;
    }
    return longest;
}

/* One call for a request, or for a list of them that are of one kind. */
static void write_call(struct redis *s, struct simba_request *list)
{
    int64_t now = simba_now();
    enum script script = script_of(list);
    struct redis_connection *c = &s->commands;
    struct buffer *b =
        connection_command(c, (struct redis_command){.take = replies_take,
                                                     .about = list,
                                                     .which = (int)script,
                                                     .round = round_of(s, list->op),
                                                     .vouched_ms = vouched_ms(s, list, now)});
    if (b == NULL) {
        replies_refuse(s, list, c->code, c->why);
        return;
    }
    scripts_call(b, script, s->is_unknown[script], requests_count(list));
    s->is_unknown[script] = false;
    for (const struct simba_request *q = list; q != NULL; q = q->next)
        scripts_keys(b, script, q->mutex);
    if (list->op == SIMBA_CONTEND || list->op == SIMBA_RENEW)
        resp_argument(b, s->server.epoch.note);
    for (struct simba_request *q = list; q != NULL; q = q->next) {
        write_arguments(s, b, q, now);
        if (q->op == SIMBA_RELEASE)
            q->store = NULL; /* the successor may be gone before this is answered */
    }
}

/* ---- what goes together -------------------------------------------------------------------- */

/* Requests of one kind, until they are as many as fit into a call. */
struct group {
    struct pending list;
    size_t count;
};

enum { RELEASES, CONTENDS, RENEWALS, READS, GROUPS }; /* in the order in which they are written */

static void write_group(struct redis *s, struct group *g)
{
    struct simba_request *list = pending_take(&g->list);
    g->count = 0;
    if (list != NULL)
        write_call(s, list);
}

static void write_groups(struct redis *s, struct group *group)
{
    for (int i = 0; i < GROUPS; i++)
        write_group(s, &group[i]);
}

/* Releases go out before acquisitions, but not before one of their own handle: its names are the
 * very same memory. */
static bool is_after(const struct group *contends, const struct simba_request *release)
{
    const struct simba_request *q = contends->list.first;
    while (q != NULL && q->id != release->id)
        q = q->next;
    return q != NULL;
}

static void add_to_group(struct redis *s, struct group *group, struct simba_request *q)
{
    struct group *g = &group[q->op == SIMBA_RENEW     ? RENEWALS
                             : q->op == SIMBA_READ    ? READS
                             : q->op == SIMBA_RELEASE ? RELEASES
                                                      : CONTENDS];
    if (q->op == SIMBA_RELEASE) {
        if (is_after(&group[CONTENDS], q))
            write_groups(s, group);
        subscriber_ends(&s->subscriber, q->mutex, q->id); /* after what the contention leads to */
    }
    pending_add(&g->list, q);
    if (++g->count == GROUP_MAX)
        write_group(s, g);
}

/* What has failed in a call for many is asked for alone (replies.c). */
static bool is_grouped(const struct simba_request *q)
{
    return q->store == NULL && (q->op == SIMBA_RENEW || q->op == SIMBA_RELEASE ||
                                q->op == SIMBA_CONTEND || q->op == SIMBA_READ);
}

static void send_one(struct redis *s, struct simba_request *q)
{
    if (q->op == SIMBA_LEAVE)
        subscriber_ends(&s->subscriber, q->mutex, q->id);
    if (q->op == SIMBA_LIST)
        list_begin(s, q);
    else
        write_call(s, q);
}

/* The runtime puts who waits right behind who releases. NULL: nobody does. */
static struct simba_request *successor_of(const struct simba_request *release,
                                          struct simba_request *next)
{
    bool is_successor = next != NULL && next->op == SIMBA_CONTEND && is_grouped(next) &&
                        strcmp(next->mutex, release->mutex) == 0 &&
                        strcmp(next->id, release->id) != 0;
    return is_successor ? next : NULL;
}

/* A replica takes nothing but questions. A master that could not note its epoch grants nothing, and
 * renews nothing. */
static bool can_take(const struct redis_server *v, enum simba_op op)
{
    bool asks = op == SIMBA_READ || op == SIMBA_LIST;
    bool needs_epoch = op == SIMBA_CONTEND || op == SIMBA_RENEW;
    return asks || v->epoch.note[0] != '\0' || (!v->info.replica && !needs_epoch);
}

static void greet_again(struct redis *s)
{
    if (!s->to_greet || s->commands.unanswered > 0)
        return;
    s->to_greet = false;
    if (s->commands.state == CONNECTION_READY)
        connection_fail(&s->commands, s->server.write_code, "%s", s->server.write_why);
}

static void send_all(struct redis *s, struct simba_request *batch)
{
    struct group group[GROUPS] = {{.count = 0}};
    s->round = 0;
    for (int i = 0; i < GROUPS; i++)
        pending_init(&group[i].list);
    for (struct simba_request *q = batch, *next; q != NULL; q = next) {
        next = q->next;
        q->next = NULL;
        if (!can_take(&s->server, q->op)) {
            replies_refuse(s, q, s->server.write_code, s->server.write_why);
            s->to_greet = true;
        } else if (is_grouped(q)) {
            if (q->op == SIMBA_RELEASE)
                q->store = successor_of(q, next);
            add_to_group(s, group, q);
        } else {
            write_groups(s, group); /* what comes after them may be about the same */
            send_one(s, q);
        }
    }
    write_groups(s, group);
    connection_flush(&s->net);
    greet_again(s);
}

static void send_or_wait(struct redis *s, struct simba_request *batch)
{
    struct redis_connection *c = &s->commands;
    if (c->state == CONNECTION_READY) {
        send_all(s, batch);
    } else if (connection_is_hopeful(c)) {
        pending_add(&s->waiting, batch);
    } else {
        replies_refuse(s, batch, c->code, c->why);
    }
    replies_end(s);
}

void requests_submit(void *store, struct simba_request *batch)
{
    for (struct simba_request *q = batch; q != NULL; q = q->next)
        q->store = NULL;
    send_or_wait(store, batch);
}

void requests_resume(void *store)
{
    struct redis *s = store;
    struct simba_request *list = pending_take(&s->waiting);
    if (list != NULL)
        send_or_wait(s, list);
    sentinels_doubt(&s->sentinels);
    greet_again(s);
}
