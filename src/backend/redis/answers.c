/* answers.c: replies to answers. A reply that does not look as its script makes it ends the connection:
 * nothing in it is believed. */
#include <stdio.h>
#include <string.h>

#include "backend/redis/redis.h"
#include "base/text.h"

#define ODD "an answer of the server makes no sense"
#define FOREIGN \
    "the key of this mutex holds something that is not ours (it never expires); look at it"

#define EVICTED \
    "\xff"      \
    "evicted:" /* see wake.lua */

bool calls_told(const struct reply *owner, const struct reply *left, const struct reply *token,
                struct told *out)
{
    struct reply id = *owner;
    *out = (struct told){.id = ""};
    if (left->kind != REPLY_INTEGER)
        return false;
    if (owner->kind == REPLY_NIL) {
        out->is_foreign = true;
        return true;
    }
    if (owner->kind != REPLY_STRING || token->kind != REPLY_STRING)
        return false;
    out->is_foreign = left->integer < 0; /* no tenure: it never ends */
    if (out->is_foreign)
        return true;
    if (strncmp(id.text, EVICTED, strlen(EVICTED)) == 0) {
        out->evicted = true;
        id.text += strlen(EVICTED);
        id.length -= strlen(EVICTED);
    }
    if (!reply_digits(token, &out->token))
        out->token = 0;
    text_shorten(out->id, sizeof out->id, id.text, id.length);
    out->left_ms = left->integer;
    return true;
}

static void say_guard(struct redis *s, int64_t left_ms, char line[LINK_TEXT_MAX])
{
    redis_guard_text(left_ms, line, LINK_TEXT_MAX);
    if (!s->guard_said)
        s->host->log(s->host, SIMBA_LOG_WARN, line);
    s->guard_said = true;
}

static bool take_contend(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *score = reply_at(r, 4), *rank = reply_at(r, 5);
    int64_t verdict = reply_at(r, 0)->integer;
    char line[LINK_TEXT_MAX];
    struct told t;
    if (reply_at(r, 0)->kind != REPLY_INTEGER || verdict < 0 || verdict > 2 ||
        !calls_told(reply_at(r, 1), reply_at(r, 2), reply_at(r, 3), &t))
        return false;
    if (verdict == 2 || t.is_foreign) {
        calls_refuse(s, q, SIMBA_ESCHEMA, FOREIGN);
        return true;
    }
    struct simba_answer answer = {
        .id = t.id, .token = t.token, .left_ms = t.left_ms, .age_ms = -1, .evicted = t.evicted};
    if (verdict == 1) {
        if (strcmp(t.id, q->id) != 0 || t.token == 0 || t.evicted || t.left_ms > calls_lease(q))
            return false;
        answer.granted = true;
        answer.age_ms = 0;
        ear_ends(&s->ear, q->mutex, q->id);
        ear_owns(&s->ear, q->mutex, calls_lease(q));
    } else if (t.id[0] == '\0') {
        say_guard(s, t.left_ms, line);
        answer.text = line;
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
    struct simba_answer answer = {
        .id = t.id, .left_ms = t.left_ms, .age_ms = -1, .evicted = t.evicted};
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
                     &(struct simba_answer){.id = t.id,
                                            .token = t.token,
                                            .left_ms = t.left_ms,
                                            .age_ms = -1,
                                            .evicted = t.evicted});
    return true;
}

static bool take_evict(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *owner = reply_at(r, 1);
    char shown[SIMBA_ID_MAX + 1];
    if (reply_at(r, 0)->kind != REPLY_INTEGER)
        return false;
    if (reply_at(r, 0)->integer == 1) {
        calls_refuse(s, q, 0, NULL);
        return true;
    }
    if (owner->kind != REPLY_STRING)
        return false;
    text_shorten(shown, sizeof shown, owner->text, owner->length);
    if (q->id[0] != '\0' && strcmp(shown, q->id) == 0 && !reply_equals(owner, shown))
        calls_evict(s, q, owner); /* this one, whose id is not shown as it is */
    else
        calls_refuse(s, q, SIMBA_ELOST, NULL);
    return true;
}

/* How many were renewed, and then the numbers of the others, in their order. */
static bool counts_all(const struct reply *r, int64_t count)
{
    int64_t last = 0;
    if (reply_at(r, 0)->kind != REPLY_INTEGER ||
        reply_at(r, 0)->integer + (int64_t)r->elements - 1 != count)
        return false;
    for (size_t i = 1; i < r->elements; i++) {
        if (r->element[i].kind != REPLY_INTEGER || r->element[i].integer <= last)
            return false;
        last = r->element[i].integer;
    }
    return last <= count;
}

