/* follow.c: from what observers tell to tenures that begin and end.
 *
 * An observer tells the latest, not everything: of two changes that come at once one may be missing. So
 * each call is compared with what was known here, and a tenure that has gone without a word is one
 * whose end was not seen. Nothing is made up. */
#include "cli/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static struct followed *of_node(struct hash_node *n)
{
    return (struct followed *)(void *)n; /* its first member */
}

int follow_init(struct follow *f, follow_sink *sink, void *data)
{
    *f = (struct follow){.sink = sink, .data = data};
    pthread_mutex_init(&f->lock, NULL);
    return hash_table_init(&f->by_name);
}

const char *followed_state(const struct followed *m)
{
    return !m->is_on ? "free" : m->evicted ? "evicted" : "held";
}

static struct followed *find(struct follow *f, const char *mutex)
{
    return of_node(hash_table_find(&f->by_name, mutex));
}

static struct followed *find_or_add(struct follow *f, const char *mutex)
{
    struct followed *m = find(f, mutex);
    if (m != NULL)
        return m;
    m = f->by_name.count < FOLLOWED_MAX ? calloc(1, sizeof *m) : NULL;
    if (m == NULL) {
        f->is_full = true;
        return NULL;
    }
    snprintf(m->tenure.mutex, sizeof m->tenure.mutex, "%s", mutex);
    m->waiters = -1;
    m->node.name = m->tenure.mutex;
    hash_table_add(&f->by_name, &m->node);
    return m;
}

static void forget(struct follow *f, struct followed *m)
{
    f->sink(f->data, FOLLOW_GONE, m, NULL);
    hash_table_remove(&f->by_name, &m->node);
    free(m->tenure.note);
    free(m);
}

static bool is_same(const struct seen_tenure *t, const struct simba_owner *o)
{
    return strcmp(t->id, o->id) == 0 && t->token == o->token;
}

/* ---- beginnings and ends ------------------------------------------------------------------- */

static void begin(struct follow *f, struct followed *m, const struct simba_owner *o)
{
    struct seen_tenure *t = &m->tenure;
    /* What the first list had shown with an unknown age is noted in the tenure, not on yet. */
    bool is_old = t->id[0] != '\0' && is_same(t, o) && !t->began_known;
    t->state = TENURE_ON;
    t->token = o->token;
    t->row = 0;
    t->began_known = !is_old;
    t->began_ms = simba_wall_ms(f->knows_age && !is_old ? o->acquired_at : simba_now());
    t->ended_ms = t->over_by_ms = 0;
    t->reason = SIMBA_UNCHANGED;
    snprintf(t->id, sizeof t->id, "%s", o->id);
    m->is_on = m->is_confirmed = true;
    m->evicted = (o->flags & SIMBA_OWNER_EVICTED) != 0;
    m->until = o->transition_at;
    f->on++;
    f->sink(f->data, FOLLOW_BEGAN, m, t);
}

/* The reason is UNCHANGED where nobody saw it. */
static void end(struct follow *f, struct followed *m, enum simba_reason reason, int64_t at,
                int64_t over_by)
{
    struct seen_tenure *t = &m->tenure;
    t->state = reason != SIMBA_UNCHANGED ? TENURE_ENDED : TENURE_UNSEEN;
    t->reason = reason;
    t->ended_ms = at > t->began_ms ? at : t->began_ms;
    t->over_by_ms = t->state == TENURE_UNSEEN ? over_by : 0;
    m->is_on = m->evicted = false;
    f->on--;
    f->sink(f->data, FOLLOW_ENDED, m, t);
    t->id[0] = '\0';
    t->token = 0;
    free(t->note);
    t->note = NULL;
}

/* An expired one was over when its lease was, not when somebody looked; and of one that nobody saw the
 * end of it is not known that it was on any longer. */
static int64_t ended_at(const struct simba_state *s)
{
    int64_t now = simba_now(), until = s->before.transition_at;
    bool is_of_lease = s->reason == SIMBA_EXPIRED || s->reason == SIMBA_UNSEEN;
    return simba_wall_ms(is_of_lease && until != 0 && until < now ? until : now);
}

