/* host.c: what a store may call, on any thread (struct simba_host). It is copied and queued for
 * the next turn, never acted on in place. Stores are not trusted with more than their word:
 * lengths are clamped, strings bounded. */
#include "runtime/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/client.h"
#include "runtime/inquiry.h"

#define HINTS_MAX 1024 /* and one for each handle; more become "ask for everything" */

static int64_t bounded_left(int64_t ms)
{
    if (ms < 0)
        return 0;
    return ms < SIMBA_LEASE_MAX_MS ? ms : SIMBA_LEASE_MAX_MS;
}

static char *copy_text(const char *text)
{
    char copy[CALL_TEXT_MAX];
    struct text t;
    text_init(&t, copy, sizeof copy);
    text_add(&t, text);
    text_end(&t);
    return strdup(copy);
}

/* What the failure means for the request: that it was late, or was not let in, is known of the store
 * only. */
static int outcome_of(int code)
{
    bool is_known = code <= 0 && code >= SIMBA_ECANCELED;
    return is_known && code != SIMBA_ETIMEOUT && code != SIMBA_ESTATE ? code : SIMBA_ESTORE;
}

/* Under the lock. */
static void copy_answer(struct request *r, const struct simba_answer *answer)
{
    if (r->code == 0)
        r->code = outcome_of(answer->code);
    r->granted = answer->granted && r->to_store.op == SIMBA_CONTEND;
    r->token = answer->token;
    r->left_ms = bounded_left(answer->left_ms);
    r->age_ms = answer->age_ms;
    r->wall_ms = answer->wall_ms > 0 ? answer->wall_ms : 0;
    r->evicted = answer->evicted;
    if (answer->id != NULL && answer->id[0] != '\0') {
        r->own = strcmp(answer->id, r->to_store.id) == 0;
        if (!r->own && (r->owner = strndup(answer->id, SIMBA_ID_MAX)) == NULL)
            r->code = SIMBA_ELIMIT;
    }
    if (r->code == 0 && r->to_store.with_note && answer->note != NULL &&
        (r->note = note_keep(answer->note)) == NULL)
        r->code = SIMBA_ELIMIT;
    bool is_finer = answer->code == SIMBA_ETIMEOUT || answer->code == SIMBA_ESTATE;
    r->trouble = is_finer ? answer->code : r->code;
    bool is_shut = r->code == 0 && r->owner == NULL && !r->own && r->left_ms > 0;
    if ((r->code < 0 || is_shut) && answer->text != NULL)
        r->text = copy_text(answer->text);
}

static void host_answer(struct simba_host *host, struct simba_request *request,
                        const struct simba_answer *answer)
{
    struct simba_client *s = (struct simba_client *)(void *)host;
    struct request *r = (struct request *)(void *)request;
    struct inbox *in = &s->inbox;
    driver_lock(s);
    if (r->answered) { /* a second answer is no answer */
        driver_unlock(s);
        return;
    }
    r->answered = true;
    copy_answer(r, answer);
    request->next = NULL;
    *in->answers_last = request;
    in->answers_last = &request->next;
    if (!answer->more)
        driver_want_locked(s);
    driver_unlock_turn(s, NULL, false);
}

void host_cancel(struct simba_client *s, struct simba_request *batch)
{
    static const struct simba_answer canceled = {.code = SIMBA_ECANCELED, .age_ms = -1};
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        host_answer(&s->host, batch, &canceled);
    }
}

static void host_found(struct simba_host *host, struct simba_request *request,
                       const struct simba_found *found)
{
    (void)host;
    struct request *r = (struct request *)(void *)request;
    struct simba_found bounded = *found;
    struct found *f = malloc(sizeof *f);
    struct note *note = r->to_store.with_note ? note_keep(found->note) : NULL;
    if (f == NULL || (r->to_store.with_note && found->note != NULL && note == NULL)) {
        r->code = SIMBA_ELIMIT; /* instead of a list with holes */
        free(note);
        free(f);
        return;
    }
    f->note = note;
    bounded.left_ms = bounded_left(found->left_ms);
    f->owner = request_owner(r, &bounded);
    f->waiters = found->waiters < 0 ? -1 : found->waiters;
    snprintf(f->mutex, sizeof f->mutex, "%s", found->mutex);
    f->next = r->found;
    r->found = f;
}

static void host_say(struct simba_host *host, struct simba_request *request,
                     const struct simba_finding *finding)
{
    (void)host;
    inquiry_say(((struct request *)(void *)request)->inquiry, finding);
}

static void host_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    struct simba_client *s = (struct simba_client *)(void *)host;
    struct inbox *in = &s->inbox;
    size_t length = mutex != NULL ? strlen(mutex) + 1 : 0, more = id != NULL ? strlen(id) + 1 : 0;
    driver_lock(s);
    struct hint *h = NULL;
    if (mutex != NULL && in->hints_count < HINTS_MAX + s->actors_count)
        h = malloc(sizeof *h + length + more);
    if (h != NULL) {
        memcpy(h->mutex, mutex, length);
        h->id = id != NULL ? memcpy(h->mutex + length, id, more) : NULL;
        h->next = in->hints;
        in->hints = h;
        in->hints_count++;
    } else {
        in->hint_all = true;
    }
    driver_want_locked(s);
    driver_unlock_turn(s, NULL, true);
}

static void host_hint(struct simba_host *host, const char *mutex)
{
    host_hint_one(host, mutex, NULL);
}

static void host_log(struct simba_host *host, enum simba_level level, const char *line)
{
    struct simba_client *s = (struct simba_client *)(void *)host;
    log_put(&s->log, level, "%s: %s", s->url.shown, line);
}

static void host_reconnected(struct simba_host *host)
{
    atomic_fetch_add(&((struct simba_client *)(void *)host)->metrics.reconnects, 1);
}

static void host_closed(struct simba_host *host)
{
    struct simba_client *s = (struct simba_client *)(void *)host;
    driver_lock(s);
    s->store_closed = true;
    driver_want_locked(s);
    driver_unlock(s);
}

void host_init(struct simba_client *s)
{
    s->host.version = SIMBA_BACKEND_VERSION;
    s->host.loop = &s->loop.uv;
    s->host.answer = host_answer;
    s->host.found = host_found;
    s->host.say = host_say;
    s->host.hint = host_hint;
    s->host.hint_one = host_hint_one;
    s->host.log = host_log;
    s->host.reconnected = host_reconnected;
    s->host.closed = host_closed;
}
