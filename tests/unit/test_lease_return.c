/* test_lease_return.c: how what was won, or may have been won, is given back.
 * unit/machine.h says how to read the stories. */
#include "unit/machine.h"

/* Holding 7 since 0, then stopped at 1000 while nothing runs: #2 is the release. */
#define WON                                                \
    "    0 start            > STARTING; send #1 CONTEND\n" \
    "    3 #1 granted 7     > owns 7 until 14838; RUNNING; call acquired\n"
#define WON_AND_STOPPED                                                         \
    WON " 1000 stop         > owns nothing; STOPPING; call released RELEASED; " \
        "send #2 RELEASE 7\n"

/* shows: C2 */
static void release_names_the_token(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON_AND_STOPPED "      is returning\n"
                               "      next 3000..3000\n"
                               " 1002 #2 released    > given back; INITIAL\n"
                               "      is idle\n"
                               "      next never\n");
}

/* The store says that the tenure was over: just as well. */
static void release_of_a_lost_tenure_is_as_good(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON_AND_STOPPED " 1002 #2 lost   > was gone; INITIAL\n"
                               "      is idle\n");
}

/* shows: C8 */
static void release_is_tried_three_times(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON_AND_STOPPED " 1002 #2 fails STORE    > failed STORE\n"
                               "      next 1027..1052\n"
                               " 1052 due               > send #3 RELEASE 7\n"
                               " 3052 due               > failed TIMEOUT\n"
                               "      next 3102..3152\n"
                               " 3152 due               > send #4 RELEASE 7\n"
                               " 5152 due               > failed TIMEOUT; INITIAL\n"
                               "      is idle\n"
                               "      next never\n");
}

static void late_answer_to_a_release_is_good_enough(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON_AND_STOPPED " 3000 due               > failed TIMEOUT\n"
                               " 3050 due               > send #3 RELEASE 7\n"
                               " 3051 #2 fails STORE    > -\n"
                               "      next 5050..5050\n"
                               " 3052 #2 released       > given back; INITIAL\n"
                               " 3053 #3 lost           > -\n"
                               "      is idle\n");
}

/* Two requests were with the store. While the first tenure is given back, a later one shows up. */
static void later_tenure_is_given_back_too(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                > STARTING; send #1 CONTEND\n"
               " 2000 due                  > failed TIMEOUT\n"
               " 2100 due                  > send #2 CONTEND\n"
               " 2101 stop                 > STOPPING\n"
               " 2102 #2 granted 7         > send #3 RELEASE 7\n"
               " 2103 #1 granted 9         > -\n"
               "      next 4102..4102\n"
               " 2104 #3 lost              > send #4 RELEASE 9\n"
               " 2105 #3 released          > -\n"
               " 2106 #4 released          > given back; INITIAL\n");
}

static void later_tenure_ends_the_pause_between_releases(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                > STARTING; send #1 CONTEND\n"
               " 2000 due                  > failed TIMEOUT\n"
               " 2100 due                  > send #2 CONTEND\n"
               " 2101 stop                 > STOPPING\n"
               " 2102 #2 granted 7         > send #3 RELEASE 7\n"
               " 2103 #3 fails STORE       > failed STORE\n"
               " 2104 #1 granted 9         > send #4 RELEASE 9\n"
               " 2105 #3 released          > -\n"
               " 2106 #4 released          > given back; INITIAL\n");
}

static void grant_after_stop_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    1 stop           > STOPPING\n"
               "      is contending\n"
               "      next 2000..2000\n"
               "    3 #1 granted 7   > send #2 RELEASE 7\n"
               "    4 #2 released    > given back; INITIAL\n");
}

/* Even when all seemed to be over: stop, give up, INITIAL. */
static void grant_out_of_the_blue_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | CHOSEN_ID,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    1 stop           > STOPPING\n"
               " 2000 due            > failed TIMEOUT; INITIAL\n"
               "      is idle\n"
               " 9000 #1 granted 7   > send #2 RELEASE 7\n"
               "      is returning\n"
               " 9001 #2 released    > given back\n"
               "      is idle\n");
}

