/* trouble.c: see trouble.h. */
#include "runtime/trouble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "runtime/actor.h"
#include "runtime/client.h"
#include "runtime/error.h"

#define UNTIL_MOVES (1000 * NS_PER_MS)

/* Nobody owns the mutex, and the store grants it to nobody for a while. */
static bool is_not_yet(const struct request *r)
{
    return r->sent.op == SIMBA_CONTEND && r->code == 0 && !r->granted && !r->own &&
           r->owner == NULL && r->left_ms > 0;
}

/* Under the lock. */
static void set_locked(struct trouble *t, int code, int64_t now, int64_t until)
{
    bool is_same = t->code != 0 && (t->code == SIMBA_ENOTYET) == (code == SIMBA_ENOTYET);
    *t = (struct trouble){.code = code, .until = until, .since = is_same ? t->since : now};
}

void trouble_begin(struct actor *a)
{
    driver_lock(a->client);
    a->trouble = (struct trouble){.code = 0};
    driver_unlock(a->client);
    a->is_failing_reported = false;
}

/* Who has stopped waiting says so, and the answer to that is no news of whether the mutex is granted. */
static bool says_nothing(const struct actor *a, const struct request *r)
{
    bool asks = r->sent.op == SIMBA_CONTEND || r->sent.op == SIMBA_RENEW;
    return !asks && r->code == 0 && a->trouble.code == SIMBA_ENOTYET;
}

/* Than the store said before of when the mutex is granted. Each answer counts anew from when it was
 * asked, so the time itself moves a little. */
static bool is_other(const struct actor *a, int64_t until, const char *text)
{
    int64_t moved = until - a->trouble.until;
    return a->trouble.code != SIMBA_ENOTYET || moved > UNTIL_MOVES || moved < -UNTIL_MOVES ||
           strcmp(text != NULL ? text : "", a->failure != NULL ? a->failure : "") != 0;
}

/* Only whoever has the baton writes it, so it may look at it without the lock. */
void trouble_answered(struct actor *a, struct request *r)
{
    bool failed = request_has_failed(r), shut = is_not_yet(r);
    char *before = a->failure, *now = NULL;
    if ((before == NULL && a->trouble.code == 0 && !failed && !shut) || says_nothing(a, r))
        return;
    if (failed || (shut && r->text != NULL)) {
        now = r->text != NULL ? r->text : strdup(simba_strerror(r->code));
        r->text = NULL;
    }
    int64_t until = shut ? r->sent.sent_at + r->left_ms * NS_PER_MS : 0;
    if (shut && is_other(a, until, now))
        trace_not_yet(a, until, now);
    driver_lock(a->client);
    a->failure = now;
    if (failed)
        set_locked(&a->trouble, r->trouble, clock_now(), 0);
    else if (shut)
        set_locked(&a->trouble, SIMBA_ENOTYET, clock_now(), until);
    else
        a->trouble = (struct trouble){.code = 0};
    driver_unlock(a->client);
    free(before);
}

void trouble_unanswered(struct actor *a)
{
    bool is_failing = a->trouble.code != 0 && a->trouble.code != SIMBA_ENOTYET;
    char *before = is_failing ? NULL : a->failure;
    driver_lock(a->client);
    if (!is_failing) {
        a->failure = NULL;
        set_locked(&a->trouble, SIMBA_ETIMEOUT, clock_now(), 0);
    }
    driver_unlock(a->client);
    free(before);
}

/* ---- any thread ---------------------------------------------------------------------------- */

static int show(const struct actor *a, const char *function, struct simba_trouble *out)
{
    if (a == NULL || out == NULL)
        return error_say(SIMBA_EINVAL, "%s needs a handle and a place for the result", function);
    struct text text;
    *out = (struct simba_trouble){.code = 0};
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    text_init(&text, out->text, sizeof out->text);
    driver_lock(a->client);
    const struct trouble *t = &a->trouble;
    out->code = t->code;
    out->since = t->since / NS_PER_MS;
    out->until = t->until / NS_PER_MS;
    if (t->code != 0 && a->failure != NULL)
        text_add_escaped(&text, a->failure);
    else if (t->code != 0 && t->code != SIMBA_ENOTYET)
        text_add_escaped(&text, "the store does not answer");
    driver_unlock(a->client);
    return 0;
}

int simba_contender_trouble(const simba_contender *c, struct simba_trouble *out)
{
    return show(actor_of(c), "simba_contender_trouble", out);
}

int simba_locker_trouble(const simba_locker *l, struct simba_trouble *out)
{
    return show(actor_of(l), "simba_locker_trouble", out);
}
