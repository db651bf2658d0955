/* replies.c: see replies.h. */
#include "backend/redis/replies.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/redis.h"
#include "backend/redis/requests.h"
#include "base/text.h"

#define ODD "an answer of the server makes no sense"
#define FOREIGN \
    "the key of this mutex holds something that is not ours (it never expires); look at it"

#define EVICTED \
    "\xff"      \
    "evicted:" /* see wake.lua */

/* ---- answers ------------------------------------------------------------------------------- */

static void give(struct redis *s, bool more)
{
    struct simba_request *q = s->held.request;
    s->held.request = NULL;
    s->held.answer.more = more;
    if (q->op == SIMBA_EVICT)
        free(q->store);
    s->host->answer(s->host, q, &s->held.answer);
}

void replies_end(void *store)
{
    struct redis *s = store;
    if (s->held.request != NULL)
        give(s, false);
}

void replies_answer(struct redis *s, struct simba_request *q, const struct simba_answer *answer)
{
    struct held *h = &s->held;
    if (h->request != NULL)
        give(s, true);
    h->request = q;
    h->answer = *answer;
    if (answer->id != NULL) {
        size_t n = strnlen(answer->id, sizeof h->id - 1);
        memcpy(h->id, answer->id, n);
        h->id[n] = '\0';
        h->answer.id = h->id;
    }
    if (answer->text != NULL) {
        snprintf(h->text, sizeof h->text, "%s", answer->text);
        h->answer.text = h->text;
    }
    if (answer->note != NULL) {
        h->noted = *answer->note;
        snprintf(h->note, sizeof h->note, "%s", h->noted.text);
        h->noted.text = h->note;
        h->answer.note = &h->noted;
    }
}

void replies_refuse(struct redis *s, struct simba_request *list, int code, const char *why)
{
    for (struct simba_request *next; list != NULL; list = next) {
        next = list->next;
        replies_answer(s, list, &(struct simba_answer){.code = code, .age_ms = -1, .text = why});
    }
}

/* ---- what replies say ---------------------------------------------------------------------- */

bool replies_owner(const struct reply *r, size_t at, struct replied_owner *out)
{
    const struct reply *owner = reply_at(r, at), *left = reply_at(r, at + 1);
    const struct reply *token = reply_at(r, at + 2);
    struct reply id = *owner;
    *out = (struct replied_owner){.answer = {.id = out->id, .age_ms = -1}};
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
        out->answer.evicted = true;
        id.text += strlen(EVICTED);
        id.length -= strlen(EVICTED);
    }
    if (!reply_digits(token, &out->answer.token))
        out->answer.token = 0;
    text_shorten(out->id, sizeof out->id, id.text, id.length);
    out->answer.left_ms = left->integer;
    return true;
}

bool replies_note(const struct reply *r, size_t at, struct simba_noted *out)
{
    const struct reply *text = reply_at(r, at), *age = reply_at(r, at + 2);
    *out = (struct simba_noted){.text = text->text};
    if (text->kind != REPLY_STRING || age->kind != REPLY_INTEGER ||
        !reply_digits(reply_at(r, at + 1), &out->token))
        return false;
    out->age_ms = age->integer;
    return true;
}

static const char *not_yet(const struct redis *s)
{
    return requests_doubt_sentinels(s)
               ? "most sentinels have just started, or turned to this master (restart_guard)"
               : "the server has just started, become the master, been emptied or had databases "
                 "swapped, and may have forgotten owners (restart_guard)";
}

void replies_restart_grace_text(const struct redis *s, int64_t left_ms, char *line, size_t size)
{
    snprintf(line, size, "%s: what is free is not granted for another %lld.%lld s", not_yet(s),
             (long long)(left_ms / 1000), (long long)(left_ms % 1000 / 100));
}

static void say_restart_grace(struct redis *s, int64_t left_ms)
{
    char line[CONNECTION_TEXT_MAX];
    replies_restart_grace_text(s, left_ms, line, CONNECTION_TEXT_MAX);
    if (!s->restart_grace_said)
        s->host->log(s->host, SIMBA_LOG_WARN, line);
    s->restart_grace_said = true;
}

