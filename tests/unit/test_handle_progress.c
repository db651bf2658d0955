/* test_handle_progress.c: an owner that hangs, one that resigns, and the end of a stop. */
#include "unit/machine.h"

/* The tenure ends although on_acquired does not; then it leaves the mutex to others for a lease. */
/* shows: C11 */
static void a_worker_that_hangs_is_stalled(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 3000, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "  1510 due                     > warn of 1500\n"
                  "  1600 warned                  > -\n"
                  "  3010 due                     > lost STALLED; owns nothing\n"
                  "  3011 hint                    > -\n"
                  "  9000 done                    > call released STALLED\n"
                  "  9001 done                    > send #2 RELEASE 7\n"
                  "  9010 #2 released             > given back\n"
                  " 20000 hint                    > -\n"
                  " 25010 due                     > send #3 CONTEND\n");
}

/* It warns at half of the limit, once for each silence, and one call after the other. */
/* shows: C11 */
static void reports_keep_it(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 3000, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  1000 report                  > -\n"
                  "  2500 due                     > warn of 1500\n"
                  "  2600 report                  > -\n"
                  "  4100 due                     > -\n"
                  "  4200 warned                  > warn of 1400\n"
                  "  4990 report                  > send #2 RENEW 7\n"
                  "  5000 due                     > -\n"
                  "  5010 #2 renewed              > owns 7 until 19828\n"
                  "  5020 stop                    > owns nothing; STOPPING\n");
}

/* As between the runs of a scheduler. */
/* shows: C11 */
static void nothing_is_asked_for_at_rest(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 3000, 0,
                  "     0 rest                    > -\n"
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "  1510 due                     > -\n"
                  "  3010 due                     > -\n"
                  "  4000 report                  > -\n"
                  "  4510 due                     > -\n"
                  "  5500 due                     > warn of 1500; send #2 RENEW 7\n"
                  "  6000 rest                    > -\n"
                  "  7000 due                     > failed TIMEOUT\n"
                  "  9000 report                  > send #3 RENEW 7\n"
                  " 12000 due                     > lost STALLED; owns nothing\n");
}

/* A resignation is of one tenure: not of another, and not twice. */
static void who_resigns_stays_a_candidate(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 resign 6 5000           > -\n"
                  "    30 resign 7 5000           > owns nothing; call released RELEASED\n"
                  "    31 resign 7 9000           > -\n"
                  "    40 done                    > send #2 RELEASE 7\n"
                  "    50 #2 released             > given back\n"
                  "    60 hint                    > -\n"
                  "    70 resign 7 1              > -\n"
                  "  5050 due                     > send #3 CONTEND\n"
                  "  5060 #3 granted 8            > owns 8 until 19888; call acquired\n"
                  "  5061 done                    > -\n"
                  "  5070 resign 8 0              > owns nothing; call released RELEASED\n"
                  "  5080 done                    > send #4 RELEASE 8\n"
                  "  5090 #4 released             > given back; send #5 CONTEND\n");
}

/* The machine hears of it when the tenure is over, and another of ours is given back. */
static void resigned_and_lost(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 0,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
        "    11 done                    > -\n"
        "    20 hint                    > send #2 RENEW 7\n"
        "    21 #2 lost                 > lost EVICTED; owns nothing; call released EVICTED\n"
        "    22 #1 granted 9            > -\n"
        "    23 resign 7 5000           > -\n"
        "    24 done                    > send #3 RELEASE 9\n"
        "    25 #3 released             > given back\n"
        "    26 hint                    > -\n"
        "  5025 due                     > send #4 CONTEND\n");
}

static void resigned_then_stopped_drains_once(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    20 resign 7 1000           > owns nothing\n"
                  "  5000 due                     > send #2 RENEW 7\n"
                  "  5010 #2 renewed              > -\n"
                  "  6000 stop                    > STOPPING\n"
                  " 10000 due                     > send #3 RENEW 7\n"
                  " 10010 #3 renewed              > -\n"
                  " 15000 due                     > send #4 RENEW 7\n"
                  " 15010 #4 renewed              > -\n"
                  " 20000 due                     > send #5 RENEW 7\n"
                  " 20010 #5 renewed              > -\n"
                  " 25000 due                     > send #6 RENEW 7\n"
                  " 25010 #6 renewed              > -\n"
                  " 29990 due                     > send #7 RENEW 7\n"
                  " 29999 #7 renewed              > -\n"
                  " 30020 due                     > -\n"
                  " 40000 done                    > call released EXPIRED\n"
                  " 40001 done                    > send #8 RELEASE 7\n"
                  " 40002 #8 released             > given back; INITIAL; call stopped\n"
                  " 40003 done                    > -\n");
}

static void stopped_in_the_pause(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 resign 7 5000           > owns nothing; call released RELEASED\n"
                  "    21 done                    > send #2 RELEASE 7\n"
                  "    22 #2 released             > given back\n"
                  "    30 stop                    > INITIAL; call stopped\n"
                  "    31 done                    > -\n");
}

