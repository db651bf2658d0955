/* space.c: see space.h. */
#include "backend/memory/space.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/rng.h"
#include "core/url.h"
#include "runtime/error.h"
#include "runtime/options.h"

/* A forked child finds none: it has a store of its own, and no client of its parent's. NULL: out of
 * memory when the library was loaded. */
static struct {
    pthread_mutex_t lock;
    struct space *first;
} * spaces;

__attribute__((constructor)) static void take_room(void)
{
    spaces = fork_wiped(sizeof *spaces);
}

static struct space *find_locked(const char *name)
{
    struct space *s = spaces->first;
    while (s != NULL && strcmp(s->name, name) != 0)
        s = s->next;
    return s;
}

static struct space *make_locked(const char *name)
{
    struct space *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    if (hash_table_init(&s->records) < 0) {
        free(s);
        return NULL;
    }
    snprintf(s->name, sizeof s->name, "%s", name);
    s->faults = (struct simba_memory_faults)SIMBA_MEMORY_FAULTS_INIT;
    pthread_mutex_init(&s->lock, NULL);
    s->next = spaces->first;
    spaces->first = s;
    return s;
}

struct space *space_enter(const char *name, struct memory *member)
{
    pthread_mutex_lock(&spaces->lock);
    struct space *s = find_locked(name);
    if (s == NULL)
        s = make_locked(name);
    if (s != NULL) {
        s->clients++;
        pthread_mutex_lock(&s->lock);
        member->next = s->members;
        s->members = member;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&spaces->lock);
    return s;
}

static void free_record(struct hash_node *node)
{
    free(((struct space_record *)(void *)node)->id);
    free(((struct space_record *)(void *)node)->note);
    free(node);
}

