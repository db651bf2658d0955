/* test_torture_judge.c: each promise is broken once in a record that is well otherwise, and the
 * judge must say so, and nothing else. Times are in ms here. */
#include "lab/torture/judge.h"

#include <setjmp.h>
#include <signal.h>
#include <simba.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "lab/torture/fault.h"

#include <cmocka.h>

#define MS NS_PER_MS
#define LEASE 500
#define MARGIN 50
#define TAKEOVER 800
#define LIVE 1600
#define END 10000
#define ENTRIES_MAX 64

static struct entry entries[ENTRIES_MAX];
static size_t count;
static struct judge_rules rules;

static int begin(void **state)
{
    (void)state;
    count = 0;
    rules = (struct judge_rules){.workers = 3,
                                 .mutexes = 1,
                                 .end = END * MS,
                                 .lease = LEASE * MS,
                                 .margin = MARGIN * MS,
                                 .takeover = TAKEOVER * MS,
                                 .live = LIVE * MS};
    return 0;
}

/* ---- a record ------------------------------------------------------------------------------ */

static struct entry *add(enum entry_kind kind, unsigned worker, int64_t before, int64_t after)
{
    assert_true(count < ENTRIES_MAX);
    entries[count] = (struct entry){.kind = (uint8_t)kind,
                                    .worker = (uint16_t)worker,
                                    .before = before * MS,
                                    .after = after * MS};
    return &entries[count++];
}

static void yes(unsigned worker, uint64_t token, int64_t before, int64_t after)
{
    add(ENTRY_YES, worker, before, after)->token = token;
}

/* Asked at the beginning and at the end, each time for a ms. */
static void tenure(unsigned worker, uint64_t token, int64_t from, int64_t to)
{
    yes(worker, token, from, from + 1);
    yes(worker, token, to - 1, to);
}

static void leave(unsigned worker, uint64_t token, int64_t before)
{
    add(ENTRY_LEAVE, worker, before, before)->token = token;
}

static void callback(unsigned worker, enum callback_kind kind, uint64_t token, int64_t before,
                     int64_t after)
{
    struct entry *e = add(ENTRY_CALLBACK, worker, before, after);
    e->detail = (uint8_t)kind;
    e->token = token;
    e->code = kind == CALLBACK_RELEASED ? SIMBA_RELEASED : SIMBA_ACQUIRED;
}

static void wants(unsigned worker, int64_t from, int64_t to)
{
    add(ENTRY_WANT, worker, from, from)->detail = 1;
    add(ENTRY_WANT, worker, to, to)->detail = 0;
}

static void fault(enum fault kind, unsigned worker, int64_t from, int64_t to)
{
    add(ENTRY_FAULT, worker, from, to)->detail = (uint8_t)kind;
}

/* ---- what is found ------------------------------------------------------------------------- */

static void judge_all(struct run_history *h)
{
    *h = (struct run_history){.begin = 0};
    assert_true(judge_records(entries, count, &rules, h));
}

static void expect_nothing(void)
{
    struct run_history h;
    judge_all(&h);
    if (h.finding_count > 0)
        print_error("found: %s\n", h.findings[0].text);
    assert_int_equal(h.finding_count, 0);
    history_free(&h);
}

static void expect(enum finding_kind kind, const char *text)
{
    struct run_history h;
    judge_all(&h);
    assert_int_equal(h.finding_count, 1);
    if (strstr(h.findings[0].text, text) == NULL)
        print_error("not '%s': %s\n", text, h.findings[0].text);
    assert_non_null(strstr(h.findings[0].text, text));
    assert_int_equal(h.findings[0].kind, kind);
    assert_int_equal(history_count(&h, kind), 1);
    history_free(&h);
}

/* ---- tenures ------------------------------------------------------------------------------- */

