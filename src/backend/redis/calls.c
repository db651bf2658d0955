/* calls.c: requests to commands, and who waits for an answer. Commands are answered in their order, so a
 * ring of what was asked is all there is to remember. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/redis.h"

/* ---- answers ------------------------------------------------------------------------------- */

static void give(struct redis *s, bool more)
{
    struct simba_request *q = s->held;
    s->held = NULL;
    s->held_answer.more = more;
    s->host->answer(s->host, q, &s->held_answer);
}

void calls_end_reading(struct redis *s)
{
    if (s->held != NULL)
        give(s, false);
}

void calls_answer(struct redis *s, struct simba_request *q, const struct simba_answer *answer)
{
    if (s->held != NULL)
        give(s, true);
    s->held = q;
    s->held_answer = *answer;
    if (answer->id != NULL) {
        size_t n = strnlen(answer->id, sizeof s->held_id - 1);
        memcpy(s->held_id, answer->id, n);
        s->held_id[n] = '\0';
        s->held_answer.id = s->held_id;
    }
    if (answer->text != NULL) {
        snprintf(s->held_text, sizeof s->held_text, "%s", answer->text);
        s->held_answer.text = s->held_text;
    }
}

void calls_refuse(struct redis *s, struct simba_request *q, int code, const char *why)
{
    calls_answer(s, q, &(struct simba_answer){.code = code, .age_ms = -1, .text = why});
}

static void refuse_all(struct redis *s, struct simba_request *list, int code, const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        calls_refuse(s, list, code, why);
    }
}

/* ---- in flight ----------------------------------------------------------------------------- */

struct flight *calls_push(struct redis *s, enum flight_kind kind)
{
    if (s->flights == s->ring_size) {
        size_t size = s->ring_size == 0 ? 256 : 2 * s->ring_size;
        struct flight *ring = calloc(size, sizeof *ring);
        if (ring == NULL) {
            link_fail(&s->link, SIMBA_ELIMIT, "out of memory");
            return NULL;
        }
        for (size_t i = 0; i < s->flights; i++)
            ring[i] = s->ring[(s->first + i) & (s->ring_size - 1)];
        free(s->ring);
        s->ring = ring;
        s->ring_size = size;
        s->first = 0;
    }
    struct flight *f = &s->ring[(s->first + s->flights++) & (s->ring_size - 1)];
    *f = (struct flight){.kind = kind, .sent_at = simba_now()};
    link_watch(&s->link);
    return f;
}

struct flight calls_pop(struct redis *s)
{
    assert(s->flights > 0);
    struct flight f = s->ring[s->first];
    s->first = (s->first + 1) & (s->ring_size - 1);
    s->flights--;
    return f;
}

void calls_fail_flight(struct redis *s, const struct flight *f, int code, const char *why)
{
    if (f->kind == FLIGHT_REQUEST || f->kind == FLIGHT_RENEWAL || f->kind == FLIGHT_MANY)
        refuse_all(s, f->request, code, why);
    else if (f->listing != NULL)
        listing_end(s, f->listing, code, why);
}

void calls_fail(struct redis *s, int code, const char *why)
{
    while (s->flights > 0) {
        struct flight f = calls_pop(s);
        calls_fail_flight(s, &f, code, why);
    }
    struct simba_request *waiting = s->waiting;
    s->waiting = NULL;
    s->waiting_last = &s->waiting;
    refuse_all(s, waiting, code, why);
    calls_end_reading(s);
}

/* ---- to commands --------------------------------------------------------------------------- */

void calls_key(struct redis *s, const char *mutex, const char *part)
{
    resp_pieces(&s->link.out, (const char *const[]){"simba:{", mutex, "}", part, NULL});
}

int64_t calls_lease(const struct simba_request *q)
{
    return q->ttl_ms + q->transition_ms;
}

