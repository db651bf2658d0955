/* test_handle_danger.c: a mutex that is kept for a least time, and on_endangered. */
#include "unit/machine.h"

/* It is renewed meanwhile; on_released comes when the time is over. */
static void a_stop_is_kept_for_at_least(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 6000,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 stop                    > owns nothing; STOPPING\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 renewed              > -\n"
                  "  6010 due                     > call released RELEASED\n"
                  "  6020 done                    > send #3 RELEASE 7\n"
                  "  6030 #3 released             > given back; INITIAL; call stopped\n"
                  "  6040 done                    > -\n");
}

static void at_least_is_over(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 1000,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
        "    11 done                    > -\n"
        "  1500 stop                    > owns nothing; STOPPING; call released RELEASED\n");
}

static void what_is_lost_is_not_kept(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 60000,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 stop                    > owns nothing; STOPPING\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 lost                 > lost EVICTED; call released EVICTED\n");
}

static void at_least_without_callbacks(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 6000,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    20 stop                    > owns nothing; STOPPING\n"
                  "    30 skipped                 > -\n"
                  "  6010 due                     > send #2 RELEASE 7\n");
}

/* shows: C4 */
static void the_drain_begins_after_at_least(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 6000,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    20 stop                    > owns nothing; STOPPING\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 renewed              > -\n"
                  "  9999 due                     > send #3 RENEW 7\n"
                  " 10009 #3 renewed              > -\n"
                  " 14999 due                     > send #4 RENEW 7\n"
                  " 15009 #4 renewed              > -\n"
                  " 19999 due                     > send #5 RENEW 7\n"
                  " 20009 #5 renewed              > -\n"
                  " 24999 due                     > send #6 RENEW 7\n"
                  " 25009 #6 renewed              > -\n"
                  " 29999 due                     > send #7 RENEW 7\n"
                  " 30009 #7 renewed              > -\n"
                  " 34999 due                     > send #8 RENEW 7\n"
                  " 35009 #8 renewed              > -\n"
                  " 36010 due                     > -\n");
}

/* Its caller does not wait for the release; whoever acquires meanwhile does. */
static void a_locker_keeps_it_for_at_least(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 4000,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "    20 release                 > owns nothing; result OK\n"
                  "    30 acquire once            > result HELD\n"
                  "    40 acquire until 100       > -\n"
                  "   100 due                     > result TIMEOUT\n"
                  "   200 acquire                 > -\n"
                  "   210 cancel                  > result CANCELED\n"
                  "   300 acquire                 > -\n"
                  "   310 abandon                 > -\n"
                  "   400 acquire until 20000     > -\n"
                  "  4010 due                     > send #2 RELEASE 7\n"
                  "  4020 #2 released             > given back; send #3 CONTEND\n"
                  "  4030 #3 granted 8            > owns 8 until 18858; result OK\n"
                  "  4040 release                 > owns nothing; result OK\n"
                  "  4050 close                   > -\n"
                  "  8030 due                     > send #4 RELEASE 8\n"
                  "  8040 #4 released             > given back; call closed\n");
}

static void closed_while_kept(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 4000,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "    20 release                 > owns nothing; result OK\n"
                  "    30 acquire                 > -\n"
                  "    40 close                   > result CANCELED\n"
                  "  4010 due                     > send #2 RELEASE 7\n");
}

static void lost_while_kept_and_awaited(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 60000,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "    20 release                 > owns nothing; result OK\n"
                  "    30 acquire                 > -\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 lost                 > lost EVICTED; send #3 RELEASE 7\n"
                  "  5020 #3 released             > given back; send #4 CONTEND\n");
}

static void a_destroyed_lock_is_kept(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 4000,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "    20 destroy                 > owns nothing\n"
                  "  4010 due                     > send #2 RELEASE 7\n");
}