static void end_as_reported(struct follow *f, struct followed *m, const struct simba_state *s)
{
    int64_t now = simba_wall_ms(simba_now());
    bool is_it = s->after.id[0] == '\0' && is_same(&m->tenure, &s->before) &&
                 s->reason != SIMBA_ACQUIRED && s->reason != SIMBA_UNCHANGED;
    if (is_it)
        end(f, m, s->reason != SIMBA_UNSEEN ? s->reason : SIMBA_UNCHANGED, ended_at(s), now);
    else if (m->is_confirmed) /* it was followed until now, but several changes came at once */
        end(f, m, SIMBA_UNCHANGED, now, now);
    else
        end(f, m, SIMBA_UNCHANGED, m->tenure.ended_ms, now);
}

/* What an observer shows as the beginning is an estimate on stores that do not know it; what is read, is
 * not. So one owner is read, the first that there is. */
static void take_age(struct follow *f, const struct simba_owner *o)
{
    if (o->id[0] == '\0')
        return;
    f->is_age_asked = true;
    f->knows_age = o->acquired_at != 0;
}

static void ask_age(struct follow *f, const char *mutex)
{
    struct simba_owner owner = {.token = 0};
    pthread_mutex_lock(&f->lock);
    bool is_asked = f->is_age_asked;
    pthread_mutex_unlock(&f->lock);
    if (is_asked || simba_read(f->client, mutex, ANSWER_MS, &owner) < 0)
        return;
    pthread_mutex_lock(&f->lock);
    take_age(f, &owner);
    pthread_mutex_unlock(&f->lock);
}

void follow_take(struct follow *f, const char *mutex, const struct simba_state *s)
{
    bool is_owned = s->after.id[0] != '\0';
    if (is_owned)
        ask_age(f, mutex);
    pthread_mutex_lock(&f->lock);
    struct followed *m = is_owned ? find_or_add(f, mutex) : find(f, mutex);
    if (m != NULL && m->is_on && (!is_owned || !is_same(&m->tenure, &s->after)))
        end_as_reported(f, m, s);
    if (m != NULL && is_owned && !m->is_on) {
        begin(f, m, &s->after);
    } else if (m != NULL && m->is_on) {
        bool evicted = (s->after.flags & SIMBA_OWNER_EVICTED) != 0, was = m->evicted;
        m->is_confirmed = true;
        m->evicted = evicted;
        m->until = s->after.transition_at;
        if (evicted != was)
            f->sink(f->data, FOLLOW_CHANGED, m, &m->tenure);
    }
    if (m != NULL && !m->is_on && m->waiters <= 0)
        forget(f, m);
    pthread_mutex_unlock(&f->lock);
}

bool follow_was_on(struct follow *f, const char *mutex, const struct simba_owner *o)
{
    pthread_mutex_lock(&f->lock);
    const struct followed *m = find(f, mutex);
    bool was_on = m != NULL && is_same(&m->tenure, o) &&
                  (!m->tenure.began_known || (m->is_on && !m->is_confirmed));
    pthread_mutex_unlock(&f->lock);
    return was_on;
}

bool follow_knows_age(struct follow *f)
{
    pthread_mutex_lock(&f->lock);
    bool knows_age = f->knows_age;
    pthread_mutex_unlock(&f->lock);
    return knows_age;
}

/* ---- beginning to follow ------------------------------------------------------------------- */

void follow_resume(struct follow *f, const struct seen_tenure *t)
{
    struct followed *m = find_or_add(f, t->mutex);
    if (m == NULL || m->is_on)
        return;
    m->tenure = *t; /* with the same name */
    m->tenure.note = t->note != NULL ? strdup(t->note) : NULL;
    m->is_on = true;
    f->on++;
}

/* Notes what the store does not know the age of; marks what it has. */
static void note_owner(struct follow *f, const char *mutex, const struct simba_owner *o)
{
    struct followed *m;
    if (o->id[0] == '\0')
        return;
    take_age(f, o);
    if (o->acquired_at == 0) {
        m = find_or_add(f, mutex);
        if (m != NULL && !m->is_on) {
            snprintf(m->tenure.id, sizeof m->tenure.id, "%s", o->id);
            m->tenure.token = o->token;
        }
    } else {
        m = find(f, mutex);
    }
    if (m != NULL && is_same(&m->tenure, o)) {
        m->listed = f->lists;
        m->until = o->transition_at;
    }
}