static void write_token(struct redis *s, uint64_t token)
{
    if (token == 0)
        resp_word(&s->link.out, "");
    else
        resp_number(&s->link.out, (int64_t)token);
}

#define ACQUIRE_KEYS 4 /* of each, and of all the epoch's */
#define ACQUIRE_WORDS 4
#define EPOCH_KEYS 1
#define EPOCH_WORDS 2
#define ENDING_KEYS 3
#define ENDING_WORDS 2

static void acquire_keys(struct redis *s, const struct simba_request *q)
{
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":contender");
    calls_key(s, q->mutex, ":fence");
    calls_key(s, q->mutex, ":token");
}

static void acquire_words(struct redis *s, const struct simba_request *q)
{
    struct buffer *b = &s->link.out;
    resp_word(b, q->id);
    resp_number(b, calls_lease(q));
    resp_word(b, ear_asks(&s->ear, q->mutex, q->id));
    resp_number(b, redis_guard_ms(s, calls_lease(q)));
}

static void epoch_words(struct redis *s)
{
    resp_word(&s->link.out, s->link.epoch.note);
    resp_number(&s->link.out, s->link.epoch.seen_us);
}

static void ending_keys(struct redis *s, const struct simba_request *q)
{
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":contender");
    calls_key(s, q->mutex, ":token");
}

static void ending_words(struct redis *s, const struct simba_request *q)
{
    resp_word(&s->link.out, q->id);
    write_token(s, q->op == SIMBA_RELEASE ? q->token : 0);
}

static void write_contend(struct redis *s, const struct simba_request *q, bool whole)
{
    script_call(&s->link.out, SCRIPT_ACQUIRE, whole, EPOCH_KEYS + ACQUIRE_KEYS,
                EPOCH_WORDS + ACQUIRE_WORDS);
    resp_word(&s->link.out, EPOCH_KEY);
    acquire_keys(s, q);
    epoch_words(s);
    acquire_words(s, q);
}

static void write_ending(struct redis *s, const struct simba_request *q, bool whole)
{
    script_call(&s->link.out, SCRIPT_RELEASE, whole, ENDING_KEYS, ENDING_WORDS);
    ending_keys(s, q);
    ending_words(s, q);
}

static void write_evict(struct redis *s, const struct simba_request *q, const char *id,
                        size_t length, bool whole)
{
    script_call(&s->link.out, SCRIPT_EVICT, whole, ENDING_KEYS, 3);
    ending_keys(s, q);
    resp_bytes(&s->link.out, id, length);
    write_token(s, q->token);
    resp_word(&s->link.out, q->forced ? "1" : "0");
}

static void write_many(struct redis *s, const struct simba_request *list, enum script script,
                       bool whole)
{
    bool acquires = script == SCRIPT_ACQUIRE_MANY;
    size_t keys = acquires ? ACQUIRE_KEYS : ENDING_KEYS;
    size_t words = acquires ? ACQUIRE_WORDS : ENDING_WORDS, count = 0;
    for (const struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    script_call(&s->link.out, script, whole, keys * count + (acquires ? EPOCH_KEYS : 0),
                words * count + (acquires ? EPOCH_WORDS : 0));
    if (acquires)
        resp_word(&s->link.out, EPOCH_KEY);
    for (const struct simba_request *q = list; q != NULL; q = q->next) {
        if (acquires)
            acquire_keys(s, q);
        else
            ending_keys(s, q);
    }
    if (acquires)
        epoch_words(s);
    for (const struct simba_request *q = list; q != NULL; q = q->next) {
        if (acquires)
            acquire_words(s, q);
        else
            ending_words(s, q);
    }
}

static void write_read(struct redis *s, const struct simba_request *q, bool whole)
{
    script_call(&s->link.out, SCRIPT_READ, whole, 3, 0);
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":token");
    calls_key(s, q->mutex, ":contender");
}