static void a_good_record_is_good(void **state)
{
    struct run_history h;
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 100, 101);
    tenure(0, 5, 100, 200);
    leave(0, 5, 200);
    callback(0, CALLBACK_RELEASED, 5, 201, 230);
    tenure(1, 6, 231, 300); /* killed */
    tenure(2, 7, 700, 800);
    judge_all(&h);
    assert_int_equal(h.finding_count, 0);
    assert_int_equal(h.tenure_count, 3);
    assert_int_equal(h.answers, 6);
    assert_int_equal(h.takeover_count, 2);
    assert_int_equal(h.takeovers[0].kind, TAKEOVER_HANDOVER);
    assert_int_equal(h.takeovers[0].ns, 2 * MS); /* from the end of on_released on */
    assert_int_equal(h.takeovers[1].kind, TAKEOVER_EXPIRY);
    assert_int_equal(h.takeovers[1].ns, (701 - 299) * MS);
    assert_int_equal(h.tenures[0].left, 200 * MS);
    assert_int_equal(h.tenures[0].reason, SIMBA_RELEASED);
    history_free(&h);
}

static void two_owners_are_found(void **state)
{
    struct run_history h;
    (void)state;
    tenure(0, 5, 100, 200);
    tenure(1, 6, 190, 300);
    judge_all(&h);
    assert_int_equal(h.finding_count, 1);
    assert_true(h.tenures[0].is_wrong && h.tenures[1].is_wrong);
    history_free(&h);
    expect(FINDING_WRONG, "two owners of mutex 0 for 8.0 ms at 0.191 s");
}

/* One yes, in the middle of another's tenure. */
static void two_owners_are_found_by_a_single_yes(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    yes(1, 6, 150, 151);
    expect(FINDING_WRONG, "two owners");
}

/* Both were asked at the same time: either may have come first. */
static void what_may_be_well_is_well(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    yes(1, 6, 198, 203);
    yes(1, 6, 210, 211);
    yes(0, 5, 199, 202);
    expect_nothing();
}

static void mutexes_do_not_meet(void **state)
{
    (void)state;
    rules.mutexes = 2;
    tenure(0, 5, 100, 200);
    yes(1, 4, 150, 151);
    entries[count - 1].mutex = 1;
    expect_nothing();
}

static void a_token_that_falls_is_found(void **state)
{
    (void)state;
    tenure(0, 6, 100, 200);
    tenure(1, 5, 300, 400);
    expect(FINDING_WRONG, "a token of mutex 0 fell at 0.301 s: worker 1 had 5 after worker 0");
}

static void a_token_that_is_given_twice_is_found(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    tenure(1, 5, 300, 400);
    expect(FINDING_WRONG, "token 5 of mutex 0 was given twice");
}

static void a_token_that_is_given_to_two_lives_is_found(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    tenure(0, 5, 300, 400);
    entries[count - 1].life = entries[count - 2].life = 1;
    expect(FINDING_WRONG, "given twice");
}

static void a_yes_without_token_is_found(void **state)
{
    (void)state;
    yes(0, 0, 100, 101);
    expect(FINDING_WRONG, "without a token");
}

static void a_yes_after_leaving_is_found(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    leave(0, 5, 150);
    expect(FINDING_WRONG, "after it had left");
}

static void a_yes_after_on_released_is_found(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    callback(0, CALLBACK_ACQUIRED, 5, 100, 101);
    callback(0, CALLBACK_RELEASED, 5, 180, 181);
    expect(FINDING_WRONG, "after its on_released had begun");
}

/* ---- the order of the hand-over ------------------------------------------------------------ */

static void left_in_order(int64_t released_to)
{
    callback(0, CALLBACK_ACQUIRED, 5, 100, 101);
    tenure(0, 5, 100, 200);
    leave(0, 5, 200);
    callback(0, CALLBACK_RELEASED, 5, 201, released_to);
}

static void a_release_before_the_end_of_on_released_is_found(void **state)
{
    (void)state;
    left_in_order(240);
    tenure(1, 6, 220, 300);
    expect(FINDING_WRONG, "19.0 ms before on_released of worker 0 had ended");
}

/* It was frozen in on_released until its lease had run out. */
static void a_lease_that_runs_out_meanwhile_is_well(void **state)
{
    (void)state;
    left_in_order(900);
    fault(FAULT_FREEZE, 0, 202, 899);
    tenure(1, 6, 705, 800);
    expect_nothing();
}

