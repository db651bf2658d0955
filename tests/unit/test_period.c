/* test_period.c: the lease in time: every formula with the default figures, every rule for what a
 * user may set, and the bounds of all jitter. */
#include "core/period.h"

#include <inttypes.h>
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS NS_PER_MS
#define DRAWS 20000

/* "ttl 800 transition 1200": those in milliseconds (drift in millionths), the others by default. */
static struct period_options options_of(const char *text)
{
    struct period_options o = {-1, -1, -1, -1, -1, -1, -1};
    const struct {
        const char *name;
        int64_t *value;
    } fields[] = {
        {"ttl", &o.ttl_ms},          {"transition", &o.transition_ms},
        {"renew", &o.renew_ms},      {"command_timeout", &o.command_timeout_ms},
        {"drift", &o.drift_ppm},     {"early", &o.jitter_early_ms},
        {"late", &o.jitter_late_ms},
    };
    char name[16];
    int64_t value;
    for (int n; sscanf(text, "%15s%" SCNd64 "%n", name, &value, &n) == 2; text += n) {
        size_t i = 0;
        while (strcmp(fields[i].name, name) != 0)
            assert_true(++i < COUNT(fields));
        *fields[i].value = value;
    }
    assert_string_equal(text, "");
    return o;
}

static struct period period_of(const char *text)
{
    struct period p;
    struct period_options options = options_of(text);
    const char *why = "unset";
    assert_int_equal(period_init(&p, &options, &why), 0);
    assert_null(why);
    return p;
}

static void default_figures(void **state)
{
    (void)state;
    struct period p = period_of("");
    assert_int_equal(p.ttl, 10000 * MS);
    assert_int_equal(p.transition, 6000 * MS);
    assert_int_equal(p.lease, 16000 * MS);
    assert_int_equal(p.margin, 1000 * MS);
    assert_int_equal(p.renew, 5000 * MS);
    assert_int_equal(p.attempt, 1250 * MS);
    assert_int_equal(p.patience, 2000 * MS);
    assert_int_equal(p.pause_max, 1000 * MS);
    assert_int_equal(p.backoff_max, 10000 * MS);
    assert_int_equal(p.early, 200 * MS);
    assert_int_equal(p.late, 1000 * MS);
    assert_int_equal(p.drift_ppm, 10000);

    /* The lease surely lasts for 16 s - 1 % - 2 ms; one second of that is the margin. */
    assert_int_equal(period_hold_until(&p, 0, p.lease) + p.margin, 15838 * MS);
    assert_int_equal(period_hold_until(&p, 0, p.lease), 14838 * MS);
    assert_int_equal(period_hold_until(&p, 123 * MS, p.lease), (123 + 14838) * MS);
}

static void what_the_store_says_is_left_is_believed_up_to_a_lease(void **state)
{
    (void)state;
    struct period p = period_of("");
    assert_int_equal(period_hold_until(&p, 0, 10000 * MS), (10000 - 100 - 2 - 1000) * MS);
    assert_int_equal(period_hold_until(&p, 0, 2 * p.lease), 14838 * MS);
    assert_int_equal(period_hold_until(&p, 0, 0), -1002 * MS);
    assert_int_equal(period_hold_until(&p, 0, -5), -1002 * MS);
}

static void figures_that_follow_from_options(void **state)
{
    (void)state;
    /* The margin: a quarter of the transition, but at least a tenth of the lease and at most 1 s. */
    struct period p = period_of("ttl 800 transition 1200");
    assert_int_equal(p.margin, 300 * MS);
    p = period_of("ttl 1800 transition 200");
    assert_int_equal(p.margin, 200 * MS);
    assert_int_equal(p.attempt, 225 * MS);
    assert_int_equal(p.patience, 1000 * MS);
    assert_int_equal(p.pause_max, 225 * MS);
    assert_int_equal(p.backoff_max, 1800 * MS);

    /* The command timeout bounds both kinds of waiting. */
    p = period_of("command_timeout 700");
    assert_int_equal(p.attempt, 700 * MS);
    assert_int_equal(p.patience, 700 * MS);

    /* Without a transition nobody is early; drift 0 leaves the rounding of the store. */
    p = period_of("transition 0 drift 0 late 0");
    assert_int_equal(p.early, 0);
    assert_int_equal(p.late, 0);
    assert_int_equal(period_hold_until(&p, 0, p.lease), (10000 - 2 - 1000) * MS);

    /* Very short ones have floors. */
    p = period_of("ttl 2 transition 48");
    assert_int_equal(p.attempt, 1 * MS);
    assert_int_equal(p.pause_max, 1 * MS);
    assert_int_equal(p.backoff_max, 100 * MS);
    assert_int_equal(p.renew, 1 * MS);
}