static void write_renewals(struct redis *s, const struct simba_request *list, bool whole)
{
    size_t count = 0;
    for (const struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    script_call(&s->link.out, SCRIPT_RENEW, whole, 2 * count, 3 * count);
    for (const struct simba_request *q = list; q != NULL; q = q->next) {
        calls_key(s, q->mutex, "");
        calls_key(s, q->mutex, ":token");
    }
    for (const struct simba_request *q = list; q != NULL; q = q->next) {
        resp_word(&s->link.out, q->id);
        write_token(s, q->token);
        resp_number(&s->link.out, calls_lease(q));
    }
}

enum script calls_script(enum simba_op op)
{
    switch (op) {
    case SIMBA_CONTEND:
        return SCRIPT_ACQUIRE;
    case SIMBA_RENEW:
        return SCRIPT_RENEW;
    case SIMBA_READ:
        return SCRIPT_READ;
    case SIMBA_EVICT:
        return SCRIPT_EVICT;
    default:
        return SCRIPT_RELEASE;
    }
}

/* One call for a request, or for a list of them that are of one kind; and remembers it. */
void calls_write(struct redis *s, struct simba_request *q, bool whole)
{
    enum script script = calls_script(q->op);
    enum flight_kind kind = q->op == SIMBA_RENEW ? FLIGHT_RENEWAL : FLIGHT_REQUEST;
    if (q->next != NULL && q->op != SIMBA_RENEW) {
        assert(q->op == SIMBA_CONTEND || q->op == SIMBA_RELEASE);
        script = q->op == SIMBA_CONTEND ? SCRIPT_ACQUIRE_MANY : SCRIPT_RELEASE_MANY;
        kind = FLIGHT_MANY;
    }
    struct flight *f = calls_push(s, kind);
    if (f == NULL) {
        refuse_all(s, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    f->script = script;
    f->request = q;
    whole = whole || s->whole[script];
    s->whole[script] = false;
    switch (script) {
    case SCRIPT_ACQUIRE:
        write_contend(s, q, whole);
        break;
    case SCRIPT_RENEW:
        write_renewals(s, q, whole);
        break;
    case SCRIPT_READ:
        write_read(s, q, whole);
        break;
    case SCRIPT_ACQUIRE_MANY:
    case SCRIPT_RELEASE_MANY:
        write_many(s, q, script, whole);
        break;
    case SCRIPT_EVICT:
        write_evict(s, q, q->id, strlen(q->id), whole);
        break;
    default:
        write_ending(s, q, whole);
        break;
    }
}

/* Once more, for exactly this owner. */
void calls_evict(struct redis *s, struct simba_request *q, const struct reply *owner)
{
    struct flight *f = calls_push(s, FLIGHT_REQUEST);
    if (f == NULL) {
        refuse_all(s, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    f->script = SCRIPT_EVICT;
    f->request = q;
    write_evict(s, q, owner->text, owner->length, true);
}

/* Requests of one kind, until they are as many as fit into a call. */
struct group {
    struct simba_request *first, **last;
    size_t count;
};

enum { RELEASES, CONTENDS, RENEWALS, GROUPS }; /* in the order in which they are written */

static void write_group(struct redis *s, struct group *g)
{
    struct simba_request *list = g->first;
    *g = (struct group){.last = &g->first};
    if (list == NULL)
        return;
    if (s->link.state == LINK_READY)
        calls_write(s, list, false);
    else
        refuse_all(s, list, s->link.code, s->link.why);
}

static void write_groups(struct redis *s, struct group *group)
{
    for (int i = 0; i < GROUPS; i++)
        write_group(s, &group[i]);
}

/* Releases go out before acquisitions, but not before one of their own handle: its names are the very
 * same memory. */
static bool is_after(const struct group *contends, const struct simba_request *release)
{
    const struct simba_request *q = contends->first;
    while (q != NULL && q->id != release->id)
        q = q->next;
    return q != NULL;
}

static void add_to_group(struct redis *s, struct group *group, struct simba_request *q)
{
    struct group *g = &group[q->op == SIMBA_RENEW     ? RENEWALS
                             : q->op == SIMBA_RELEASE ? RELEASES
                                                      : CONTENDS];
    if (q->op == SIMBA_RELEASE) {
        if (is_after(&group[CONTENDS], q))
            write_groups(s, group);
        ear_ends(&s->ear, q->mutex, q->id); /* after what the contention leads to */
    }
    *g->last = q;
    g->last = &q->next;
    if (++g->count == GROUP_MAX)
        write_group(s, g);
}

static void send_one(struct redis *s, struct simba_request *q)
{
    if (q->op == SIMBA_LIST) {
        listing_begin(s, q);
        return;
    }
    if (q->op == SIMBA_LEAVE)
        ear_ends(&s->ear, q->mutex, q->id);
    calls_write(s, q, false);
}

/* A replica takes nothing but questions. A master that could not note its epoch grants nothing. */
static bool can_take(const struct link *l, enum simba_op op)
{
    bool asks = op == SIMBA_READ || op == SIMBA_LIST;
    return asks || l->epoch.note[0] != '\0' || (!l->health.replica && op != SIMBA_CONTEND);
}

void calls_send(struct redis *s, struct simba_request *batch)
{
    struct group group[GROUPS] = {{.count = 0}};
    for (int i = 0; i < GROUPS; i++)
        group[i].last = &group[i].first;
    for (struct simba_request *q = batch, *next; q != NULL; q = next) {
        next = q->next;
        q->next = NULL;
        if (s->link.state != LINK_READY) { /* it failed on the way */
            calls_refuse(s, q, s->link.code, s->link.why);
        } else if (!can_take(&s->link, q->op)) {
            calls_refuse(s, q, s->link.write_code, s->link.write_why);
            s->to_greet = true;
        } else if (q->op == SIMBA_RENEW || q->op == SIMBA_RELEASE || q->op == SIMBA_CONTEND) {
            add_to_group(s, group, q);
        } else {
            write_groups(s, group); /* what comes after them may be about the same */
            send_one(s, q);
        }
    }
    write_groups(s, group);
    link_flush(&s->link);
    link_flush(&s->ear.link);
    calls_greet_again(s);
}

void calls_greet_again(struct redis *s)
{
    char why[LINK_TEXT_MAX];
    if (!s->to_greet || s->flights > 0)
        return;
    s->to_greet = false;
    memcpy(why, s->link.write_why, sizeof why);
    if (s->link.state == LINK_READY)
        link_fail(&s->link, s->link.write_code, "%s", why);
}

/* ---- the look behind the messages ---------------------------------------------------------- */

struct look {
    struct redis *s;
    const char *key[GROUP_MAX];
    size_t keys;
};

static void send_look(struct look *l)
{
    struct redis *s = l->s;
    if (l->keys == 0 || s->link.state != LINK_READY)
        return;
    struct flight *f = calls_push(s, FLIGHT_LOOK);
    if (f == NULL)
        return;
    f->script = SCRIPT_ABSENT;
    script_call(&s->link.out, SCRIPT_ABSENT, s->whole[SCRIPT_ABSENT], l->keys, 0);
    s->whole[SCRIPT_ABSENT] = false;
    for (size_t i = 0; i < l->keys; i++)
        resp_word(&s->link.out, l->key[i]);
    l->keys = 0;
}

static void add_look(void *data, const char *key)
{
    struct look *l = data;
    l->key[l->keys++] = key;
    if (l->keys == GROUP_MAX)
        send_look(l);
    if (l->keys == GROUP_MAX) /* the link is down */
        l->keys = 0;
}

void calls_look(struct ear *e)
{
    struct redis *s = (struct redis *)(void *)((char *)e - offsetof(struct redis, ear));
    struct look l = {.s = s};
    ear_each(e, add_look, &l);
    send_look(&l);
    link_flush(&s->link);
}
