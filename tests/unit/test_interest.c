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

static struct simba_client client;
static const struct simba_backend asks = {.asks = true}, asks_not = {0};

static int set_up(void **state)
{
    (void)state;
    memset(&client, 0, sizeof client);
    client.backend = &asks;
    return interest_init(&client);
}

static int tear_down(void **state)
{
    (void)state;
    interest_free(&client);
    return 0;
}

static void change(const char *mutex, enum simba_interest was, enum simba_interest most)
{
    assert_int_equal(interest_change(&client, mutex, was, most), 0);
}

static enum simba_interest ask(const char *mutex)
{
    return client.host.interest(&client.host, mutex);
}

static void it_is_as_it_was_last_set(void **state)
{
    (void)state;
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
    change("m", NONE, WAITS);
    assert_int_equal(ask("m"), WAITS);
    assert_int_equal(ask(NULL), WAITS);
    change("m", WAITS, OBSERVES);
    assert_int_equal(ask("m"), OBSERVES);
    assert_int_equal(ask("n"), NONE);
    assert_int_equal(ask(NULL), OBSERVES);
    change("m", OBSERVES, WAITS);
    assert_int_equal(ask("m"), WAITS);
    assert_int_equal(ask(NULL), WAITS);
    change("m", WAITS, NONE);
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
}

static void who_observes_all_observes_each(void **state)
{
    (void)state;
    assert_int_equal(ask(""), NONE);
    change("", NONE, OBSERVES);
    assert_int_equal(ask(""), OBSERVES);
    assert_int_equal(ask("m"), OBSERVES);
    assert_int_equal(ask(NULL), OBSERVES);
    change("", OBSERVES, NONE);
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
}

static void who_does_not_ask_hears_of_observers_only(void **state)
{
    (void)state;
    client.backend = &asks_not;
    change("m", NONE, WAITS);
    assert_int_equal(client.interests.mutexes.count, 0);
    assert_int_equal(ask("m"), NONE);
    change("m", WAITS, OBSERVES);
    assert_int_equal(ask("m"), OBSERVES);
    change("m", OBSERVES, WAITS);
    assert_int_equal(ask("m"), NONE);
    assert_int_equal(ask(NULL), NONE);
    assert_int_equal(client.interests.mutexes.count, 0);
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
        cmocka_unit_test_setup_teardown(it_is_as_it_was_last_set, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_does_not_ask_hears_of_observers_only, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_observes_all_observes_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_sees_what_it_has_seen, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