static void free_space(struct space *s)
{
    struct space *before = spaces->first;
    if (before == s) {
        spaces->first = s->next;
    } else {
        while (before->next != s)
            before = before->next;
        before->next = s->next;
    }
    hash_table_empty(&s->records, free_record);
    hash_table_free(&s->records);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void space_leave(struct memory *member)
{
    struct space *s = member->space;
    pthread_mutex_lock(&spaces->lock);
    pthread_mutex_lock(&s->lock);
    struct memory **at = &s->members;
    while (*at != member)
        at = &(*at)->next;
    *at = member->next;
    pthread_mutex_unlock(&s->lock);
    if (--s->clients == 0)
        free_space(s);
    pthread_mutex_unlock(&spaces->lock);
}

bool space_chance(struct space *s, unsigned percent)
{
    return percent > 0 && rng_next(&s->random) % 100 < percent;
}

void space_tell(struct space *s, const char *mutex, enum space_news news)
{
    for (struct memory *m = s->members; m != NULL && news != SPACE_NOTHING; m = m->next) {
        bool cares = news == SPACE_FREED || m->host->interest(m->host, mutex) == SIMBA_OBSERVES;
        if (cares && !space_chance(s, s->faults.lose_hint))
            m->host->hint(m->host, mutex);
    }
}

/* Tokens rise through the life of the process, so that also a space that was closed and opened
 * again never gives one twice. */
static _Atomic uint64_t last_token;

/* ---- operations ---------------------------------------------------------------------------- */

static struct space_record *record_of(struct space *s, const char *mutex, bool make)
{
    struct space_record *r = (struct space_record *)(void *)hash_table_find(&s->records, mutex);
    if (r != NULL || !make)
        return r;
    size_t size = strlen(mutex) + 1;
    r = calloc(1, sizeof *r + size);
    if (r == NULL)
        return NULL;
    memcpy(r->mutex, mutex, size);
    r->by_mutex.name = r->mutex;
    hash_table_add(&s->records, &r->by_mutex);
    return r;
}

/* At `until` another may take it; the owner may renew only before. */
static bool is_held(const struct space_record *r, int64_t now)
{
    return r != NULL && r->id != NULL && r->until > now;
}

static bool is_tenure(const struct space_record *r, const struct simba_request *q)
{
    return r != NULL && r->id != NULL && r->token == q->token && strcmp(r->id, q->id) == 0;
}

static bool may_renew(const struct space_record *r, const struct simba_request *q, int64_t now)
{
    return is_tenure(r, q) && is_held(r, now) && !r->evicted;
}

/* EVICT: what the operator does not name may be anything. */
static bool is_meant(const struct space_record *r, const struct simba_request *q)
{
    return (q->token == 0 || q->token == r->token) &&
           (q->id[0] == '\0' || strcmp(q->id, r->id) == 0);
}

static int64_t lease_of(const struct simba_request *q)
{
    return (q->ttl_ms + q->transition_ms) * NS_PER_MS;
}

static const struct simba_answer out_of_memory = {
    .code = SIMBA_ELIMIT, .age_ms = -1, .text = "out of memory"};

static enum space_news contend(struct space_record *r, const struct simba_request *q, int64_t now,
                               struct simba_answer *answer)
{
    if (is_held(r, now)) {
        r->contended = true;
        return SPACE_NOTHING;
    }
    char *id = strdup(q->id);
    if (id == NULL) {
        *answer = out_of_memory;
        return SPACE_NOTHING;
    }
    free(r->id);
    r->id = id;
    r->token = atomic_fetch_add(&last_token, 1) + 1;
    r->acquired = now;
    r->until = now + lease_of(q);
    r->evicted = false;
    r->contended = q->others;
    answer->granted = true;
    return SPACE_CHANGED;
}

static enum space_news release(struct space_record *r)
{
    enum space_news news = r->contended ? SPACE_FREED : SPACE_CHANGED;
    free(r->id);
    r->id = NULL;
    r->until = 0;
    r->contended = false;
    return news;
}

/* Gracefully: the owner is told, and asks. */
static enum space_news evict(struct space_record *r, bool forced)
{
    r->evicted = true;
    if (forced)
        release(r);
    return SPACE_FREED;
}

/* An owner that may renew may publish. What was overtaken by a later one changes nothing. */
static enum space_news publish(struct space_record *r, const struct simba_request *q, int64_t now,
                               struct simba_answer *answer)
{
    if (r->note != NULL && r->note_token == q->token && r->note_serial >= q->serial)
        return SPACE_NOTHING;
    char *text = strdup(q->note);
    if (text == NULL) {
        *answer = out_of_memory;
        return SPACE_NOTHING;
    }
    free(r->note);
    r->note = text;
    r->note_token = q->token;
    r->note_serial = q->serial;
    r->noted = now;
    return SPACE_CHANGED;
}

/* NULL: there is none. */
static const struct simba_noted *note_of(const struct space_record *r, int64_t now,
                                         struct simba_noted *noted)
{
    if (r == NULL || r->note == NULL)
        return NULL;
    *noted = (struct simba_noted){r->note, r->note_token, (now - r->noted) / NS_PER_MS};
    return noted;
}

void space_list(struct space *s, struct memory *m, struct simba_request *q)
{
    int64_t now = clock_now();
    for (size_t i = 0; i < s->records.buckets; i++) {
        for (struct hash_node *n = s->records.bucket[i]; n != NULL; n = n->next) {
            const struct space_record *r = (struct space_record *)(void *)n;
            struct simba_noted noted;
            if (is_held(r, now) && strncmp(r->mutex, q->mutex, strlen(q->mutex)) == 0)
                m->host->found(m->host, q,
                               &(struct simba_found){r->mutex, r->id, r->token,
                                                     (r->until - now) / NS_PER_MS,
                                                     (now - r->acquired) / NS_PER_MS, -1,
                                                     r->evicted, note_of(r, now, &noted)});
        }
    }
}

enum space_news space_apply(struct space *s, const struct simba_request *q,
                            struct simba_answer *answer, struct simba_noted *noted)
{
    int64_t now = clock_now();
    enum space_news news = SPACE_NOTHING;
    struct space_record *r = record_of(s, q->mutex, q->op == SIMBA_CONTEND);
    *answer = (struct simba_answer){.age_ms = -1};
    switch (q->op) {
    case SIMBA_CONTEND:
        if (r == NULL) {
            *answer = out_of_memory;
            return news;
        }
        news = contend(r, q, now, answer);
        break;
    case SIMBA_RENEW:
        if (!may_renew(r, q, now))
            answer->code = SIMBA_ELOST;
        else
            r->until = now + lease_of(q);
        break;
    case SIMBA_PUBLISH:
        if (!may_renew(r, q, now))
            answer->code = SIMBA_ELOST;
        else
            news = publish(r, q, now, answer);
        break;
    case SIMBA_RELEASE:
        if (is_tenure(r, q))
            news = release(r);
        else
            answer->code = SIMBA_ELOST;
        break;
    case SIMBA_EVICT:
        if (is_held(r, now) && is_meant(r, q))
            news = evict(r, q->forced);
        else
            answer->code = SIMBA_ELOST;
        break;
    case SIMBA_READ:
    case SIMBA_LIST:
    case SIMBA_LEAVE: /* nobody is remembered as waiting */
        break;
    }
    if (q->op == SIMBA_READ) {
        answer->note = note_of(r, now, noted);
        answer->wall_ms = simba_wall_ms(simba_now());
    }
    if (is_held(r, now)) {
        answer->id = r->id;
        answer->token = r->token;
        answer->left_ms = (r->until - now) / NS_PER_MS;
        answer->age_ms = (now - r->acquired) / NS_PER_MS;
        answer->evicted = r->evicted;
    }
    return news;
}

/* ---- for tests ----------------------------------------------------------------------------- */

/* Finds the space of a URL and returns it with its lock and the lock of all spaces held. */
static struct space *open_for_test(const char *url)
{
    static const char scheme[] = "memory:";
    if (url == NULL || strncmp(url, scheme, sizeof scheme - 1) != 0) {
        error_say(SIMBA_EINVAL, "not a memory: URL");
        return NULL;
    }
    if (spaces == NULL) {
        error_say(SIMBA_ELIMIT, "out of memory when the library was loaded");
        return NULL;
    }
    char name[SIMBA_MUTEX_MAX + 1];
    size_t length = strcspn(url + sizeof scheme - 1, "?");
    snprintf(name, sizeof name, "%.*s", (int)length, url + sizeof scheme - 1);
    pthread_mutex_lock(&spaces->lock);
    struct space *s = find_locked(name);
    if (s == NULL) {
        pthread_mutex_unlock(&spaces->lock);
        error_say(SIMBA_EINVAL, "no client of memory:%s is open in this process", name);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    return s;
}

static void close_for_test(struct space *s)
{
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&spaces->lock);
}

int simba_memory_set_faults(const char *url, const struct simba_memory_faults *faults)
{
    struct simba_memory_faults taken;
    if (faults == NULL)
        return error_say(SIMBA_EINVAL, "simba_memory_set_faults needs faults");
    int rc = options_take(&options_of_faults, faults, &taken);
    if (rc < 0)
        return rc;
    struct space *s = open_for_test(url);
    if (s == NULL)
        return SIMBA_EINVAL;
    s->faults = taken;
    s->random = taken.seed;
    for (struct memory *m = s->members; m != NULL; m = m->next)
        uv_async_send(&m->wake);
    close_for_test(s);
    return 0;
}