/* Nothing has struck it. */
static void a_lease_that_runs_out_without_a_fault_is_late(void **state)
{
    (void)state;
    left_in_order(900);
    tenure(1, 6, 705, 800);
    expect(FINDING_LATE, "the lease ran out while worker 0 left");
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static void expect_out_of_order(const char *what)
{
    expect(FINDING_WRONG, what);
}

static void callbacks_take_turns(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 2);
    callback(0, CALLBACK_ENDANGERED, 0, 1, 1);
    callback(0, CALLBACK_RELEASED, 5, 3, 4);
    callback(0, CALLBACK_ACQUIRED, 6, 5, 6);
    callback(0, CALLBACK_RELEASED, 6, 6, 7);
    callback(0, CALLBACK_STOPPED, 0, 8, 8);
    callback(0, CALLBACK_CLOSED, 0, 9, 9);
    callback(0, CALLBACK_ACQUIRED, 7, 10, 11); /* of another handle */
    entries[count - 1].limit = 1;
    expect_nothing();
}

static void on_acquired_twice_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 2);
    callback(0, CALLBACK_ACQUIRED, 6, 3, 4);
    expect_out_of_order("on_acquired twice");
}

static void on_released_alone_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_RELEASED, 5, 1, 2);
    expect_out_of_order("on_released without on_acquired");
}

static void two_callbacks_at_once_are_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 4);
    callback(0, CALLBACK_RELEASED, 5, 3, 5);
    expect_out_of_order("two callbacks at once");
}

static void a_stop_without_on_released_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 2);
    callback(0, CALLBACK_STOPPED, 0, 3, 3);
    expect_out_of_order("without on_released before");
}

static void a_callback_after_on_closed_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_CLOSED, 0, 1, 2);
    callback(0, CALLBACK_ACQUIRED, 5, 3, 4);
    expect_out_of_order("after on_closed");
}

static void on_endangered_during_on_released_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 2);
    callback(0, CALLBACK_RELEASED, 5, 3, 6);
    callback(0, CALLBACK_ENDANGERED, 0, 4, 5);
    expect_out_of_order("on_endangered while on_released ran");
}

static void on_released_during_on_endangered_is_found(void **state)
{
    (void)state;
    callback(0, CALLBACK_ACQUIRED, 5, 1, 2);
    callback(0, CALLBACK_ENDANGERED, 0, 3, 5);
    callback(0, CALLBACK_RELEASED, 5, 4, 6);
    expect_out_of_order("on_released while on_endangered ran");
}

/* ---- bounds of time ------------------------------------------------------------------------ */

static void nobody_for_too_long_is_late(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    wants(1, 50, 2000);
    tenure(1, 6, 1100, 1200);
    expect(FINDING_LATE, "mutex 0 had no owner for 0.902 s at 0.199 s, though somebody waited");
}

static void too_long_with_nobody_who_waits_is_well(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    wants(1, 300, 2000);
    tenure(1, 6, 1100, 1200);
    expect_nothing();
}

/* Somebody may have owned it in between, and was killed before it said so. */
static void a_fault_in_between_counts_anew(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    wants(1, 50, 2000);
    fault(FAULT_KILL, 2, 500, 510);
    tenure(1, 6, 1100, 1200);
    expect_nothing();
}

static void who_was_struck_does_not_count_as_waiting(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    wants(1, 50, 2000);
    fault(FAULT_FREEZE, 1, 150, 160);
    tenure(1, 6, 1100, 1200);
    expect_nothing();
}

/* A process of ours ran 120 ms late: so may others. */
static void a_late_machine_is_allowed_for(void **state)
{
    (void)state;
    nobody_for_too_long_is_late(state);
    add(ENTRY_DELAYED, FAULT_ON_ALL, 5000, 5120);
    expect_nothing();
}

static void a_late_store_is_allowed_for(void **state)
{
    (void)state;
    nobody_for_too_long_is_late(state);
    add(ENTRY_DELAYED, 3, 5000, 5120)->detail = DELAY_OF_STORE;
    expect_nothing();
    fault(FAULT_SERVER_FREEZE, FAULT_ON_ALL, 5110, 5115); /* by us */
    expect(FINDING_LATE, "had no owner");
}

