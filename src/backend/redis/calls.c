/* calls.c: requests to commands, replies to answers.
 *
 * Commands are answered in their order, so a ring of what was asked is all there is to remember. A
 * reply that does not look as its script makes it ends the connection: nothing in it is believed. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/redis.h"

#define ODD "an answer of the server makes no sense"
#define FOREIGN "the key of this mutex holds something that is not ours (it never expires); look at it"

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
        snprintf(s->held_id, sizeof s->held_id, "%s", answer->id);
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

static struct flight pop(struct redis *s)
{
    assert(s->flights > 0);
    struct flight f = s->ring[s->first];
    s->first = (s->first + 1) & (s->ring_size - 1);
    s->flights--;
    return f;
}

static void fail_flight(struct redis *s, const struct flight *f, int code, const char *why)
{
    if (f->kind == FLIGHT_REQUEST || f->kind == FLIGHT_RENEWAL)
        refuse_all(s, f->request, code, why);
    else if (f->listing != NULL)
        listing_end(s, f->listing, code, why);
}

void calls_fail(struct redis *s, int code, const char *why)
{
    while (s->flights > 0) {
        struct flight f = pop(s);
        fail_flight(s, &f, code, why);
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

static int64_t lease_of(const struct simba_request *q)
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

static void say_guard(struct redis *s, int64_t left_ms)
{
    char line[192];
    if (s->guard_said)
        return;
    s->guard_said = true;
    snprintf(line, sizeof line,
             "the server has %s and may have forgotten owners: what is free is not granted for "
             "another %lld ms (restart_guard)",
             s->link.master_ms >= 0 ? "become the master" : "restarted", (long long)left_ms);
    s->host->log(s->host, SIMBA_LOG_WARN, line);
}

static void write_contend(struct redis *s, const struct simba_request *q, bool whole)
{
    struct buffer *b = &s->link.out;
    int64_t hold = redis_guard_ms(s, lease_of(q));
    script_call(b, SCRIPT_ACQUIRE, whole, 4, 4);
    calls_key(s, q->mutex, "");
    calls_key(s, q->mutex, ":contender");
    calls_key(s, q->mutex, ":fence");
    calls_key(s, q->mutex, ":token");
    resp_word(b, q->id);
    resp_number(b, lease_of(q));
    resp_word(b, ear_asks(&s->ear, q->mutex, q->id));
    resp_number(b, hold);
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
        resp_number(&s->link.out, lease_of(q));
    }
}

static enum script script_of(enum simba_op op)
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
static void write_call(struct redis *s, struct simba_request *q, bool whole)
{
    enum script script = script_of(q->op);
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
    write_call(s, q, false);
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
        write_call(s, group, false);
        group = NULL;
        last = &group;
        count = 0;
    }
    if (group != NULL && s->link.state == LINK_READY)
        write_call(s, group, false);
    else
        refuse_all(s, group, s->link.code, s->link.why);
    link_flush(&s->link);
    link_flush(&s->ear.link);
}

/* ---- to answers ---------------------------------------------------------------------------- */

bool calls_told(const struct reply *owner, const struct reply *left, const struct reply *token,
                struct told *out)
{
    *out = (struct told){.id = ""};
    if (left->kind != REPLY_INTEGER)
        return false;
    if (owner->kind == REPLY_NIL) {
        out->is_foreign = true;
        return true;
    }
    if (owner->kind != REPLY_STRING || token->kind != REPLY_STRING)
        return false;
    /* Not an id of anybody who plays by the rules. */
    out->is_foreign = !reply_is_text(owner) || owner->length > SIMBA_ID_MAX || left->integer < 0;
    if (out->is_foreign)
        return true;
    struct reply digits = *token;
    if (digits.length > 0 && digits.text[0] == '-') {
        out->evicted = true;
        digits.text++;
        digits.length--;
    }
    if (!reply_digits(&digits, &out->token))
        out->token = 0;
    out->id = owner->text;
    out->left_ms = left->integer;
    return true;
}

static bool take_contend(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *score = reply_at(r, 4), *rank = reply_at(r, 5);
    int64_t verdict = reply_at(r, 0)->integer;
    struct told t;
    if (reply_at(r, 0)->kind != REPLY_INTEGER || verdict < 0 || verdict > 2 ||
        !calls_told(reply_at(r, 1), reply_at(r, 2), reply_at(r, 3), &t))
        return false;
    if (verdict == 2 || t.is_foreign) {
        calls_refuse(s, q, SIMBA_ESCHEMA, FOREIGN);
        return true;
    }
    struct simba_answer answer = {.id = t.id, .token = t.token, .left_ms = t.left_ms, .age_ms = -1};
    if (verdict == 1) {
        if (strcmp(t.id, q->id) != 0 || t.token == 0 || t.evicted || t.left_ms > lease_of(q))
            return false;
        answer.granted = true;
        answer.age_ms = 0;
        ear_ends(&s->ear, q->mutex, q->id);
    } else if (t.id[0] == '\0') {
        say_guard(s, t.left_ms);
    } else if (t.evicted) {
        answer.token = 0; /* nobody may take it up again */
    }
    if (reply_is_text(score) && rank->kind == REPLY_INTEGER)
        ear_waits(&s->ear, q->mutex, q->id, score->text, rank->integer);
    calls_answer(s, q, &answer);
    return true;
}