static void a_pause_for_ever_ends_with_the_handle(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 resign 7 9223372036854  > owns nothing; call released RELEASED\n"
                  "    21 done                    > send #2 RELEASE 7\n"
                  "    22 #2 released             > given back\n"
                  "    30 close                   > INITIAL; call stopped\n"
                  "    31 done                    > call closed\n"
                  "    32 done                    > -\n");
}

static void a_late_grant_in_the_pause_is_given_back(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
                  "    11 done                    > -\n"
                  "    20 resign 7 5000           > owns nothing; call released RELEASED\n"
                  "    21 done                    > send #2 RELEASE 7\n"
                  "    22 #2 released             > given back\n"
                  "    30 #1 granted 9            > send #3 RELEASE 9\n"
                  "    40 #3 released             > given back\n"
                  "  5022 due                     > send #4 CONTEND\n");
}

/* on_acquired of the next life waits for it. */
/* shows: C3 */
static void on_stopped_comes_last(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 0,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
        "    11 done                    > -\n"
        "    20 stop                    > owns nothing; STOPPING; call released RELEASED\n"
        "    21 done                    > send #2 RELEASE 7\n"
        "    22 #2 released             > given back; INITIAL; call stopped\n"
        "    23 start                   > STARTING; send #3 CONTEND\n"
        "    24 #3 granted 8            > owns 8 until 14861; RUNNING\n"
        "    25 done                    > call acquired\n"
        "    26 done                    > -\n");
}

static void stopped_again_during_on_stopped(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 start                   > STARTING; send #1 CONTEND\n"
                  "     1 stop                    > STOPPING\n"
                  "    10 #1 owner bob 6 for 16000> INITIAL; call stopped\n"
                  "    11 start                   > STARTING; send #2 CONTEND\n"
                  "    12 #2 granted 8            > owns 8 until 14849; RUNNING\n"
                  "    13 stop                    > owns nothing; STOPPING\n"
                  "    14 done                    > send #3 RELEASE 8\n"
                  "    15 #3 released             > given back; INITIAL; call stopped\n"
                  "    16 done                    > -\n");
}

static void a_start_that_fails_for_good_is_reported(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 0,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 fails INVAL          > failed INVAL; INITIAL; call stopped; send #2 LEAVE\n"
        "    11 start                   > STARTING\n"
        "    12 #2 fails INVAL          > failed INVAL; INITIAL\n"
        "    13 start                   > STARTING; send #3 CONTEND\n"
        "    14 done                    > -\n");
}

static void failed_again_during_on_stopped(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 0,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 fails INVAL          > failed INVAL; INITIAL; call stopped; send #2 LEAVE\n"
        "    11 start                   > STARTING\n"
        "    12 #2 fails INVAL          > failed INVAL; INITIAL\n"
        "    14 done                    > call stopped\n"
        "    15 done                    > -\n");
}

static void on_stopped_comes_before_on_closed(void **state)
{
    (void)state;
    tell_story_of(
        HANDLE_CONTENDER, 0, 0,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
        "    11 done                    > -\n"
        "    20 close                   > owns nothing; STOPPING; call released RELEASED\n"
        "    21 done                    > send #2 RELEASE 7\n"
        "    22 #2 released             > given back; INITIAL; call stopped\n"
        "    23 done                    > call closed\n"
        "    24 done                    > -\n");
}

static void who_was_not_started_is_not_stopped(void **state)
{
    (void)state;
    tell_story_of(HANDLE_CONTENDER, 0, 0,
                  "     0 close                   > call closed\n"
                  "     1 done                    > -\n");
}

/* Only what is asked for is told. */
static void nobody_listens(void **state)
{
    (void)state;
    struct machine m;
    machine_init_extra(&m, HANDLE_CONTENDER, SILENT, 3000, 0);
    play(&m, "     0 start                   > STARTING; send #1 CONTEND\n"
             "    10 #1 granted 7            > owns 7 until 14838; RUNNING; call acquired\n"
             "    11 done                    > -\n"
             "  1510 due                     > -\n"
             "  2000 stop                    > owns nothing; STOPPING; call released RELEASED\n"
             "  2001 done                    > send #2 RELEASE 7\n"
             "  2010 #2 released             > given back; INITIAL\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_hangs_is_stalled),
        cmocka_unit_test(reports_keep_it),
        cmocka_unit_test(nothing_is_asked_for_at_rest),
        cmocka_unit_test(who_resigns_stays_a_candidate),
        cmocka_unit_test(resigned_and_lost),
        cmocka_unit_test(resigned_then_stopped_drains_once),
        cmocka_unit_test(stopped_in_the_pause),
        cmocka_unit_test(a_pause_for_ever_ends_with_the_handle),
        cmocka_unit_test(a_late_grant_in_the_pause_is_given_back),
        cmocka_unit_test(on_stopped_comes_last),
        cmocka_unit_test(stopped_again_during_on_stopped),
        cmocka_unit_test(a_start_that_fails_for_good_is_reported),
        cmocka_unit_test(failed_again_during_on_stopped),
        cmocka_unit_test(on_stopped_comes_before_on_closed),
        cmocka_unit_test(who_was_not_started_is_not_stopped),
        cmocka_unit_test(nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
