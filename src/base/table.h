/* table.h: things found by name. The nodes live inside the things; a name may be there often. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next;
    const char *name; /* borrowed; set before it is added, constant from then on */
    uint32_t hash;
};

struct table {
    struct table_node **bucket;
    size_t buckets, count;
};

uint32_t table_hash(const char *name);
int table_init(struct table *t);  /* 0, SIMBA_ELIMIT; after it adding cannot fail */
void table_free(struct table *t); /* not the nodes */
void table_add(struct table *t, struct table_node *node); /* its name is set */
void table_remove(struct table *t, struct table_node *node);

/* The first of that name, or the next one after node; NULL: no more. */
struct table_node *table_find(const struct table *t, const char *name);
struct table_node *table_find_next(const struct table_node *node);

/* Takes all nodes out, each into the hands of `take`. */
void table_empty(struct table *t, void (*take)(struct table_node *node));
#endif