static void answer_to_the_last_request_ends_the_stop(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                > STARTING; send #1 CONTEND\n"
               "    1 stop                 > STOPPING\n"
               "    2 hint                 > -\n"
               "    3 #1 owner bob 6 for 9000   > INITIAL\n"
               "      is idle\n");
}

/* Did #1 win? The store is asked, once; an id that only we can have makes the answer clear. */
/* shows: C8 */
static void unknown_outcome_is_looked_up_after_stop(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    1 stop                      > STOPPING\n"
               " 2000 due                       > failed TIMEOUT; send #2 LEAVE\n"
               "      is returning\n"
               "      next 4000..4000\n"
               " 2001 #2 owner me 7 for 14000   > send #3 RELEASE 7\n"
               " 2002 #3 released               > given back; INITIAL\n");
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE            > failed STORE\n"
               "    6 stop                      > STOPPING; send #2 LEAVE\n"
               "    7 #2 owner bob 6 for 9000   > INITIAL\n"
               "      is idle\n");
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE            > failed STORE\n"
               "    6 stop                      > STOPPING; send #2 LEAVE\n"
               " 2006 due                       > failed TIMEOUT; INITIAL\n"
               "      is idle\n");
}

static void unknown_outcome_of_a_chosen_id_is_left_to_expire(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | CHOSEN_ID,
               "    0 start            > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE   > failed STORE\n"
               "    6 stop             > INITIAL\n"
               "      is idle\n");
}

/* An answer about nothing unknown leaves nothing to look up. */
static void known_outcome_is_not_looked_up(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start            > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE   > failed STORE\n"
               "  105 due              > send #2 CONTEND\n"
               "  106 #2 owner bob 6 for 9000   > answered; RUNNING\n"
               "  107 stop             > INITIAL\n"
               "      is idle\n");
}

/* The lost grant and the look at the store cross each other, in any order. */
static void grant_during_the_leave_is_given_back(void **state)
{
    (void)state;
    static const char *const answers[] = {
        " 2002 #2 free                   > send #3 RELEASE 7\n",
        " 2002 #2 owner bob 8 for 9000   > send #3 RELEASE 7\n",
        " 2002 #2 owner me 7 for 9000    > send #3 RELEASE 7\n",
        " 2002 #2 fails STORE            > failed STORE\n",
    };
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct machine m;
        machine_init(&m, HANDLE_CONTENDER, PROMPT, 30000);
        play(&m, "    0 start                     > STARTING; send #1 CONTEND\n"
                 "    1 stop                      > STOPPING\n"
                 " 2000 due                       > failed TIMEOUT; send #2 LEAVE\n"
                 " 2001 #1 granted 7              > -\n"
                 "      next 4000..4000\n");
        play(&m, answers[i]);
        if (m.sent_last == 2)
            play(&m, " 2052 due                       > send #3 RELEASE 7\n");
        play(&m, " 2100 #3 released               > given back; INITIAL\n"
                 "      is idle\n");
    }
}

/* Not to be trusted with more than one lease: the store tells us of a spent tenure of ours. */
static void spent_token_found_by_the_leave_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON " 5000 due                      > send #2 RENEW 7\n"
                   " 5001 #2 lost                  > lost EVICTED; owns nothing; "
                   "call released EVICTED; send #3 RELEASE 7\n"
                   " 5002 #3 released              > given back; send #4 CONTEND\n"
                   " 5003 #4 fails STORE           > failed STORE\n"
                   " 5004 stop                     > STOPPING; send #5 LEAVE\n"
                   " 5005 #5 owner me 7 for 9000   > send #6 RELEASE 7\n"
                   " 5006 #6 released              > given back; INITIAL\n");
}

/* Hints are no reason to release more often. */
static void hint_while_returning_changes_nothing(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               WON_AND_STOPPED " 1001 hint             > -\n"
                               " 1002 #2 fails STORE   > failed STORE\n"
                               " 1003 hint             > -\n"
                               "      next 1027..1052\n");
}

