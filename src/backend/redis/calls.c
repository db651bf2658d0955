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
    if (f->kind == FLIGHT_REQUEST || f->kind == FLIGHT_RENEWAL)
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

static void write_contend(struct redis *s, const struct simba_request *q, bool whole)
{
    struct buffer *b = &s->link.out;
    int64_t hold = redis_guard_ms(s, calls_lease(q));
    script_call(b, SCRIPT_ACQUIRE, whole, 4, 5);
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":contender");
    calls_key(s, q->mutex, ":fence");
    calls_key(s, q->mutex, ":token");
    resp_word(b, q->id);
    resp_number(b, calls_lease(q));
    resp_word(b, ear_asks(&s->ear, q->mutex, q->id));
    resp_number(b, hold);
    resp_number(b, redis_epoch_us(s));
}

static void write_ending(struct redis *s, const struct simba_request *q, enum script script,
                         bool whole)
{
    struct buffer *b = &s->link.out;
    script_call(b, script, whole, 3, 2);
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":contender");
    calls_key(s, q->mutex, ":token");
    if (script == SCRIPT_EVICT) {
        write_token(s, q->token);
        resp_word(b, q->forced ? "1" : "0");
        return;
    }
    resp_word(b, q->id);
    write_token(s, q->op == SIMBA_RELEASE ? q->token : 0);
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
    script_call(&s->link.out, SCRIPT_GUARD, whole, 2 * count, 3 * count);
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
        return SCRIPT_GUARD;
    case SIMBA_READ:
        return SCRIPT_READ;
    case SIMBA_EVICT:
        return SCRIPT_EVICT;
    default:
        return SCRIPT_RELEASE;
    }
}

/* Writes a request, or a list of renewals, and remembers it. */
void calls_write(struct redis *s, struct simba_request *q, bool whole)
{
    enum script script = calls_script(q->op);
    struct flight *f = calls_push(s, q->op == SIMBA_RENEW ? FLIGHT_RENEWAL : FLIGHT_REQUEST);
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
    case SCRIPT_GUARD:
        write_renewals(s, q, whole);
        break;
    case SCRIPT_READ:
        write_read(s, q, whole);
        break;
    default:
        write_ending(s, q, script, whole);
        break;
    }
}

static void send_one(struct redis *s, struct simba_request *q)
{
    q->next = NULL;
    if (q->op == SIMBA_LIST) {
        listing_begin(s, q);
        return;
    }
    if (q->op == SIMBA_RELEASE || q->op == SIMBA_LEAVE)
        ear_ends(&s->ear, q->mutex, q->id);
    calls_write(s, q, false);
}

void calls_send(struct redis *s, struct simba_request *batch)
{
    struct simba_request *group = NULL, **last = &group;
    size_t count = 0;
    for (struct simba_request *q = batch, *next; q != NULL; q = next) {
        next = q->next;
        if (s->link.state != LINK_READY) { /* it failed on the way */
            q->next = NULL;
            calls_refuse(s, q, s->link.code, s->link.why);
            continue;
        }
        if (q->op != SIMBA_RENEW) {
            send_one(s, q);
            continue;
        }
        q->next = NULL;
        *last = q;
        last = &q->next;
        if (++count < GUARD_GROUP)
            continue;
        calls_write(s, group, false);
        group = NULL;
        last = &group;
        count = 0;
    }
    if (group != NULL && s->link.state == LINK_READY)
        calls_write(s, group, false);
    else
        refuse_all(s, group, s->link.code, s->link.why);
    link_flush(&s->link);
    link_flush(&s->ear.link);
}

/* ---- the look behind the messages ---------------------------------------------------------- */

struct look {
    struct redis *s;
    const char *key[GUARD_GROUP];
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
    if (l->keys == GUARD_GROUP)
        send_look(l);
    if (l->keys == GUARD_GROUP) /* the link is down */
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