/* We had frozen it: that is no fault of the machine. */
static void a_frozen_worker_is_no_late_machine(void **state)
{
    (void)state;
    nobody_for_too_long_is_late(state);
    add(ENTRY_DELAYED, 2, 5000, 5120);
    fault(FAULT_FREEZE, 2, 4990, 5115);
    expect(FINDING_LATE, "had no owner");
}

static void with_one_id_time_is_no_promise(void **state)
{
    (void)state;
    nobody_for_too_long_is_late(state);
    rules.is_same_id = true;
    expect(FINDING_LIMIT, "had no owner");
}

static void nobody_after_the_faults_is_wrong(void **state)
{
    (void)state;
    tenure(0, 5, 100, 200);
    add(ENTRY_CALM, FAULT_ON_ALL, 1000, 1000);
    expect(FINDING_WRONG, "nobody has owned mutex 0 since the faults ended");
}

/* Later than a request may take: then none succeeds. */
static void nobody_on_a_starved_machine_is_late(void **state)
{
    nobody_after_the_faults_is_wrong(state);
    add(ENTRY_DELAYED, FAULT_ON_ALL, 5000, 5260);
    expect(FINDING_LATE, "nobody has owned mutex 0 since the faults ended");
}

static void somebody_late_after_the_faults_is_late(void **state)
{
    (void)state;
    tenure(0, 5, 3000, 3100);
    add(ENTRY_CALM, FAULT_ON_ALL, 1000, 1000);
    expect(FINDING_LATE, "mutex 0 was owned 2.001 s after the faults had ended");
}

static void an_owner_that_stays_is_alive(void **state)
{
    (void)state;
    tenure(0, 5, 100, 9000);
    add(ENTRY_CALM, FAULT_ON_ALL, 1000, 1000);
    expect_nothing();
}

static void a_call_beyond_its_timeout_is_late(void **state)
{
    (void)state;
    add(ENTRY_CALL, 1, 100, 250)->limit = 100 * MS;
    expect(FINDING_LATE, "acquire of worker 1 took 0.150 s at 0.100 s; its limit was 0.100 s");
}

static void a_call_of_a_frozen_worker_is_well(void **state)
{
    (void)state;
    add(ENTRY_CALL, 1, 100, 250)->limit = 100 * MS;
    fault(FAULT_FREEZE, 1, 150, 190);
    fault(FAULT_FREEZE, 1, 180, 210);
    expect_nothing();
    entries[0].limit = 80 * MS; /* time in two freezes is counted once */
    expect(FINDING_LATE, "took 0.090 s");
}

/* ---- lives --------------------------------------------------------------------------------- */

static void death(unsigned worker, enum death_kind how, int status)
{
    struct entry *e = add(ENTRY_DEATH, worker, 100, 100);
    e->detail = (uint8_t)how;
    e->code = status;
}

static void a_death_by_us_is_well(void **state)
{
    (void)state;
    add(ENTRY_START, 0, 1, 1);
    death(0, DEATH_BY_US, SIGKILL);
    expect_nothing();
}

static void a_crash_is_found(void **state)
{
    (void)state;
    add(ENTRY_START, 0, 1, 1);
    death(0, DEATH_BY_ITSELF, SIGSEGV);
    expect(FINDING_WRONG, "worker 0 crashed at 0.100 s");
}

static void a_failure_is_found(void **state)
{
    (void)state;
    death(0, DEATH_BY_ITSELF, 23 << 8);
    expect(FINDING_WRONG, "with status 23");
}

static void one_that_hangs_is_found(void **state)
{
    (void)state;
    death(0, DEATH_HUNG, SIGKILL);
    expect(FINDING_WRONG, "did not end when it was asked to");
}

static void a_record_without_end_is_found(void **state)
{
    (void)state;
    add(ENTRY_START, 0, 1, 1);
    death(0, DEATH_BY_ITSELF, 0);
    expect(FINDING_WRONG, "the record of worker 0");
    add(ENTRY_END, 0, 90, 90);
    expect_nothing();
    entries[count - 1].life = 1; /* of another */
    expect(FINDING_WRONG, "the record of worker 0");
}