/* Again after a success; what comes during the call is told after it; on_released waits for it. */
static void renewals_that_fail_are_reported_once(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  "  5060 due                     > send #3 RENEW 7\n"
                  "  5070 #3 fails STORE          > failed STORE\n"
                  "  5100 warned                  > -\n"
                  "  5170 due                     > send #4 RENEW 7\n"
                  "  5180 #4 renewed              > owns 7 until 20008\n"
                  " 10170 due                     > send #5 RENEW 7\n"
                  " 10180 #5 fails STORE          > failed STORE; warn of 9828\n"
                  " 10230 due                     > send #6 RENEW 7\n"
                  " 10240 #6 renewed              > owns 7 until 25068\n"
                  " 15230 due                     > send #7 RENEW 7\n"
                  " 15240 #7 fails STORE          > failed STORE\n"
                  " 15245 warned                  > warn of 9823\n"
                  " 15300 stop                    > owns nothing; STOPPING; send #8 RENEW 7\n"
                  " 15310 warned                  > call released RELEASED\n");
}

static void a_danger_that_has_passed_is_not_reported(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  "  5060 due                     > send #3 RENEW 7\n"
                  "  5070 #3 renewed              > owns 7 until 19898\n"
                  " 10060 due                     > send #4 RENEW 7\n"
                  " 10070 #4 fails STORE          > failed STORE\n"
                  " 10120 due                     > send #5 RENEW 7\n"
                  " 10130 #5 renewed              > owns 7 until 24958\n"
                  " 10140 warned                  > -\n");
}

/* As of a session that is not kept. */
static void a_renewal_that_brings_nothing_is_a_failure(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 renewed for 10900    > warn of 9828\n"
                  "  5011 warned                  > -\n"
                  "  6250 due                     > send #3 RENEW 7\n"
                  "  6260 #3 renewed for 9650     > -\n");
}

static void the_end_that_comes_first_is_reported(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 6000, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  3010 due                     > warn of 3000\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE\n"
                  "  5020 warned                  > warn of 990\n"
                  "  5030 warned                  > -\n");
}

/* shows: C3 */
static void on_released_waits_for_on_endangered(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  " 14838 due                     > lost EXPIRED; owns nothing\n"
                  " 15000 warned                  > call released EXPIRED\n");
}

/* The store is told after it, and so begins the next acquire. */
static void a_release_does_not_wait_for_on_endangered(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 0,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  "  5020 release                 > owns nothing; result OK\n"
                  "  5030 acquire                 > -\n"
                  "  5040 warned                  > send #3 RELEASE 7\n"
                  "  5050 #3 released             > given back; send #4 CONTEND\n");
}

static void a_lock_is_lost_during_on_endangered(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 0,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  " 14838 due                     > lost EXPIRED; owns nothing\n"
                  " 14900 warned                  > call released EXPIRED\n"
                  " 15000 release                 > result LOST\n"
                  " 15001 done                    > send #3 RELEASE 7\n");
}

static void an_acquire_after_a_loss_outlives_the_drain(void **state)
{
    (void)state;
    tell_story_of(HANDLE_LOCKER, 0, 0,
                  "     0 acquire                 > send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; result OK\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 fails STORE          > failed STORE; warn of 9828\n"
                  "  5020 release                 > owns nothing; result OK\n"
                  "  5060 due                     > send #3 RENEW 7\n"
                  "  5070 #3 lost                 > lost EVICTED\n"
                  "  5080 acquire                 > -\n"
                  " 35020 due                     > -\n"
                  " 35030 warned                  > send #4 RELEASE 7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_is_kept_for_at_least),
        cmocka_unit_test(at_least_is_over),
        cmocka_unit_test(what_is_lost_is_not_kept),
        cmocka_unit_test(at_least_without_callbacks),
        cmocka_unit_test(the_drain_begins_after_at_least),
        cmocka_unit_test(a_locker_keeps_it_for_at_least),
        cmocka_unit_test(closed_while_kept),
        cmocka_unit_test(lost_while_kept_and_awaited),
        cmocka_unit_test(a_destroyed_lock_is_kept),
        cmocka_unit_test(renewals_that_fail_are_reported_once),
        cmocka_unit_test(a_danger_that_has_passed_is_not_reported),
        cmocka_unit_test(a_renewal_that_brings_nothing_is_a_failure),
        cmocka_unit_test(the_end_that_comes_first_is_reported),
        cmocka_unit_test(on_released_waits_for_on_endangered),
        cmocka_unit_test(a_release_does_not_wait_for_on_endangered),
        cmocka_unit_test(a_lock_is_lost_during_on_endangered),
        cmocka_unit_test(an_acquire_after_a_loss_outlives_the_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
