/* test_torture_plan.c: a seed draws the same faults again, all kinds of them, within their bounds;
 * and lists of faults are read as they are meant. */
#include "lab/torture/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "lab/torture/history.h"

#include <cmocka.h>

#define SECOND (1000 * NS_PER_MS)

static struct plan_options all_faults(uint64_t seed)
{
    return (struct plan_options){.seed = seed,
                                 .workers = 6,
                                 .mutexes = 3,
                                 .length = 600 * SECOND,
                                 .lease = SECOND / 2,
                                 .faults = FAULT_BIT(FAULT_KINDS) - 1};
}

static void a_seed_draws_the_same_again(void **state)
{
    struct plan_options o = all_faults(7), other = all_faults(8);
    size_t a_count, b_count, c_count;
    (void)state;
    struct strike *a = plan_draw(&o, &a_count), *b = plan_draw(&o, &b_count);
    struct strike *c = plan_draw(&other, &c_count);
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_true(a[i].at == b[i].at && a[i].lasts == b[i].lasts && a[i].amount == b[i].amount);
        assert_true(a[i].worker == b[i].worker && a[i].mutex == b[i].mutex);
        assert_int_equal(a[i].fault, b[i].fault);
    }
    assert_true(c_count != a_count || c[0].at != a[0].at);
    free(a);
    free(b);
    free(c);
}

static void strikes_are_within_their_bounds(void **state)
{
    struct plan_options o = all_faults(1);
    size_t count, kinds[FAULT_KINDS] = {0}, workers[6] = {0};
    int64_t last = 0;
    (void)state;
    struct strike *plan = plan_draw(&o, &count);
    assert_true(count > 5000 && count < 10000); /* one in 87 ms */
    for (size_t i = 0; i < count; i++) {
        const struct strike *s = &plan[i];
        bool is_server = fault_group_of((enum fault)s->fault) == GROUP_SERVER;
        assert_true(s->at >= last + o.lease / 20 && s->at < o.length);
        assert_true(s->lasts >= 0 && s->lasts < 2 * o.lease);
        assert_true(s->fault != FAULT_FREEZE || s->lasts >= o.lease / 10);
        assert_true(s->fault != FAULT_KILL || s->lasts < o.lease);
        assert_true(s->fault != FAULT_SERVER_KILL || s->lasts < o.lease / 4);
        assert_true(s->amount >= (s->fault != FAULT_CUT)); /* of answers: none may pass */
        assert_true(s->amount <= o.lease / NS_PER_MS / (s->fault == FAULT_DUPLICATE ? 1 : 4) + 1);
        assert_true(is_server ? s->worker == FAULT_ON_ALL : s->worker < o.workers);
        assert_true(s->mutex < o.mutexes);
        if (!is_server)
            workers[s->worker]++;
        kinds[s->fault]++;
        last = s->at;
    }
    for (int i = 0; i < FAULT_KINDS; i++)
        assert_true(kinds[i] > count / FAULT_KINDS / 2);
    for (int i = 0; i < 6; i++)
        assert_true(workers[i] > count / 12);
    free(plan);
}

static void only_what_is_chosen_is_drawn(void **state)
{
    struct plan_options o = all_faults(3);
    size_t count;
    (void)state;
    o.faults = FAULT_BIT(FAULT_KILL) | FAULT_BIT(FAULT_EVICT);
    struct strike *plan = plan_draw(&o, &count);
    for (size_t i = 0; i < count; i++)
        assert_true(plan[i].fault == FAULT_KILL || plan[i].fault == FAULT_EVICT);
    free(plan);
    o.faults = 0;
    plan = plan_draw(&o, &count);
    assert_non_null(plan);
    assert_int_equal(count, 0);
    free(plan);
}

static void lives_draw_different_things(void **state)
{
    (void)state;
    assert_true(plan_worker_seed(1, 0, 0) == plan_worker_seed(1, 0, 0));
    assert_true(plan_worker_seed(1, 0, 0) != plan_worker_seed(1, 0, 1));
    assert_true(plan_worker_seed(1, 0, 0) != plan_worker_seed(1, 1, 0));
    assert_true(plan_worker_seed(1, 0, 0) != plan_worker_seed(2, 0, 0));
}

/* ---- lists --------------------------------------------------------------------------------- */

static fault_set parsed(const char *list)
{
    fault_set set;
    char unknown[40];
    assert_true(faults_parse(list, &set, unknown, sizeof unknown));
    return set;
}

static void lists_have_names_groups_and_minuses(void **state)
{
    (void)state;
    fault_set process = FAULT_BIT(FAULT_KILL) | FAULT_BIT(FAULT_FREEZE) | FAULT_BIT(FAULT_RESTART);
    assert_int_equal(parsed("kill"), FAULT_BIT(FAULT_KILL));
    assert_int_equal(parsed("kill,evict"), FAULT_BIT(FAULT_KILL) | FAULT_BIT(FAULT_EVICT));
    assert_int_equal(parsed("process"), process);
    assert_int_equal(parsed("process,-kill"), process & ~FAULT_BIT(FAULT_KILL));
    assert_int_equal(parsed("none"), 0);
    assert_int_equal(parsed("limits"), FAULT_BIT(FAULT_EVICT_FORCED));
    assert_int_equal(parsed("all,limits"), FAULT_BIT(FAULT_KINDS) - 1);
    assert_int_equal(parsed("all") & FAULT_BIT(FAULT_EVICT_FORCED), 0);
}

static void an_unknown_name_is_named(void **state)
{
    fault_set set;
    char unknown[40];
    (void)state;
    assert_false(faults_parse("kill,kil,evict", &set, unknown, sizeof unknown));
    assert_string_equal(unknown, "kil");
    assert_false(faults_parse("", &set, unknown, sizeof unknown));
    assert_false(faults_parse("kill,", &set, unknown, sizeof unknown));
    assert_false(faults_parse("-", &set, unknown, sizeof unknown));
    assert_string_equal(unknown, "");
}

static void every_choice_can_be_suggested(void **state)
{
    const char *choices[FAULT_CHOICES];
    (void)state;
    fault_choices(choices);
    for (size_t i = 0; i < FAULT_CHOICES; i++)
        (void)parsed(choices[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_draws_the_same_again),
        cmocka_unit_test(strikes_are_within_their_bounds),
        cmocka_unit_test(only_what_is_chosen_is_drawn),
        cmocka_unit_test(lives_draw_different_things),
        cmocka_unit_test(lists_have_names_groups_and_minuses),
        cmocka_unit_test(an_unknown_name_is_named),
        cmocka_unit_test(every_choice_can_be_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