static bool take_grant(struct redis *s, struct simba_request *q, const struct reply *r)
{
    int64_t lease_ms = requests_lease_ms(q);
    struct simba_answer answer = {.granted = true, .id = q->id, .left_ms = lease_ms};
    if (!reply_digits(r, &answer.token) || answer.token == 0)
        return false;
    subscriber_granted(&s->subscriber, q->mutex, q->id, lease_ms);
    replies_answer(s, q, &answer);
    return true;
}

static bool take_refusal(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *score = reply_at(r, 4), *rank = reply_at(r, 5);
    int64_t result = reply_at(r, 0)->integer;
    struct replied_owner t;
    if (reply_at(r, 0)->kind != REPLY_INTEGER || (result != 0 && result != 2) ||
        !replies_owner(r, 1, &t))
        return false;
    if (result == 2 || t.is_foreign) {
        replies_refuse(s, q, SIMBA_ESCHEMA, FOREIGN);
        return true;
    }
    bool is_queued = reply_is_text(score) && rank->kind == REPLY_INTEGER;
    if (t.id[0] == '\0' && !is_queued) {
        say_restart_grace(s, t.answer.left_ms);
        t.answer.text = not_yet(s);
    } else if (t.answer.evicted ||
               (strcmp(t.id, q->id) == 0 &&
                requests_restart_grace_ms(s, requests_lease_ms(q), simba_now()) > 0)) {
        t.answer.token =
            0; /* nobody may take it up again: it may be older than what was forgotten */
    }
    if (is_queued)
        subscriber_waits(&s->subscriber, q->mutex, q->id, score->text, rank->integer);
    if (is_queued && t.id[0] == '\0')
        subscriber_is_reserved(&s->subscriber, q->mutex, t.answer.left_ms);
    replies_answer(s, q, &t.answer);
    return true;
}

/* 1: it is free; else who owns it, so the tenure had been lost. */
static bool take_release(struct redis *s, struct simba_request *q, const struct reply *r)
{
    struct replied_owner t = {.answer = {.id = "", .age_ms = -1}};
    bool is_free = r->kind == REPLY_INTEGER && r->integer == 1;
    if (!is_free && !replies_owner(r, 0, &t))
        return false;
    if (t.answer.evicted)
        t.answer.token = 0;
    t.answer.code = is_free ? 0 : SIMBA_ELOST;
    replies_answer(s, q, &t.answer);
    return true;
}

static bool take_leave(struct redis *s, struct simba_request *q, const struct reply *r)
{
    struct replied_owner t;
    if (!replies_owner(r, 0, &t))
        return false;
    if (t.answer.evicted)
        t.answer.token = 0;
    replies_answer(s, q, &t.answer);
    return true;
}

static bool take_read(struct redis *s, struct simba_request *q, const struct reply *r)
{
    struct replied_owner t;
    struct simba_noted noted;
    if (!replies_owner(r, 0, &t))
        return false;
    t.answer.note = replies_note(r, 4, &noted) ? &noted : NULL;
    t.answer.wall_ms = reply_at(r, 7)->integer;
    if (t.is_foreign)
        replies_refuse(s, q, SIMBA_ESCHEMA, FOREIGN);
    else
        replies_answer(s, q, &t.answer);
    return true;
}

static bool take_published(struct redis *s, struct simba_request *q, const struct reply *r)
{
    if (r->kind != REPLY_INTEGER)
        return false;
    replies_refuse(s, q, r->integer == 1 ? 0 : SIMBA_ELOST, NULL);
    return true;
}

/* Once more, for exactly this owner. */
static void evict_exactly(struct redis *s, struct simba_request *q, const struct reply *owner)
{
    struct exact_id *id = q->store == NULL ? malloc(sizeof *id + owner->length) : NULL;
    if (id == NULL) {
        replies_refuse(s, q, q->store == NULL ? SIMBA_ELIMIT : SIMBA_ELOST, NULL);
        return;
    }
    id->length = owner->length;
    memcpy(id->bytes, owner->text, owner->length);
    q->store = id;
    pending_add(&s->waiting, q);
}