static bool take_renewals(struct redis *s, struct simba_request *list, const struct reply *r)
{
    int64_t count = 0;
    for (const struct simba_request *q = list; q != NULL; q = q->next)
        count++;
    if (!counts_all(r, count))
        return false;
    size_t lost = 1;
    int64_t number = 1;
    ear_owns(&s->ear, NULL, calls_lease(list));
    for (struct simba_request *q = list, *next; q != NULL; q = next, number++) {
        next = q->next;
        struct simba_answer answer = {
            .id = q->id, .token = q->token, .left_ms = calls_lease(q), .age_ms = -1};
        if (reply_at(r, lost)->kind == REPLY_INTEGER && reply_at(r, lost)->integer == number) {
            answer = (struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1};
            lost++;
        }
        calls_answer(s, q, &answer);
    }
    return true;
}

static bool take_request(struct redis *s, struct simba_request *q, const struct reply *r)
{
    switch (calls_script(q->op)) {
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

static bool is_for_requests(const struct flight *f)
{
    return f->kind == FLIGHT_REQUEST || f->kind == FLIGHT_RENEWAL || f->kind == FLIGHT_MANY;
}

/* True: it has been dealt with. */
static bool take_error(struct redis *s, const struct flight *f, const struct reply *r)
{
    char why[LINK_TEXT_MAX];
    if (r->kind != REPLY_ERROR)
        return false;
    if (reply_is_error(r, "NOSCRIPT")) {
        if (is_for_requests(f)) {
            calls_write(s, f->request, true);
            return true;
        }
        s->whole[f->script] = true;
    }
    if (reply_is_error(r, "SIMBAEPOCH") && is_for_requests(f)) {
        link_fail(&s->link, link_refusal(r, why, sizeof why), "%s", why);
        redis_submit(s, f->request); /* nothing was granted: ask again, under the new epoch */
        return true;
    }
    int code = link_refusal(r, why, sizeof why);
    bool is_gone = reply_is_error(r, "READONLY") || reply_is_error(r, "LOADING") ||
                   reply_is_error(r, "MASTERDOWN");
    calls_fail_flight(s, f, code, why);
    if (is_gone) /* no longer the server that was greeted */
        link_fail(&s->link, code, "%s", why);
    return true;
}

/* The short form in which a call for many says that all is as it should be. */
static bool take_short(struct redis *s, struct simba_request *q, const struct reply *r)
{
    struct simba_answer answer = {.age_ms = -1};
    if (q->op == SIMBA_CONTEND) {
        if (!reply_digits(r, &answer.token) || answer.token == 0)
            return false;
        answer.granted = true;
        answer.id = q->id;
        answer.left_ms = calls_lease(q);
        answer.age_ms = 0;
        ear_ends(&s->ear, q->mutex, q->id);
        ear_owns(&s->ear, q->mutex, calls_lease(q));
    } else if (r->kind != REPLY_INTEGER || r->integer != 1) {
        return false;
    }
    calls_answer(s, q, &answer);
    return true;
}

/* One that failed is asked for again, alone: then the server says why. What makes no sense refuses the
 * rest of them, too. */
static bool take_many(struct redis *s, struct flight *f, const struct reply *r)
{
    size_t count = 0;
    for (const struct simba_request *q = f->request; q != NULL; q = q->next)
        count++;
    if (r->kind != REPLY_ARRAY || r->elements != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct simba_request *q = f->request, *rest = q->next;
        const struct reply *one = reply_at(r, i);
        q->next = NULL;
        if (one->kind == REPLY_NIL) {
            calls_write(s, q, false);
        } else if (one->kind == REPLY_ARRAY ? !take_request(s, q, one) : !take_short(s, q, one)) {
            q->next = rest;
            return false;
        }
        f->request = rest;
    }
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
    struct flight f = calls_pop(s);
    if (f.kind == FLIGHT_RIGHT) {
        examine_reply(s, &f, r);
        return;
    }
    if (take_error(s, &f, r))
        return;
    switch (f.kind) {
    case FLIGHT_REQUEST:
    case FLIGHT_RENEWAL:
        sense = take_request(s, f.request, r);
        break;
    case FLIGHT_MANY:
        sense = take_many(s, &f, r);
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
        calls_fail_flight(s, &f, SIMBA_ESTORE, ODD);
        link_fail(&s->link, SIMBA_ESTORE, ODD);
    }
}