/* A store that remembers who waits is told by who does not wait any longer; not by the owner, who
 * left the queue by winning. */
/* shows: C7 */
static void waiter_leaves_the_queue(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | QUEUES | CHOSEN_ID,
               "    0 start at 10               > STARTING\n"
               "    5 stop                      > INITIAL\n"
               "   20 start                     > STARTING; send #1 CONTEND\n"
               "   21 #1 owner bob 6 for 9000   > answered; RUNNING\n"
               "   22 stop                      > STOPPING; send #2 LEAVE\n"
               "   23 #2 owner bob 6 for 9000   > INITIAL\n"
               "      is idle\n"
               "   30 start                     > STARTING; send #3 CONTEND\n"
               "   31 stop                      > STOPPING\n"
               "   32 #3 owner bob 6 for 9000   > send #4 LEAVE\n"
               "   33 #4 fails STORE            > failed STORE; INITIAL\n"
               "      is idle\n");
    tell_story(HANDLE_CONTENDER, PROMPT | QUEUES,
               WON_AND_STOPPED " 1002 #2 released  > given back; INITIAL\n"
                               "      is idle\n");
}

/* It had been won just then. */
static void leaving_finds_what_was_won(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | QUEUES,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE            > failed STORE\n"
               "    6 stop                      > STOPPING; send #2 LEAVE\n"
               "    7 #2 owner me 7 for 15000   > send #3 RELEASE 7\n"
               "    8 #3 released               > given back; INITIAL\n"
               "      is idle\n");
}

/* Were the queue left again after each release, a store that contradicts itself would keep us busy
 * for ever. */
static void contradiction_ends(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | QUEUES,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    1 #1 owner bob 6 for 9000   > answered; RUNNING\n"
               "    6 stop                      > STOPPING; send #2 LEAVE\n"
               "    7 #2 owner me 7 for 15000   > send #3 RELEASE 7\n"
               "    8 #3 lost                   > was gone; INITIAL\n"
               "      is idle\n");
}

/* Another request was under way when an older grant came: its outcome is looked up, too. */
static void overtaken_request_is_looked_up(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start             > STARTING; send #1 CONTEND\n"
               " 2000 due               > failed TIMEOUT\n"
               " 2100 due               > send #2 CONTEND\n"
               " 2101 stop              > STOPPING\n"
               " 2102 #1 granted 7      > send #3 RELEASE 7\n"
               " 2103 #3 released       > given back; send #4 LEAVE\n"
               " 2104 #4 owner me 8     > send #5 RELEASE 8\n"
               " 2105 #5 released       > given back; INITIAL\n"
               "      is idle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(release_names_the_token),
        cmocka_unit_test(release_of_a_lost_tenure_is_as_good),
        cmocka_unit_test(release_is_tried_three_times),
        cmocka_unit_test(late_answer_to_a_release_is_good_enough),
        cmocka_unit_test(later_tenure_is_given_back_too),
        cmocka_unit_test(later_tenure_ends_the_pause_between_releases),
        cmocka_unit_test(grant_after_stop_is_given_back),
        cmocka_unit_test(grant_out_of_the_blue_is_given_back),
        cmocka_unit_test(contradiction_ends),
        cmocka_unit_test(overtaken_request_is_looked_up),
        cmocka_unit_test(answer_to_the_last_request_ends_the_stop),
        cmocka_unit_test(unknown_outcome_is_looked_up_after_stop),
        cmocka_unit_test(unknown_outcome_of_a_chosen_id_is_left_to_expire),
        cmocka_unit_test(known_outcome_is_not_looked_up),
        cmocka_unit_test(grant_during_the_leave_is_given_back),
        cmocka_unit_test(spent_token_found_by_the_leave_is_given_back),
        cmocka_unit_test(waiter_leaves_the_queue),
        cmocka_unit_test(leaving_finds_what_was_won),
        cmocka_unit_test(hint_while_returning_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
