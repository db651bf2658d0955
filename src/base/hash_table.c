/* hash_table.c: chained hashing that doubles; FNV-1a, names come from our own process only. */
#include "base/hash_table.h"

#include <assert.h>
#include <simba.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 64

uint32_t hash_text(const char *name)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *c = (const unsigned char *)name; *c != 0; c++)
        h = (h ^ *c) * 16777619u;
    return h;
}

int hash_table_init(struct hash_table *t)
{
    *t = (struct hash_table){.bucket = calloc(BUCKETS_FIRST, sizeof(struct hash_node *))};
    t->buckets = t->bucket != NULL ? BUCKETS_FIRST : 0;
    return t->bucket != NULL ? 0 : SIMBA_ELIMIT;
}

void hash_table_free(struct hash_table *t)
{
    free(t->bucket);
}

/* Without memory for more buckets the chains get longer, that is all. */
static void grow(struct hash_table *t)
{
    size_t buckets = 2 * t->buckets;
    struct hash_node **bucket = calloc(buckets, sizeof(struct hash_node *));
    if (bucket == NULL)
        return;
    for (size_t i = 0; i < t->buckets; i++) {
        for (struct hash_node *n = t->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            n->next = bucket[n->hash & (buckets - 1)];
            bucket[n->hash & (buckets - 1)] = n;
        }
    }
    free(t->bucket);
    t->bucket = bucket;
    t->buckets = buckets;
}

void hash_table_add(struct hash_table *t, struct hash_node *node)
{
    if (t->count >= 2 * t->buckets)
        grow(t);
    node->hash = hash_text(node->name);
    struct hash_node **head = &t->bucket[node->hash & (t->buckets - 1)];
    node->next = *head;
    *head = node;
    t->count++;
}

void hash_table_remove(struct hash_table *t, struct hash_node *node)
{
    struct hash_node **at = &t->bucket[node->hash & (t->buckets - 1)];
    while (*at != node) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    t->count--;
}

static struct hash_node *match(struct hash_node *n, uint32_t hash, const char *name)
{
    while (n != NULL && (n->hash != hash || strcmp(n->name, name) != 0))
        n = n->next;
    return n;
}

struct hash_node *hash_table_find(const struct hash_table *t, const char *name)
{
    uint32_t hash = hash_text(name);
    return match(t->bucket[hash & (t->buckets - 1)], hash, name);
}

struct hash_node *hash_table_find_next(const struct hash_node *node)
{
    return match(node->next, node->hash, node->name);
}

struct hash_node *hash_table_next(const struct hash_table *t, const struct hash_node *node)
{
    if (node != NULL && node->next != NULL)
        return node->next;
    for (size_t i = node != NULL ? (node->hash & (t->buckets - 1)) + 1 : 0; i < t->buckets; i++) {
        if (t->bucket[i] != NULL)
            return t->bucket[i];
    }
    return NULL;
}

void hash_table_empty(struct hash_table *t, void (*take)(struct hash_node *node))
{
    for (size_t i = 0; i < t->buckets; i++) {
        for (struct hash_node *n = t->bucket[i], *next; n != NULL; n = next) {
            next = n->next;
            take(n);
        }
        t->bucket[i] = NULL;
    }
    t->count = 0;
}