static bool take_ending(struct redis *s, struct simba_request *q, const struct reply *r)
{
    struct told t;
    if (reply_at(r, 0)->kind != REPLY_INTEGER ||
        !calls_told(reply_at(r, 1), reply_at(r, 2), reply_at(r, 3), &t))
        return false;
    struct simba_answer answer = {.id = t.id, .left_ms = t.left_ms, .age_ms = -1};
    answer.token = t.evicted ? 0 : t.token;
    if (q->op == SIMBA_RELEASE && reply_at(r, 0)->integer != 1)
        answer.code = SIMBA_ELOST;
    calls_answer(s, q, &answer);
    return true;
}

static bool take_read(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *one = reply_at(r, 0);
    struct told t;
    if (!calls_told(reply_at(one, 0), reply_at(one, 1), reply_at(one, 2), &t))
        return false;
    if (t.is_foreign)
        calls_refuse(s, q, SIMBA_ESCHEMA, FOREIGN);
    else
        calls_answer(s, q,
                     &(struct simba_answer){
                         .id = t.id, .token = t.token, .left_ms = t.left_ms, .age_ms = -1});
    return true;
}

static bool take_evict(struct redis *s, struct simba_request *q, const struct reply *r)
{
    if (r->kind != REPLY_INTEGER)
        return false;
    if (r->integer == 2)
        calls_refuse(s, q, SIMBA_EUNSUPPORTED,
                     "its owner is not of a kind that can be asked to go; only force ends it");
    else
        calls_refuse(s, q, r->integer == 1 ? 0 : SIMBA_ELOST, NULL);
    return true;
}

static bool take_renewals(struct redis *s, struct simba_request *list, const struct reply *r)
{
    size_t i = 0;
    for (const struct simba_request *q = list; q != NULL; q = q->next)
        i++;
    if (r->kind != REPLY_ARRAY || r->elements != i)
        return false;
    i = 0;
    for (struct simba_request *q = list, *next; q != NULL; q = next) {
        const struct reply *kept = &r->element[i++];
        next = q->next;
        struct simba_answer answer = {
            .id = q->id, .token = q->token, .left_ms = lease_of(q), .age_ms = -1};
        if (kept->kind != REPLY_INTEGER || kept->integer != 1)
            answer = (struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1};
        calls_answer(s, q, &answer);
    }
    return true;
}

static bool take_request(struct redis *s, struct simba_request *q, const struct reply *r)
{
    switch (script_of(q->op)) {
    case SCRIPT_ACQUIRE:
        return take_contend(s, q, r);
    case SCRIPT_GUARD:
        return take_renewals(s, q, r);
    case SCRIPT_READ:
        return take_read(s, q, r);
    case SCRIPT_EVICT:
        return take_evict(s, q, r);
    default:
        return take_ending(s, q, r);
    }
}

/* True: it has been dealt with. */
static bool take_error(struct redis *s, const struct flight *f, const struct reply *r)
{
    char why[LINK_TEXT_MAX];
    if (r->kind != REPLY_ERROR)
        return false;
    if (reply_is_error(r, "NOSCRIPT")) {
        if (f->kind == FLIGHT_REQUEST || f->kind == FLIGHT_RENEWAL) {
            write_call(s, f->request, true);
            return true;
        }
        s->whole[f->script] = true;
    }
    int code = link_refusal(r, why, sizeof why);
    bool is_gone = reply_is_error(r, "READONLY") || reply_is_error(r, "LOADING") ||
                   reply_is_error(r, "MASTERDOWN");
    fail_flight(s, f, code, why);
    if (is_gone) /* no longer the server that was greeted */
        link_fail(&s->link, code, "%s", why);
    return true;
}

static bool take_look(struct redis *s, const struct reply *r)
{
    if (r->kind != REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < r->elements; i++) {
        if (reply_is_text(&r->element[i]))
            ear_free_mutex(&s->ear, r->element[i].text);
    }
    return true;
}

void calls_reply(struct redis *s, const struct reply *r)
{
    bool sense = true;
    if (s->flights == 0) {
        link_fail(&s->link, SIMBA_ESTORE, "the server answered what nobody asked");
        return;
    }
    struct flight f = pop(s);
    if (take_error(s, &f, r))
        return;
    switch (f.kind) {
    case FLIGHT_REQUEST:
    case FLIGHT_RENEWAL:
        sense = take_request(s, f.request, r);
        break;
    case FLIGHT_SCAN:
        listing_scanned(s, f.listing, r);
        break;
    case FLIGHT_DETAILS:
        listing_details(s, f.listing, r);
        break;
    default:
        sense = take_look(s, r);
        break;
    }
    if (!sense) {
        fail_flight(s, &f, SIMBA_ESTORE, ODD);
        link_fail(&s->link, SIMBA_ESTORE, ODD);
    }
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
