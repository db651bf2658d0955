/* table.c: chained hashing that doubles; FNV-1a, names come from our own process only. */
#include "base/table.h"

#include <assert.h>
#include <simba.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 64

uint32_t table_hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *c = (const unsigned char *)name; *c != 0; c++)
        h = (h ^ *c) * 16777619u;
    return h;
}

int table_init(struct table *t)
{
    *t = (struct table){.bucket = calloc(BUCKETS_FIRST, sizeof(struct table_node *))};
    t->buckets = t->bucket != NULL ? BUCKETS_FIRST : 0;
    return t->bucket != NULL ? 0 : SIMBA_ELIMIT;
}

void table_free(struct table *t)
{
    free(t->bucket);
}

/* Without memory for more buckets the chains get longer, that is all. */
static void grow(struct table *t)
{
    size_t buckets = 2 * t->buckets;
    struct table_node **bucket = calloc(buckets, sizeof(struct table_node *));
    if (bucket == NULL)
        return;
    for (size_t i = 0; i < t->buckets; i++) {
        for (struct table_node *n = t->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            n->next = bucket[n->hash & (buckets - 1)];
            bucket[n->hash & (buckets - 1)] = n;
        }
    }
    free(t->bucket);
    t->bucket = bucket;
    t->buckets = buckets;
}

void table_add(struct table *t, struct table_node *node)
{
    if (t->count >= 2 * t->buckets)
        grow(t);
    node->hash = table_hash(node->name);
    struct table_node **head = &t->bucket[node->hash & (t->buckets - 1)];
    node->next = *head;
    *head = node;
    t->count++;
}

void table_remove(struct table *t, struct table_node *node)
{
    struct table_node **at = &t->bucket[node->hash & (t->buckets - 1)];
    while (*at != node) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    t->count--;
}

static struct table_node *match(struct table_node *n, uint32_t hash, const char *name)
{
    while (n != NULL && (n->hash != hash || strcmp(n->name, name) != 0))
        n = n->next;
    return n;
}

struct table_node *table_find(const struct table *t, const char *name)
{
    uint32_t hash = table_hash(name);
    return match(t->bucket[hash & (t->buckets - 1)], hash, name);
}

struct table_node *table_find_next(const struct table_node *node)
{
    return match(node->next, node->hash, node->name);
}

struct table_node *table_next(const struct table *t, const struct table_node *node)
{
    if (node != NULL && node->next != NULL)
        return node->next;
    for (size_t i = node != NULL ? (node->hash & (t->buckets - 1)) + 1 : 0; i < t->buckets; i++) {
        if (t->bucket[i] != NULL)
            return t->bucket[i];
    }
    return NULL;
}

void table_empty(struct table *t, void (*take)(struct table_node *node))
{
    for (size_t i = 0; i < t->buckets; i++) {
        for (struct table_node *n = t->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            take(n);
        }
        t->bucket[i] = NULL;
    }
    t->count = 0;
}
