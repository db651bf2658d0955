/* pass.c: see pass.h. */
#include "backend/sql/pass.h"

#include <string.h>

#include "backend/sql/sql.h"

/* While others are known to wait; and if there may be some. */
#define CONTESTED_MAX 8
#define CONTESTED_MS 100
#define PASSES_MAX 32
#define OTHERS_FIRST_MS 3 /* about what a notification takes, and the question after it */

static struct sql_pass *find(struct sql *s, const char *mutex)
{
    for (size_t i = 0; i < SQL_PASS_MUTEXES; i++) {
        struct sql_pass *p = &s->passes.mutex[i];
        if (strcmp(p->mutex, mutex) == 0)
            return p;
    }
    return NULL;
}

static struct sql_pass *add(struct sql *s, const char *mutex)
{
    struct sql_pass *p = &s->passes.mutex[s->passes.next];
    s->passes.next = (s->passes.next + 1) % SQL_PASS_MUTEXES;
    *p = (struct sql_pass){.until = 0};
    memcpy(p->mutex, mutex, strlen(mutex) + 1);
    return p;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* An eviction is notified, so that what is known here is doubted in time. */
static bool refuse_here(struct sql *s, const struct sql_pass *p, struct simba_request *q)
{
    int64_t now = simba_now();
    if (p->until <= now || !s->listens || strcmp(p->owner, q->id) == 0)
        return false;
    struct simba_answer a = {
        .id = p->owner, .token = p->token, .left_ms = p->until - now, .age_ms = now - p->began_at};
    s->host->answer(s->host, q, &a);
    return true;
}

static void on_others_first(uv_timer_t *timer)
{
    struct sql *s = timer->data;
    pending_add(&s->waiting, pending_take(&s->passes.later));
    sql_connection_go_on(s);
}

static bool ask_later(struct sql *s, const struct sql_pass *p, struct simba_request *q)
{
    int64_t left = p->others_until - simba_now();
    if (left <= 0)
        return false;
    q->next = NULL;
    pending_add(&s->passes.later, q);
    if (!uv_is_active((uv_handle_t *)&s->passes.timer))
        handles_start_timer(&s->passes.timer, on_others_first, left);
    return true;
}

bool sql_pass_holds_back(struct sql *s, struct simba_request *q)
{
    bool leaves = q->op == SIMBA_RELEASE;
    struct sql_pass *p = leaves || q->op == SIMBA_CONTEND ? find(s, q->mutex) : NULL;
    if (p != NULL && leaves)
        p->until = 0;
    return p != NULL && !leaves && (refuse_here(s, p, q) || ask_later(s, p, q));
}

bool sql_pass_may(struct sql *s, const char *mutex)
{
    const struct sql_pass *p = find(s, mutex);
    if (s->connection == NULL || !s->connection->session.passes || !sql_queue_may_pass(s, mutex))
        return false;
    if (p == NULL || !p->is_contested)
        return p == NULL || p->count < PASSES_MAX;
    return p->count < CONTESTED_MAX && simba_now() - p->since < CONTESTED_MS;
}

/* Many are released by one statement, which is better than a pass for each. */
void sql_pass_invite(struct sql *s, const struct simba_request *batch)
{
    const struct simba_request *only = NULL;
    for (; batch != NULL; batch = batch->next) {
        if (batch->op != SIMBA_RELEASE)
            continue;
        if (only != NULL)
            return;
        only = batch;
    }
    if (only == NULL || !sql_poller_waits(s, only->mutex) || !sql_pass_may(s, only->mutex))
        return;
    s->passes.invites = true;
    s->host->hint(s->host, only->mutex);
}

/* ---- what became of them ------------------------------------------------------------------- */

void sql_pass_granted(struct sql *s, const struct sql_item *item, bool passed)
{
    struct sql_pass *p = find(s, item->mutex);
    if (p == NULL && (passed || item->request->others))
        p = add(s, item->mutex);
    if (p == NULL)
        return;
    p->began_at = simba_now();
    if (!passed)
        p->since = p->began_at;
    p->count = passed ? p->count + 1 : 0;
    p->is_contested = item->marked;
    p->others_until = 0;
    memcpy(p->owner, item->owner, sizeof p->owner);
    p->token = item->token;
    p->until = p->began_at + item->left_ms;
}

/* Who has passed it on gives others their time; else luck decides. */
void sql_pass_ended(struct sql *s, const struct sql_item *item)
{
    struct sql_pass *p = find(s, item->mutex);
    if (p == NULL)
        return;
    p->until = 0;
    if (item->marked && p->count > 0)
        sql_pass_others_first(s, item->mutex, true);
}

void sql_pass_others_first(struct sql *s, const char *mutex, bool yes)
{
    struct sql_pass *p = find(s, mutex);
    if (p == NULL && yes)
        p = add(s, mutex);
    if (p != NULL)
        p->others_until = yes ? simba_now() + OTHERS_FIRST_MS : 0;
    if (!yes) /* the caller pumps */
        pending_add(&s->waiting, pending_take(&s->passes.later));
}

bool sql_pass_is_ours(struct sql *s, const struct sql_item *item)
{
    const struct sql_pass *p = find(s, item->mutex);
    return p != NULL && p->until > 0 && p->token == item->token &&
           strcmp(p->owner, item->owner) == 0;
}

void sql_pass_doubt(struct sql *s, const char *mutex)
{
    struct sql_pass *p = find(s, mutex);
    if (p != NULL)
        p->until = p->others_until = 0;
}

void sql_pass_reset(struct sql *s)
{
    memset(s->passes.mutex, 0, sizeof s->passes.mutex);
}