static bool take_evict(struct redis *s, struct simba_request *q, const struct reply *r)
{
    const struct reply *owner = reply_at(r, 1);
    char shown[SIMBA_ID_MAX + 1];
    if (reply_at(r, 0)->kind != REPLY_INTEGER)
        return false;
    if (reply_at(r, 0)->integer == 1) {
        replies_refuse(s, q, 0, NULL);
        return true;
    }
    if (owner->kind != REPLY_STRING)
        return false;
    text_shorten(shown, sizeof shown, owner->text, owner->length);
    if (q->id[0] != '\0' && strcmp(shown, q->id) == 0 && !reply_equals(owner, shown))
        evict_exactly(s, q, owner); /* this one, whose id is not shown as it is */
    else
        replies_refuse(s, q, SIMBA_ELOST, NULL);
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
    if (!counts_all(r, (int64_t)requests_count(list)))
        return false;
    size_t lost = 1;
    int64_t number = 1;
    subscriber_renewed(&s->subscriber, requests_lease_ms(list));
    for (struct simba_request *q = list, *next; q != NULL; q = next, number++) {
        next = q->next;
        struct simba_answer answer = {
            .id = q->id, .token = q->token, .left_ms = requests_lease_ms(q), .age_ms = -1};
        if (reply_at(r, lost)->kind == REPLY_INTEGER && reply_at(r, lost)->integer == number) {
            answer = (struct simba_answer){.code = SIMBA_ELOST, .age_ms = -1};
            lost++;
        }
        replies_answer(s, q, &answer);
    }
    return true;
}

static bool take_request(struct redis *s, struct simba_request *q, const struct reply *r)
{
    switch (q->op) {
    case SIMBA_CONTEND:
        return r->kind == REPLY_ARRAY ? take_refusal(s, q, r) : take_grant(s, q, r);
    case SIMBA_RENEW:
        return take_renewals(s, q, r);
    case SIMBA_READ:
        return take_read(s, q, r);
    case SIMBA_EVICT:
        return take_evict(s, q, r);
    case SIMBA_PUBLISH:
        return take_published(s, q, r);
    case SIMBA_RELEASE:
        return take_release(s, q, r);
    default:
        assert(q->op == SIMBA_LEAVE);
        return take_leave(s, q, r);
    }
}

/* One that failed is asked for again, alone: then the server says why. What makes no sense refuses
 * the rest of them, too: *list is what is not answered. */
static bool take_many(struct redis *s, struct simba_request **list, const struct reply *r)
{
    size_t count = requests_count(*list);
    if (r->kind != REPLY_ARRAY || r->elements != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct simba_request *q = *list, *rest = q->next;
        const struct reply *one = reply_at(r, i);
        q->next = NULL;
        if (one->kind == REPLY_NIL) {
            q->store = q;
            pending_add(&s->waiting, q);
        } else if (!take_request(s, q, one)) {
            q->next = rest;
            return false;
        }
        *list = rest;
    }
    return true;
}

/* A user may be allowed to read one of them and not another. */
static void read_one_by_one(struct redis *s, struct simba_request *list)
{
    for (struct simba_request *q = list; q != NULL; q = q->next)
        q->store = q;
    pending_add(&s->waiting, list);
}

static void take_error(struct redis *s, const struct redis_command *sent, const struct reply *r)
{
    struct simba_request *list = sent->about;
    char why[CONNECTION_TEXT_MAX];
    int code = errors_describe(r, why, sizeof why);
    if (reply_is_error(r, "NOSCRIPT")) {
        s->is_unknown[sent->which] = true;
        pending_add(&s->waiting, sent->about); /* sent when the reading is over */
    } else if (reply_is_error(r, "SIMBAEPOCH")) {
        connection_fail(&s->commands, code, "%s", why);
        pending_add(&s->waiting, sent->about); /* nothing was granted: under the new epoch */
    } else if (list->op == SIMBA_READ && list->next != NULL) {
        read_one_by_one(s, list);
    } else {
        replies_refuse(s, list, code, why);
    }
}

void replies_take(void *store, const struct redis_command *sent, const struct reply *r)
{
    struct redis *s = store;
    struct simba_request *list = sent->about;
    bool many = sent->which == SCRIPT_ACQUIRE_MANY || sent->which == SCRIPT_RELEASE_MANY ||
                sent->which == SCRIPT_READ;
    if (r == NULL) {
        replies_refuse(s, list, s->commands.code, s->commands.why);
    } else if (r->kind == REPLY_ERROR) {
        take_error(s, sent, r);
    } else if (many ? !take_many(s, &list, r) : !take_request(s, list, r)) {
        replies_refuse(s, list, SIMBA_ESTORE, ODD);
        connection_fail(&s->commands, SIMBA_ESTORE, ODD);
    }
}