static void dropped_entries_are_found(void **state)
{
    (void)state;
    rules.dropped = 3;
    expect(FINDING_WRONG, "3 entries had no room");
}

static void leaks_are_found(void **state)
{
    (void)state;
    struct entry *e = add(ENTRY_RESOURCES, 0, 1, 1);
    e->token = 1000;
    expect_nothing();
    e->token = 3 << 20;
    expect(FINDING_WRONG, "3.1 MB more of memory");
    e->token = 0;
    e->limit = 1;
    expect(FINDING_WRONG, "1 descriptors more");
    e->limit = 0;
    e->code = 2;
    expect(FINDING_WRONG, "2 threads more");
}

/* ---- limits -------------------------------------------------------------------------------- */

static void what_force_breaks_is_counted_apart(void **state)
{
    (void)state;
    two_owners_are_found(state);
    fault(FAULT_EVICT_FORCED, FAULT_ON_ALL, 180, 181);
    expect(FINDING_LIMIT, "two owners");
    entries[count - 1].before = entries[count - 1].after = 5000 * MS; /* later */
    expect(FINDING_WRONG, "two owners");
    entries[count - 1].before = entries[count - 1].after = -900 * MS; /* long before */
    expect(FINDING_WRONG, "two owners");
}

static void force_on_another_mutex_excuses_nothing(void **state)
{
    (void)state;
    two_owners_are_found(state);
    fault(FAULT_EVICT_FORCED, FAULT_ON_ALL, 180, 181);
    entries[count - 1].mutex = 1;
    expect(FINDING_WRONG, "two owners");
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_record_is_good),
        TEST(two_owners_are_found),
        TEST(two_owners_are_found_by_a_single_yes),
        TEST(what_may_be_well_is_well),
        TEST(mutexes_do_not_meet),
        TEST(a_token_that_falls_is_found),
        TEST(a_token_that_is_given_twice_is_found),
        TEST(a_token_that_is_given_to_two_lives_is_found),
        TEST(a_yes_without_token_is_found),
        TEST(a_yes_after_leaving_is_found),
        TEST(a_yes_after_on_released_is_found),
        TEST(a_release_before_the_end_of_on_released_is_found),
        TEST(a_lease_that_runs_out_meanwhile_is_well),
        TEST(a_lease_that_runs_out_without_a_fault_is_late),
        TEST(callbacks_take_turns),
        TEST(on_acquired_twice_is_found),
        TEST(on_released_alone_is_found),
        TEST(two_callbacks_at_once_are_found),
        TEST(a_stop_without_on_released_is_found),
        TEST(a_callback_after_on_closed_is_found),
        TEST(on_endangered_during_on_released_is_found),
        TEST(on_released_during_on_endangered_is_found),
        TEST(nobody_for_too_long_is_late),
        TEST(too_long_with_nobody_who_waits_is_well),
        TEST(a_fault_in_between_counts_anew),
        TEST(who_was_struck_does_not_count_as_waiting),
        TEST(a_late_machine_is_allowed_for),
        TEST(a_late_store_is_allowed_for),
        TEST(a_frozen_worker_is_no_late_machine),
        TEST(with_one_id_time_is_no_promise),
        TEST(nobody_after_the_faults_is_wrong),
        TEST(nobody_on_a_starved_machine_is_late),
        TEST(somebody_late_after_the_faults_is_late),
        TEST(an_owner_that_stays_is_alive),
        TEST(a_call_beyond_its_timeout_is_late),
        TEST(a_call_of_a_frozen_worker_is_well),
        TEST(a_death_by_us_is_well),
        TEST(a_crash_is_found),
        TEST(a_failure_is_found),
        TEST(one_that_hangs_is_found),
        TEST(a_record_without_end_is_found),
        TEST(dropped_entries_are_found),
        TEST(leaks_are_found),
        TEST(what_force_breaks_is_counted_apart),
        TEST(force_on_another_mutex_excuses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