static void on_first(void *data, const struct simba_entry *e)
{
    struct follow *f = data;
    note_owner(f, e->mutex, &e->owner);
}

/* Those to resume that the list, or the names, do not have. */
static void end_resumed(struct follow *f, bool knows_all)
{
    struct hash_node *next = hash_table_next(&f->by_name, NULL);
    int64_t now = simba_wall_ms(simba_now());
    while (next != NULL) {
        struct followed *m = of_node(next);
        next = hash_table_next(&f->by_name, next);
        if (!m->is_on || m->is_confirmed || m->listed == f->lists)
            continue;
        end(f, m, SIMBA_UNCHANGED, m->tenure.ended_ms, knows_all ? now : 0);
        forget(f, m);
    }
}

int follow_begin(struct follow *f, simba_client *client, char *const *names, size_t count)
{
    struct simba_owner owner;
    f->client = client;
    f->lists++;
    if (count == 0) {
        int rc = simba_list(client, NULL, ANSWER_MS, on_first, f);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < count; i++) {
        int rc = simba_read(client, names[i], ANSWER_MS, &owner);
        if (rc < 0)
            return rc;
        note_owner(f, names[i], &owner);
        struct followed *m = find(f, names[i]);
        if (m != NULL && m->is_on)
            m->listed = f->lists; /* its observer tells what is so */
    }
    pthread_mutex_lock(&f->lock);
    end_resumed(f, count == 0);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* ---- listing again ------------------------------------------------------------------------- */

/* A note counts for the tenure that wrote it. True: it is another than before. */
static bool take_note(struct followed *m, const struct simba_note *note)
{
    struct seen_tenure *t = &m->tenure;
    const char *text =
        note != NULL && note->token == t->token && note->text[0] != '\0' ? note->text : NULL;
    if (text == NULL || (t->note != NULL && strcmp(t->note, text) == 0))
        return false;
    free(t->note);
    t->note = strdup(text);
    return true;
}

static void on_entry(void *data, const struct simba_entry *e)
{
    struct follow *f = data;
    bool is_waited_for = e->owner.id[0] == '\0' && e->waiters > 0;
    pthread_mutex_lock(&f->lock);
    struct followed *m = is_waited_for ? find_or_add(f, e->mutex) : find(f, e->mutex);
    if (m != NULL) {
        bool is_other = m->waiters != e->waiters;
        m->waiters = e->waiters;
        m->listed = f->lists;
        if (m->is_on && is_same(&m->tenure, &e->owner)) {
            bool evicted = (e->owner.flags & SIMBA_OWNER_EVICTED) != 0;
            bool has_news = take_note(m, e->note) || evicted != m->evicted;
            is_other = is_other || has_news;
            m->evicted = evicted;
            m->until = e->owner.transition_at;
        }
        if (is_other)
            f->sink(f->data, FOLLOW_CHANGED, m, &m->tenure);
    }
    pthread_mutex_unlock(&f->lock);
}

/* Nobody waits for it any more, or the list is older than it. */
static void forget_unlisted(struct follow *f)
{
    struct hash_node *next = hash_table_next(&f->by_name, NULL);
    while (next != NULL) {
        struct followed *m = of_node(next);
        next = hash_table_next(&f->by_name, next);
        if (m->listed == f->lists)
            continue;
        if (!m->is_on) {
            forget(f, m);
        } else if (m->waiters > 0) {
            m->waiters = 0;
            f->sink(f->data, FOLLOW_CHANGED, m, &m->tenure);
        }
    }
}

int follow_list(struct follow *f, simba_client *client)
{
    pthread_mutex_lock(&f->lock);
    f->lists++;
    pthread_mutex_unlock(&f->lock);
    int rc = simba_list(client, NULL, ANSWER_MS, on_entry, f);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    end_resumed(f, true);
    forget_unlisted(f);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

bool follow_is_unconfirmed(struct follow *f)
{
    bool is_any = false;
    pthread_mutex_lock(&f->lock);
    for (struct hash_node *n = NULL; !is_any && (n = hash_table_next(&f->by_name, n)) != NULL;)
        is_any = of_node(n)->is_on && !of_node(n)->is_confirmed;
    pthread_mutex_unlock(&f->lock);
    return is_any;
}
