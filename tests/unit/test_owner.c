/* test_owner.c: a tenure around its two deadlines, and steps between tenures. */
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void is_who_it_is(void **state)
{
    (void)state;
    const struct simba_owner nobody = {.token = 0};
    const struct simba_owner a = {.id = "a", .token = 1};
    assert_true(simba_owner_is(&a, "a"));
    assert_false(simba_owner_is(&a, "b"));
    assert_false(simba_owner_is(&a, "aa"));
    assert_false(simba_owner_is(&a, "A"));
    assert_false(simba_owner_is(&a, ""));
    assert_false(simba_owner_is(&a, NULL));
    assert_false(simba_owner_is(&nobody, "a"));
    assert_false(simba_owner_is(&nobody, ""));
    assert_false(simba_owner_is(&nobody, NULL));
}

static void compares_the_longest_id_to_its_end(void **state)
{
    (void)state;
    struct simba_owner o = {.token = 1};
    char id[SIMBA_ID_MAX + 1] = {0};
    memset(o.id, 'i', SIMBA_ID_MAX);
    memset(id, 'i', SIMBA_ID_MAX);
    assert_true(simba_owner_is(&o, id));
    id[SIMBA_ID_MAX - 1] = 'j';
    assert_false(simba_owner_is(&o, id));
}

static void tenure_ends_at_its_deadlines(void **state)
{
    (void)state;
    const struct simba_owner o = {.id = "a", .token = 1, .ttl_at = 100, .transition_at = 160};
    static const struct {
        int64_t now;
        bool exists, in_ttl, in_transition;
    } cases[] = {
        {0, true, true, false},     {99, true, true, false},          {100, true, false, true},
        {101, true, false, true},   {159, true, false, true},         {160, false, false, false},
        {161, false, false, false}, {INT64_MAX, false, false, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(simba_owner_exists(&o, cases[i].now), cases[i].exists);
        assert_int_equal(simba_owner_in_ttl(&o, cases[i].now), cases[i].in_ttl);
        assert_int_equal(simba_owner_in_transition(&o, cases[i].now), cases[i].in_transition);
    }
}

static void nobody_is_never_there(void **state)
{
    (void)state;
    const struct simba_owner nobody = {.token = 0};
    assert_false(simba_owner_exists(&nobody, 0));
    assert_false(simba_owner_in_ttl(&nobody, 0));
    assert_false(simba_owner_in_transition(&nobody, 0));
}

static void without_transition_there_is_none(void **state)
{
    (void)state;
    const struct simba_owner o = {.id = "a", .token = 1, .ttl_at = 100, .transition_at = 100};
    assert_true(simba_owner_exists(&o, 99));
    assert_false(simba_owner_in_transition(&o, 99));
    assert_false(simba_owner_exists(&o, 100));
    assert_false(simba_owner_in_transition(&o, 100));
}

/* Seen by the contender "a". */
static void states_tell_what_changed(void **state)
{
    (void)state;
    static const struct {
        struct simba_owner before, after;
        bool changed, acquired, released;
    } cases[] = {
        {{.token = 0}, {.token = 0}, false, false, false},
        {{.token = 0}, {.id = "a", .token = 1}, true, true, false},
        {{.id = "a", .token = 1}, {.token = 0}, true, false, true},
        {{.id = "a", .token = 1}, {.id = "a", .token = 1, .ttl_at = 9}, false, false, false},
        {{.id = "a", .token = 1}, {.id = "a", .token = 2}, true, true, true},
        {{.id = "a", .token = 1}, {.id = "b", .token = 2}, true, false, true},
        {{.id = "b", .token = 1}, {.id = "a", .token = 2}, true, true, false},
        {{.id = "b", .token = 1}, {.id = "c", .token = 2}, true, false, false},
        {{.id = "b", .token = 0}, {.id = "a", .token = 0}, true, true, false},
        {{.id = "b", .token = 0}, {.id = "b", .token = 0}, false, false, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct simba_state s = {.before = cases[i].before, .after = cases[i].after};
        assert_int_equal(simba_state_changed(&s), cases[i].changed);
        assert_int_equal(simba_state_acquired(&s, "a"), cases[i].acquired);
        assert_int_equal(simba_state_released(&s, "a"), cases[i].released);
        assert_false(simba_state_acquired(&s, ""));
        assert_false(simba_state_released(&s, NULL));
    }
}

static void null_is_nobody(void **state)
{
    (void)state;
    assert_false(simba_owner_is(NULL, "a"));
    assert_false(simba_owner_exists(NULL, 0));
    assert_false(simba_owner_in_ttl(NULL, 0));
    assert_false(simba_owner_in_transition(NULL, 0));
    assert_false(simba_state_changed(NULL));
    assert_false(simba_state_acquired(NULL, "a"));
    assert_false(simba_state_released(NULL, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_nobody),
        cmocka_unit_test(is_who_it_is),
        cmocka_unit_test(compares_the_longest_id_to_its_end),
        cmocka_unit_test(tenure_ends_at_its_deadlines),
        cmocka_unit_test(nobody_is_never_there),
        cmocka_unit_test(without_transition_there_is_none),
        cmocka_unit_test(states_tell_what_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
