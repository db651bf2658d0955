/* test_handle_note.c: a note that is published with each tenure, before anybody is told of it. */
#include "unit/machine.h"

/* shows: C12 */
static void published_before_on_acquired(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "    20 published 1             > call acquired\n"
        "    21 done                    > -\n"
        "    22 published 1             > -\n"
        "  5000 due                     > send #2 RENEW 7\n"
        "  5010 #2 renewed              > owns 7 until 19838\n"
        "  6000 stop                    > owns nothing; STOPPING; call released RELEASED\n"
        "  6010 done                    > send #3 RELEASE 7\n"
        "  6020 #3 released             > given back; INITIAL\n"
        "  7000 start                   > STARTING; send #4 CONTEND\n"
        "  7010 #4 granted 8            > owns 8 until 21838; RUNNING; publish 2 for 8\n"
        "  7011 published 1             > -\n"
        "  7020 published 2             > call acquired\n");
}

static void a_locker_returns_after_it(void **state)
{
    (void)state;
    tell_story_with_note(HANDLE_LOCKER,
                         "     0 acquire                 > send #1 CONTEND\n"
                         "    10 #1 granted 7            > owns 7 until 14838; publish 1 for 7\n"
                         "    20 published 1             > result OK\n"
                         "    30 release                 > owns nothing; send #2 RELEASE 7\n"
                         "    40 #2 released             > given back; result OK\n"
                         "    50 acquire once            > send #3 CONTEND\n"
                         "    60 #3 granted 8            > owns 8 until 14888; publish 2 for 8\n"
                         "    70 unpublished 2 STORE     > result OK; not published STORE\n");
}

/* One attempt; then renewals try again until it is written. */
/* shows: C12 */
static void a_failure_delays_nobody(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "    20 unpublished 1 STORE     > call acquired; not published STORE\n"
        "    21 done                    > -\n"
        "    22 unpublished 1 STORE     > -\n"
        "  5000 due                     > send #2 RENEW 7\n"
        "  5010 #2 renewed              > owns 7 until 19838; publish 2 for 7\n"
        "  5020 unpublished 1 STORE     > -\n"
        "  5030 unpublished 2 DENIED    > -\n"
        " 10000 due                     > send #3 RENEW 7\n"
        " 10010 #3 renewed              > owns 7 until 24838; publish 3 for 7\n"
        " 10020 published 3             > published late\n"
        " 15000 due                     > send #4 RENEW 7\n"
        " 15010 #4 renewed              > owns 7 until 29838\n");
}

static void no_answer_is_a_failure(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "next 10..5000\n"
        "  4000 due                     > call acquired; not published TIMEOUT\n"
        "  4001 done                    > -\n"
        "  4002 published 1             > published late\n"
        "  5000 due                     > send #2 RENEW 7\n"
        "  5010 #2 renewed              > owns 7 until 19838\n");
}

static void who_cannot_is_not_asked_again(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "    20 unpublished 1 UNSUPPORTED > call acquired; not published UNSUPPORTED\n"
        "    21 done                    > -\n"
        "  5000 due                     > send #2 RENEW 7\n"
        "  5010 #2 renewed              > owns 7 until 19838\n");
}

/* The store compares as for a renewal: that tenure is over. */
/* shows: C12 */
static void refused_is_lost(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "    20 unpublished 1 LOST      > lost EVICTED; owns nothing; send #2 RELEASE 7\n"
        "    25 unpublished 1 LOST      > -\n"
        "    30 #2 lost                 > was gone\n");
}

static void stopped_before_on_acquired(void **state)
{
    (void)state;
    tell_story_with_note(
        HANDLE_CONTENDER,
        "     0 start                   > STARTING; send #1 CONTEND\n"
        "    10 #1 granted 7            > owns 7 until 14838; RUNNING; publish 1 for 7\n"
        "    20 stop                    > owns nothing; STOPPING; send #2 RELEASE 7\n"
        "    30 published 1             > -\n"
        "    40 #2 released             > given back; INITIAL\n");
}

/* Where its lease is about to end, the renewal goes first, and neither waits for the other. */
static void beside_renewals(void **state)
{
    (void)state;
    tell_story_with_note(HANDLE_LOCKER,
                         "     0 acquire once            > send #1 CONTEND\n"
                         "    10 #1 granted 7 for 1500   > owns 7 until 483; send #2 RENEW 7\n"
                         "    11 due                     > publish 1 for 7\n"
                         "    20 #2 fails STORE          > failed STORE\n"
                         "    30 published 1             > result OK\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_before_on_acquired),
        cmocka_unit_test(a_locker_returns_after_it),
        cmocka_unit_test(a_failure_delays_nobody),
        cmocka_unit_test(no_answer_is_a_failure),
        cmocka_unit_test(who_cannot_is_not_asked_again),
        cmocka_unit_test(refused_is_lost),
        cmocka_unit_test(stopped_before_on_acquired),
        cmocka_unit_test(beside_renewals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
