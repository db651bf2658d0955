/* test_handle_contender.c: what the user of a contender is told, and what waits for its callbacks.
 * unit/machine.h says how to read the stories. */
#include "unit/machine.h"

#define WON                                             \
    "    0 start         > STARTING; send #1 CONTEND\n" \
    "    3 #1 granted 7  > owns 7 until 14838; RUNNING; call acquired\n"
#define LED WON "    4 done          > -\n"

/* on_released runs, then the store is told, then the status is INITIAL; and all over again. */
/* shows: C3 */
static void ends_in_order_and_starts_again(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n"
                   " 1500 done          > send #2 RELEASE 7\n"
                   " 1501 #2 released   > given back; INITIAL\n"
                   " 2000 start         > STARTING; send #3 CONTEND\n"
                   " 2001 #3 granted 9  > owns 9 until 16838; RUNNING; call acquired\n");
}

/* The lease is kept, but is not ours to act on any more. */
/* shows: C4 */
static void renews_for_the_callback_after_stop(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n"
                   "      is holding\n"
                   " 5000 due           > send #2 RENEW 7\n"
                   " 5001 #2 renewed    > -\n"
                   "10000 due           > send #3 RENEW 7\n"
                   "10001 #3 renewed    > -\n"
                   "12000 done          > send #4 RELEASE 7\n");
}

/* on_released must follow on_acquired, so it waits for it. */
static void stop_while_on_acquired_runs(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               WON " 1000 stop          > owns nothing; STOPPING\n"
                   " 5000 due           > send #2 RENEW 7\n"
                   " 5001 #2 renewed    > -\n"
                   " 6000 done          > call released RELEASED\n"
                   " 6100 done          > send #3 RELEASE 7\n"
                   " 6101 #3 released   > given back; INITIAL\n");
}

static void loss_while_on_acquired_runs(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               WON "14838 due           > lost EXPIRED; owns nothing\n"
                   "      next never\n"
                   "20000 done          > call released EXPIRED\n"
                   "20001 done          > send #2 RELEASE 7\n"
                   "20002 #2 released   > given back; send #3 CONTEND\n");
}

/* It waited for a thread until the lease had ended. Then there is nothing to be told. */
/* shows: C3 */
static void outdated_on_acquired_is_skipped_and_so_is_on_released(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               WON "14838 due           > lost EXPIRED; owns nothing\n"
                   "14900 skipped       > send #2 RELEASE 7\n"
                   "14901 #2 released   > given back; send #3 CONTEND\n"
                   "14902 #3 granted 8  > owns 8 until 29739; call acquired\n");
    tell_story(HANDLE_CONTENDER, 0,
               WON " 1000 stop          > owns nothing; STOPPING\n"
                   " 1001 skipped       > send #2 RELEASE 7\n"
                   " 1002 #2 released   > given back; INITIAL\n");
    tell_story(HANDLE_CONTENDER, 0,
               WON "14838 skipped       > lost EXPIRED; owns nothing; send #2 RELEASE 7\n");
}

/* Skipped although we own it: whoever decided so read older news. It is told again. */
static void skipped_on_acquired_is_repeated_while_owner(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               WON "   10 skipped       > call acquired\n"
                   "   20 done          > -\n"
                   " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n");
}

/* A callback that never ends: the lease is renewed for 30 s more, then left to expire. What
 * comes after it can still give the tenure back. */
/* shows: C4 */
static void drain_has_a_limit(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n"
                   " 5000 due           > send #2 RENEW 7\n"
                   " 5001 #2 renewed    > -\n"
                   "19000 due           > send #3 RENEW 7\n"
                   "19001 #3 renewed    > -\n"
                   "30000 due           > send #4 RENEW 7\n"
                   "30001 #4 renewed    > -\n"
                   "      next 31000..31000\n"
                   "30999 due           > -\n"
                   "31000 due           > -\n"
                   "      is ended\n"
                   "      next never\n"
                   "31001 #4 renewed    > -\n"
                   "99000 done          > send #5 RELEASE 7\n"
                   "99001 #5 released   > given back; INITIAL\n");
}

/* Without any drain the lease is left to expire at once; still nothing is released early. */
static void drain_can_be_zero(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, HANDLE_CONTENDER, 0, 0);
    play(&m, WON " 1000 stop          > owns nothing; STOPPING\n"
                 "      next 1000..1000\n"
                 " 1000 due           > -\n"
                 "      is ended\n"
                 " 2000 done          > call released EXPIRED\n"
                 " 2001 done          > send #2 RELEASE 7\n");
}

static void lease_may_end_before_the_drain_does(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 stop            > owns nothing; STOPPING; call released RELEASED\n"
                   "14838 due             > lost EXPIRED\n"
                   "      is ended\n"
                   "      next 31000..31000\n"
                   "31000 due             > -\n"
                   "      next never\n"
                   "40000 done            > send #2 RELEASE 7\n"
                   "40001 #2 released     > given back; INITIAL\n");
}

static void drain_can_be_unlimited(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, HANDLE_CONTENDER, 0, NEVER);
    play(&m, LED " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n"
                 " 5000 due           > send #2 RENEW 7\n"
                 " 5001 #2 renewed    > -\n"
                 "      next 9500..10000\n");
    assert_true(m.handle.drain_at == NEVER);
}

static void stop_before_the_first_try(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start at 500  > STARTING\n"
               "  100 stop          > INITIAL\n"
               "      is idle\n"
               "      next never\n"
               "  200 stop          > -\n");
}

static void stop_while_waiting_for_another(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start                    > STARTING; send #1 CONTEND\n"
               "    4 #1 owner bob 6 for 9000  > answered; RUNNING\n"
               "  100 stop                     > INITIAL\n"
               "      is idle\n");
}

