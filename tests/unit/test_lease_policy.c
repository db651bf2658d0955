/* test_lease_policy.c: what the command makes of a lease: how long the store may be away, when another
 * owns the mutex, and how long a command has to end. */
#include "cli/lease_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/period.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS NS_PER_MS

static struct period period_of(struct period_options o)
{
    struct period p;
    const char *why;
    assert_int_equal(period_init(&p, &o, &why), 0);
    return p;
}

static void figures_for_people(void **state)
{
    (void)state;
    struct period p = period_of((struct period_options){-1, -1, -1, -1, -1, -1, -1});
    assert_int_equal(policy_outage(&p), (14838 - 5000 - 1000 - 1250) * MS);
    assert_int_equal(policy_takeover(&p, p.lease), (16000 + 160 + 1000) * MS);
    assert_int_equal(policy_takeover(&p, 40000 * MS), (40000 + 400 + 1000) * MS);

    /* Short: the margin is a tenth of the lease. */
    p = period_of((struct period_options){600, 0, -1, -1, -1, -1, -1});
    assert_int_equal(policy_outage(&p), (600 - 6 - 2 - 60 - 300 - 75 - 75) * MS);
    /* Long: an attempt ends with the command timeout. */
    p = period_of((struct period_options){60000, -1, -1, -1, 0, -1, 0});
    assert_int_equal(policy_outage(&p), (66000 - 2 - 1000 - 30000 - 1000 - 2000) * MS);
    assert_int_equal(policy_takeover(&p, p.lease), p.lease);
}

/* A renewal and an attempt come before the signal, and the signal before the end. */
static void a_command_has_time_to_end(void **state)
{
    (void)state;
    static const struct {
        int64_t ttl, transition, kill_after, most;
    } rows[] = {
        {10000, 6000, 3000, 6550}, {2000, 4000, 1200, 3550},       {500, 0, 100, 87},
        {1000, 1000, 400, 975},    {3600000, 30000, 3000, 654000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ttl = rows[i].ttl * MS, transition = rows[i].transition * MS;
        assert_int_equal(policy_kill_after(ttl, transition) / MS, rows[i].kill_after);
        assert_int_equal(policy_kill_after_max(ttl, transition) / MS, rows[i].most);
    }
    struct period p = period_of((struct period_options){-1, -1, -1, -1, -1, -1, -1});
    assert_true(policy_kill_after(p.ttl, p.transition) < policy_outage(&p));
    assert_true(policy_kill_after_max(p.ttl, p.transition) + p.renew + p.attempt <
                period_hold_until(&p, 0, p.lease));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_for_people),
        cmocka_unit_test(a_command_has_time_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
