/* interest.c: see interest.h. */
#include "backend/sql/interest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sql_interest_init(struct interests *w)
{
    *w = (struct interests){.observes_all = false};
    return table_init(&w->all);
}

static void free_node(struct table_node *n)
{
    free(n);
}

void sql_interest_free(struct interests *w)
{
    table_empty(&w->all, free_node);
    table_free(&w->all);
}

static struct interest *find(const struct interests *w, const char *mutex)
{
    return (struct interest *)(void *)table_find(&w->all, mutex);
}

int sql_interest_set(struct interests *w, const char *mutex, enum simba_interest kind)
{
    if (mutex == NULL) {
        w->observes_all = kind == SIMBA_OBSERVES;
        w->digest_known = false;
        return 0;
    }
    struct interest *i = find(w, mutex);
    if (kind == SIMBA_NO_INTEREST) {
        if (i != NULL) {
            table_remove(&w->all, &i->by_mutex);
            free(i);
        }
        return 0;
    }
    if (i == NULL) {
        i = calloc(1, sizeof *i);
        if (i == NULL)
            return SIMBA_ELIMIT;
        snprintf(i->mutex, sizeof i->mutex, "%s", mutex);
        i->by_mutex.name = i->mutex;
        table_add(&w->all, &i->by_mutex);
    }
    i->known = i->known && i->kind == kind;
    i->kind = kind;
    return 0;
}

void sql_interest_ours(struct interests *w, const char *mutex, int64_t until)
{
    struct interest *i = find(w, mutex);
    if (i != NULL)
        i->ours_until = until;
}

static size_t walk(const struct interests *w, int64_t now, bool ours,
                   void (*each)(void *data, const char *mutex), void *data)
{
    size_t count = 0;
    for (size_t b = 0; b < w->all.buckets; b++) {
        for (struct table_node *n = w->all.bucket[b]; n != NULL; n = n->next) {
            const struct interest *i = (struct interest *)(void *)n;
            bool is_ours = i->ours_until > now;
            if (ours ? !is_ours : is_ours && i->kind == SIMBA_WAITS)
                continue;
            count++;
            if (each != NULL)
                each(data, i->mutex);
        }
    }
    return count;
}

size_t sql_interest_each(const struct interests *w, int64_t now,
                         void (*each)(void *data, const char *mutex), void *data)
{
    return walk(w, now, false, each, data);
}

size_t sql_interest_each_ours(const struct interests *w, int64_t now,
                              void (*each)(void *data, const char *mutex), void *data)
{
    return walk(w, now, true, each, data);
}

bool sql_interest_waits(const struct interests *w, const char *mutex)
{
    const struct interest *i = find(w, mutex);
    return i != NULL && i->kind == SIMBA_WAITS;
}

bool sql_interest_any(const struct interests *w)
{
    return w->all.count > 0 || w->observes_all;
}

bool sql_interest_observes(const struct interests *w)
{
    for (size_t b = 0; !w->observes_all && b < w->all.buckets; b++) {
        for (struct table_node *n = w->all.bucket[b]; n != NULL; n = n->next) {
            if (((struct interest *)(void *)n)->kind == SIMBA_OBSERVES)
                return true;
        }
    }
    return w->observes_all;
}

bool sql_interest_saw(struct interests *w, const struct interest_look *look)
{
    struct interest *i = find(w, look->mutex);
    if (i == NULL)
        return false;
    bool is_free = look->owner[0] == '\0';
    uint32_t owner = is_free ? 0 : table_hash(look->owner) | 1;
    bool changed = !i->known || i->owner != owner || i->token != look->token;
    i->known = true;
    i->owner = owner;
    i->token = look->token;
    /* One who waits for a free mutex is told once; should that come to nothing, it tries by itself. */
    return i->kind == SIMBA_WAITS ? is_free && changed : changed;
}

int sql_interest_bell(struct interests *w, uint64_t count)
{
    /* Before the first look it is 0, as where it has never been rung: what was rung since we own
     * anything must not be taken for old. */
    uint64_t news = count - w->bell;
    w->bell = count;
    return news == 0 ? 0 : news == 1 ? 1 : 2;
}

bool sql_interest_digest(struct interests *w, uint64_t digest)
{
    bool changed = !w->digest_known || w->digest != digest;
    w->digest_known = true;
    w->digest = digest;
    return changed;
}