static void stop_after_the_loss(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED "14838 due           > lost EXPIRED; owns nothing; call released EXPIRED\n"
                   "14900 stop          > STOPPING\n"
                   "      next never\n"
                   "15000 done          > send #2 RELEASE 7\n"
                   "15001 #2 released   > given back; INITIAL\n");
    tell_story(HANDLE_CONTENDER, 0,
               LED "14838 stop          > lost EXPIRED; owns nothing; STOPPING; "
                   "call released EXPIRED\n"
                   "15000 done          > send #2 RELEASE 7\n"
                   "15001 stop          > -\n"
                   "15002 #2 released   > given back; INITIAL\n");
    tell_story(HANDLE_CONTENDER, 0,
               LED " 5000 due           > send #2 RENEW 7\n"
                   " 5001 #2 lost       > lost EVICTED; owns nothing; call released EVICTED\n"
                   " 5002 stop          > STOPPING\n"
                   " 5003 done          > send #3 RELEASE 7\n"
                   " 5004 #3 released   > given back; INITIAL\n"
                   "      is idle\n");
}

/* Errors that no later try can mend end a start; after it they are retried like others. */
/* shows: C9 */
static void start_fails_for_good(void **state)
{
    (void)state;
    static const char *const codes[] = {"INVAL", "UNSUPPORTED"};
    for (size_t i = 0; i < COUNT(codes); i++) {
        struct machine m;
        char line[MACHINE_LINE];
        machine_init(&m, HANDLE_CONTENDER, CHOSEN_ID, 30000);
        play(&m, "    0 start         > STARTING; send #1 CONTEND\n");
        snprintf(line, sizeof line, "    1 #1 fails %s > failed %s; INITIAL\n", codes[i], codes[i]);
        play(&m, line);
        play(&m, "      is idle\n"
                 "    2 stop          > -\n"
                 "    3 start         > STARTING; send #2 CONTEND\n"
                 "    4 #2 owner bob 6 for 9000  > answered; RUNNING\n"
                 "10000 due           > send #3 CONTEND\n"
                 "10001 #3 fails INVAL  > failed INVAL\n"
                 "      is contending\n");
    }
}

/* The start had failed, but what became of #1 is still being looked up. */
static void start_again_while_returning(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    1 #1 fails INVAL            > failed INVAL; INITIAL; send #2 LEAVE\n"
               "    2 start at 9000             > STARTING\n"
               "      is returning\n"
               "    3 #2 owner me 7 for 15000   > send #3 RELEASE 7\n"
               "    4 #3 released               > given back; send #4 CONTEND\n"
               "    5 #4 granted 8              > owns 8 until 14842; RUNNING; call acquired\n");
}

static void close_before_anything(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 close  > call closed\n"
               "    1 close  > -\n"
               "    2 done   > -\n"
               "    3 close  > -\n"
               "      is idle\n"
               "      next never\n");
}

static void close_while_contending(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start             > STARTING; send #1 CONTEND\n"
               "    1 close             > STOPPING\n"
               "    2 #1 granted 7      > send #2 RELEASE 7\n"
               "    3 #2 released       > given back; INITIAL; call closed\n"
               "    4 done              > -\n"
               "    9 #1 granted 8      > send #3 RELEASE 8\n"
               "   10 #3 released       > given back\n"
               "      is idle\n");
}

static void close_while_holding(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 close         > owns nothing; STOPPING; call released RELEASED\n"
                   " 1001 done          > send #2 RELEASE 7\n"
                   " 1002 #2 released   > given back; INITIAL; call closed\n"
                   " 1003 done          > -\n");
    tell_story(HANDLE_CONTENDER, 0,
               WON " 1000 close         > owns nothing; STOPPING\n"
                   " 1001 done          > call released RELEASED\n"
                   " 1002 done          > send #2 RELEASE 7\n"
                   " 1003 #2 released   > given back; INITIAL; call closed\n");
}

static void close_after_stop_and_after_the_loss(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               LED " 1000 stop          > owns nothing; STOPPING; call released RELEASED\n"
                   " 1001 close         > -\n"
                   " 1002 done          > send #2 RELEASE 7\n"
                   " 1003 close         > -\n"
                   " 1004 #2 released   > given back; INITIAL; call closed\n");
    tell_story(HANDLE_CONTENDER, 0,
               LED "14838 close         > lost EXPIRED; owns nothing; STOPPING; "
                   "call released EXPIRED\n"
                   "14840 done          > send #2 RELEASE 7\n"
                   "14841 #2 released   > given back; INITIAL; call closed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_in_order_and_starts_again),
        cmocka_unit_test(renews_for_the_callback_after_stop),
        cmocka_unit_test(stop_while_on_acquired_runs),
        cmocka_unit_test(loss_while_on_acquired_runs),
        cmocka_unit_test(outdated_on_acquired_is_skipped_and_so_is_on_released),
        cmocka_unit_test(skipped_on_acquired_is_repeated_while_owner),
        cmocka_unit_test(drain_has_a_limit),
        cmocka_unit_test(drain_can_be_zero),
        cmocka_unit_test(lease_may_end_before_the_drain_does),
        cmocka_unit_test(drain_can_be_unlimited),
        cmocka_unit_test(stop_before_the_first_try),
        cmocka_unit_test(stop_while_waiting_for_another),
        cmocka_unit_test(stop_after_the_loss),
        cmocka_unit_test(start_fails_for_good),
        cmocka_unit_test(start_again_while_returning),
        cmocka_unit_test(close_before_anything),
        cmocka_unit_test(close_while_contending),
        cmocka_unit_test(close_while_holding),
        cmocka_unit_test(close_after_stop_and_after_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