static void others_are_refused_by_rule(void **state)
{
    (void)state;
    static const struct {
        const char *options, *rule;
    } cases[] = {
        {"ttl 0", "ttl must be at least"},
        {"ttl -2", "ttl must be at least"},
        {"transition -2", "transition must not be negative"},
        {"ttl 86400001", "longer than a day"},
        {"transition 9223372036854775807", "longer than a day"},
        {"renew 0", "renew must be between"},
        {"renew -2", "renew must be between"},
        {"renew 86400001", "renew must be between"},
        {"command_timeout 0", "command_timeout must"},
        {"command_timeout -2", "command_timeout must"},
        {"command_timeout 3600001", "command_timeout must"},
        {"drift -2", "drift_ppm must"},
        {"drift 200001", "drift_ppm must"},
        {"early -2", "jitter_early must"},
        {"early 3600001", "jitter_early must"},
        {"late -2", "jitter_late must"},
        {"late 3600001", "jitter_late must"},
        {"ttl 40 transition 9", "between 50 ms and one day"},
        {"ttl 86400000", "between 50 ms and one day"},
        {"renew 10001", "renew must not be longer than ttl"},
        {"transition 0 renew 10000", "renew leaves no time"},
        {"transition 0 renew 7648", "renew leaves no time"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct period p;
        struct period_options options = options_of(cases[i].options);
        const char *why = NULL;
        assert_int_equal(period_init(&p, &options, &why), SIMBA_EINVAL);
        assert_non_null(why);
        assert_non_null(strstr(why, cases[i].rule));
    }
}

static void extremes_are_taken(void **state)
{
    (void)state;
    period_of("ttl 50 transition 0");
    period_of("ttl 1 transition 49");
    period_of("ttl 43200000 transition 43200000");
    period_of("renew 10000"); /* as the JVM: at the ttl */
    period_of("transition 0 renew 7647");
    period_of("renew 1 command_timeout 1");
    period_of("command_timeout 3600000 drift 200000");
    period_of("early 3600000 late 3600000");
}

/* ---- jitter -------------------------------------------------------------------------------- */

struct range {
    int64_t low, high; /* of what was drawn */
};

static void draw(struct range *r, int64_t value)
{
    r->low = value < r->low ? value : r->low;
    r->high = value > r->high ? value : r->high;
}

#define NO_RANGE             \
    {                        \
        INT64_MAX, INT64_MIN \
    }

/* All of it within [low, high], and close to both ends. */
static void assert_spread(struct range r, int64_t low, int64_t high)
{
    assert_in_range(r.low - low, 0, (high - low) / 100);
    assert_in_range(high - r.high, 0, (high - low) / 100);
}

static struct range renewals(const struct period *p, int64_t sent_at, int64_t left)
{
    struct range r = NO_RANGE;
    uint64_t random = 1;
    for (int i = 0; i < DRAWS; i++)
        draw(&r, period_renew_at(p, sent_at, left, &random));
    return r;
}

static void renewals_drift_apart(void **state)
{
    (void)state;
    struct period p = period_of("");
    struct range r = renewals(&p, 100 * MS, p.lease);
    assert_in_range(r.low, 4560 * MS, 4605 * MS);  /* 4.5 s to 5 s after it was sent … */
    assert_in_range(r.high, 5060 * MS, 5100 * MS); /* … and up to 40 ms before that */
}

/* A store whose session is older than the request, or a tenure that was adopted. */
static void a_shorter_lease_is_renewed_sooner(void **state)
{
    (void)state;
    struct period p = period_of("");
    struct range r = renewals(&p, 0, p.lease - 2000 * MS);
    assert_in_range(r.low, 2660 * MS, 2705 * MS);
    assert_in_range(r.high, 2960 * MS, 3000 * MS);
    r = renewals(&p, 0, 1); /* never in a circle */
    assert_in_range(r.low, 1085 * MS, 1130 * MS);
    assert_in_range(r.high, 1210 * MS, 1250 * MS);
    r = renewals(&p, 0, 2 * p.lease); /* of another life with a longer one */
    assert_in_range(r.high, 4960 * MS, 5000 * MS);
}

/* Many mutexes, few instants, another client's in between. */
static void renewals_gather(void **state)
{
    (void)state;
    struct period p = period_of("");
    uint64_t random = 1;
    int64_t step = 5000 * MS / 128;
    for (int phase = 0; phase < 2; phase++) {
        p.phase = phase * 11 * MS;
        for (int i = 0; i < DRAWS; i++)
            assert_int_equal((period_renew_at(&p, i * MS, p.lease, &random) + p.phase) % step, 0);
    }
}

static struct range retries(const struct period *p, int64_t now, int64_t expiry)
{
    struct range r = NO_RANGE;
    uint64_t random = 1;
    for (int i = 0; i < DRAWS; i++)
        draw(&r, period_retry_at(p, now, expiry, &random));
    return r;
}

/* Before the end, at a time of its own; close to it as those who wait. */
static void observers_ask_early(void **state)
{
    (void)state;
    struct period p = period_of("");
    struct range r = NO_RANGE;
    uint64_t random = 1;
    for (int i = 0; i < DRAWS; i++) /* the margin is 1 s */
        draw(&r, period_observe_at(&p, 1000 * MS, 17000 * MS, &random));
    assert_in_range(r.low, 16125 * MS, 16130 * MS);
    assert_in_range(r.high, 16495 * MS, 16500 * MS);
    r = (struct range)NO_RANGE;
    for (int i = 0; i < DRAWS; i++) /* a lease that is shorter than ours: of 2 s */
        draw(&r, period_observe_at(&p, 15000 * MS, 17000 * MS, &random));
    assert_in_range(r.low, 16825 * MS, 16826 * MS);
    assert_in_range(r.high, 16899 * MS, 16900 * MS);
    r = (struct range)NO_RANGE;
    for (int i = 0; i < DRAWS; i++) /* its margin has no room for a question */
        draw(&r, period_observe_at(&p, 16960 * MS, 17000 * MS, &random));
    assert_in_range(r.low, 17000 * MS, 17010 * MS);
    assert_in_range(r.high, 17950 * MS, 18000 * MS);
}

/* As docs/guarantees.md has them. */
static void the_margin_is_known_without_a_period(void **state)
{
    (void)state;
    struct period p = period_of("");
    assert_int_equal(period_margin(p.ttl, p.transition), p.margin);
    p = period_of("ttl 600 transition 0"); /* short: the margin is a tenth of the lease */
    assert_int_equal(p.margin, 60 * MS);
    assert_int_equal(period_margin(p.ttl, p.transition), p.margin);
}

static void retries_spread_around_the_end_of_the_lease(void **state)
{
    (void)state;
    struct period p = period_of("");
    assert_spread(retries(&p, 0, 9000 * MS), 8800 * MS, 10000 * MS);
    assert_spread(retries(&p, 8799 * MS, 9000 * MS), 8819 * MS, 10000 * MS);
    /* Close to the end nobody is early again, and after it all count from now. */
    assert_spread(retries(&p, 8800 * MS, 9000 * MS), 9000 * MS, 10000 * MS);
    assert_spread(retries(&p, 9000 * MS, 9000 * MS), 9020 * MS, 10000 * MS);
    assert_spread(retries(&p, 9500 * MS, 9000 * MS), 9520 * MS, 10500 * MS);

    /* Without a transition to hide it in, from 0; without jitter, in no tight loop. */
    p = period_of("transition 0");
    assert_spread(retries(&p, 0, 9000 * MS), 9000 * MS, 10000 * MS);
    p = period_of("early 0 late 0");
    assert_spread(retries(&p, 0, 9000 * MS), 9000 * MS, 9000 * MS);
    assert_spread(retries(&p, 9000 * MS, 9000 * MS), 9020 * MS, 9020 * MS);
}

static void pauses_double_up_to_a_second(void **state)
{
    (void)state;
    struct period p = period_of("");
    static const int64_t ms[] = {50, 100, 200, 400, 800, 1000, 1000};
    uint64_t random = 1;
    for (uint32_t n = 1; n <= COUNT(ms); n++) {
        struct range r = NO_RANGE;
        for (int i = 0; i < DRAWS; i++)
            draw(&r, period_pause(&p, n, &random));
        assert_spread(r, ms[n - 1] * MS / 2, ms[n - 1] * MS);
    }
    assert_in_range(period_pause(&p, UINT32_MAX, &random), 500 * MS, 1000 * MS);

    p = period_of("ttl 80 transition 0");
    assert_in_range(period_pause(&p, 1, &random), 5 * MS, 10 * MS);
}

static void backoff_doubles_up_to_the_ttl(void **state)
{
    (void)state;
    struct period p = period_of("");
    static const int64_t ms[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    uint64_t random = 1;
    for (uint32_t n = 1; n <= COUNT(ms); n++) {
        struct range r = NO_RANGE;
        for (int i = 0; i < DRAWS; i++)
            draw(&r, period_backoff(&p, n, &random));
        assert_spread(r, ms[n - 1] * MS / 2, ms[n - 1] * MS);
    }
    assert_in_range(period_backoff(&p, 17, &random), 5000 * MS, 10000 * MS);
    assert_in_range(period_backoff(&p, UINT32_MAX, &random), 5000 * MS, 10000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_figures),
        cmocka_unit_test(what_the_store_says_is_left_is_believed_up_to_a_lease),
        cmocka_unit_test(figures_that_follow_from_options),
        cmocka_unit_test(others_are_refused_by_rule),
        cmocka_unit_test(extremes_are_taken),
        cmocka_unit_test(renewals_drift_apart),
        cmocka_unit_test(a_shorter_lease_is_renewed_sooner),
        cmocka_unit_test(renewals_gather),
        cmocka_unit_test(observers_ask_early),
        cmocka_unit_test(the_margin_is_known_without_a_period),
        cmocka_unit_test(retries_spread_around_the_end_of_the_lease),
        cmocka_unit_test(pauses_double_up_to_a_second),
        cmocka_unit_test(backoff_doubles_up_to_the_ttl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
