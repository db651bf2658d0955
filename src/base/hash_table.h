/* hash_table.h: things found by name. The nodes live inside the things; a name may be there often. */
#ifndef BASE_HASH_TABLE_H
#define BASE_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct hash_node {
    struct hash_node *next;
    const char *name; /* borrowed; set before it is added, constant from then on */
    uint32_t hash;
};

struct hash_table {
    struct hash_node **bucket;
    size_t buckets, count;
};

uint32_t hash_text(const char *name);
int hash_table_init(struct hash_table *t);  /* 0, SIMBA_ELIMIT; after it adding cannot fail */
void hash_table_free(struct hash_table *t); /* not the nodes */
void hash_table_add(struct hash_table *t, struct hash_node *node); /* its name is set */
void hash_table_remove(struct hash_table *t, struct hash_node *node);

/* The first of that name, or the next one after node; NULL: no more. */
struct hash_node *hash_table_find(const struct hash_table *t, const char *name);
struct hash_node *hash_table_find_next(const struct hash_node *node);

/* All nodes, one after the other: the one after this, NULL: the first. Ask before it is removed. */
struct hash_node *hash_table_next(const struct hash_table *t, const struct hash_node *node);

/* Takes all nodes out, each into the hands of `take`. */
void hash_table_empty(struct hash_table *t, void (*take)(struct hash_node *node));
#endif
