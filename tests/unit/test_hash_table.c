/* test_hash_table.c: things found by name, also when there are many, or many of one name. */
#include "base/hash_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MANY 5000

struct thing {
    struct hash_node node;
    char name[16];
    bool seen;
};

static struct thing things[MANY];

static void add(struct hash_table *t, struct thing *thing, const char *format, int number)
{
    *thing = (struct thing){.seen = false};
    snprintf(thing->name, sizeof thing->name, format, number);
    thing->node.name = thing->name;
    hash_table_add(t, &thing->node);
}

/* How many of that name there are; each is seen once. */
static size_t count(const struct hash_table *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < MANY; i++)
        things[i].seen = false;
    for (struct hash_node *at = hash_table_find(t, name); at != NULL;
         at = hash_table_find_next(at)) {
        struct thing *thing = (struct thing *)(void *)at;
        assert_string_equal(thing->name, name);
        assert_false(thing->seen);
        thing->seen = true;
        n++;
    }
    return n;
}

static void empty_table_has_nothing(void **state)
{
    (void)state;
    struct hash_table t;
    assert_int_equal(hash_table_init(&t), 0);
    assert_null(hash_table_find(&t, "a"));
    assert_null(hash_table_find(&t, ""));
    assert_null(hash_table_next(&t, NULL));
    hash_table_free(&t);
}

static void many_are_found_while_it_grows_and_shrinks(void **state)
{
    (void)state;
    struct hash_table t;
    assert_int_equal(hash_table_init(&t), 0);
    size_t buckets = t.buckets;
    for (int i = 0; i < MANY; i++) {
        add(&t, &things[i], "m%d", i);
        assert_ptr_equal(hash_table_find(&t, things[i / 2].name), &things[i / 2]);
    }
    assert_int_equal(t.count, MANY);
    assert_true(t.buckets > buckets && 2 * t.buckets >= MANY);
    assert_null(hash_table_find(&t, "m5000"));
    assert_null(hash_table_find(&t, "M0"));

    for (int i = 0; i < MANY; i += 2)
        hash_table_remove(&t, &things[i].node);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(hash_table_find(&t, things[i].name), i % 2 == 0 ? NULL : &things[i]);
    assert_int_equal(t.count, MANY / 2);
    hash_table_free(&t);
}

static void one_name_may_be_there_often(void **state)
{
    (void)state;
    struct hash_table t;
    assert_int_equal(hash_table_init(&t), 0);
    for (int i = 0; i < 300; i++)
        add(&t, &things[i], i % 3 == 0 ? "same" : "other%d", i);
    assert_int_equal(count(&t, "same"), 100);
    assert_int_equal(count(&t, "other1"), 1);
    for (int i = 0; i < 300; i += 6)
        hash_table_remove(&t, &things[i].node);
    assert_int_equal(count(&t, "same"), 50);
    for (int i = 3; i < 300; i += 6)
        assert_true(count(&t, "same") > 0 && things[i].seen);
    for (int i = 3; i < 300; i += 6)
        hash_table_remove(&t, &things[i].node);
    assert_int_equal(count(&t, "same"), 0);
    assert_int_equal(t.count, 200);
    hash_table_free(&t);
}

/* Both have the hash 0x5e4daa9d. */
static void equal_hashes_are_not_equal_names(void **state)
{
    (void)state;
    struct hash_table t;
    assert_int_equal(hash_table_init(&t), 0);
    add(&t, &things[0], "costarring", 0);
    assert_null(hash_table_find(&t, "liquid"));
    add(&t, &things[1], "liquid", 0);
    assert_int_equal(things[0].node.hash, things[1].node.hash);
    assert_ptr_equal(hash_table_find(&t, "costarring"), &things[0]);
    assert_ptr_equal(hash_table_find(&t, "liquid"), &things[1]);
    assert_null(hash_table_find_next(&things[1].node));
    hash_table_free(&t);
}

static size_t taken;

static void take(struct hash_node *node)
{
    struct thing *thing = (struct thing *)(void *)node;
    assert_false(thing->seen);
    thing->seen = true;
    node->next = NULL; /* it may be freed */
    taken++;
}

static void all_are_taken_out_once(void **state)
{
    (void)state;
    struct hash_table t;
    assert_int_equal(hash_table_init(&t), 0);
    for (int i = 0; i < MANY; i++)
        add(&t, &things[i], "m%d", i % 1000);
    taken = 0;
    hash_table_empty(&t, take);
    assert_int_equal(taken, MANY);
    assert_int_equal(t.count, 0);
    assert_null(hash_table_find(&t, "m1"));
    add(&t, &things[0], "m%d", 1);
    assert_ptr_equal(hash_table_find(&t, "m1"), &things[0]);
    hash_table_free(&t);
}

static void all_are_walked_once(void **state)
{
    (void)state;
    struct hash_table t;
    size_t seen = 0;
    assert_int_equal(hash_table_init(&t), 0);
    for (int i = 0; i < MANY; i++)
        add(&t, &things[i], "m%d", i % 1000);
    for (struct hash_node *n = hash_table_next(&t, NULL), *next; n != NULL; n = next) {
        struct thing *thing = (struct thing *)(void *)n;
        next = hash_table_next(&t, n);
        assert_false(thing->seen);
        thing->seen = true;
        if (seen++ % 2 == 0)
            hash_table_remove(&t, n);
    }
    assert_int_equal(seen, MANY);
    assert_int_equal(t.count, MANY / 2);
    hash_table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_table_has_nothing),
        cmocka_unit_test(many_are_found_while_it_grows_and_shrinks),
        cmocka_unit_test(one_name_may_be_there_often),
        cmocka_unit_test(equal_hashes_are_not_equal_names),
        cmocka_unit_test(all_are_taken_out_once),
        cmocka_unit_test(all_are_walked_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
