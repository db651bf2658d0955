/* test_interest.c: what all handles of a client together want to hear of a mutex, and what a
 * store is told of it when it asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/client.h"

#define NONE SIMBA_NO_INTEREST
#define WAITS SIMBA_WAITS
#define OBSERVES SIMBA_OBSERVES

static struct simba client;

static int set_up(void **state)
{
    (void)state;
    memset(&client, 0, sizeof client);
    return interest_init(&client);
}

static int tear_down(void **state)
{
    (void)state;
    interest_free(&client);
    return 0;
}

/* What the store is told; -1: nothing. */
static int change(const char *mutex, enum simba_interest before, enum simba_interest now)
{
    enum simba_interest most;
    int changed = interest_change(&client, mutex, before, now, &most);
    assert_true(changed >= 0);
    return changed ? (int)most : -1;
}

static enum simba_interest ask(const char *mutex)
{
    return client.host.interest(&client.host, mutex);
}

static void the_most_counts(void **state)
{
    (void)state;
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
    assert_int_equal(change("m", NONE, WAITS), WAITS);
    assert_int_equal(change("m", NONE, WAITS), -1);
    assert_int_equal(ask(NULL), WAITS);
    assert_int_equal(change("m", NONE, OBSERVES), OBSERVES);
    assert_int_equal(ask("m"), OBSERVES);
    assert_int_equal(ask("n"), NONE);
    assert_int_equal(ask(NULL), OBSERVES);
    assert_int_equal(change("m", OBSERVES, NONE), WAITS);
    assert_int_equal(change("m", WAITS, NONE), -1);
    assert_int_equal(ask("m"), WAITS);
    assert_int_equal(change("m", WAITS, NONE), NONE);
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
}

static void who_observes_all_observes_each(void **state)
{
    (void)state;
    assert_int_equal(ask(""), NONE);
    assert_int_equal(change("", NONE, OBSERVES), OBSERVES);
    assert_int_equal(change("", NONE, OBSERVES), -1);
    assert_int_equal(ask(""), OBSERVES);
    assert_int_equal(ask("m"), OBSERVES);
    assert_int_equal(ask(NULL), OBSERVES);
    assert_int_equal(change("", OBSERVES, NONE), -1);
    assert_int_equal(change("", OBSERVES, NONE), NONE);
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
}

static void note(void *data, struct simba_watched *w)
{
    size_t n = strlen(data);
    snprintf((char *)data + n, 64 - n, "%s%d:%d ", w->mutex, (int)w->interest, (int)w->seen[3]++);
}

static void a_store_sees_what_it_has_seen(void **state)
{
    (void)state;
    char said[64] = "";
    change("m", NONE, WAITS);
    client.host.watched(&client.host, "m", note, said);
    client.host.watched(&client.host, "n", note, said);
    change("m", WAITS, OBSERVES);
    client.host.watched(&client.host, NULL, note, said);
    change("m", OBSERVES, NONE);
    client.host.watched(&client.host, NULL, note, said);
    change("m", NONE, WAITS);
    client.host.watched(&client.host, "m", note, said);
    assert_string_equal(said, "m1:0 m2:1 m1:0 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_most_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_observes_all_observes_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_sees_what_it_has_seen, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
