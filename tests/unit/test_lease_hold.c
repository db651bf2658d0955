/* test_lease_hold.c: how a tenure is kept, and how it ends by itself in time.
 * unit/machine.h says how to read the stories. With the defaults a right to act ends 14838 ms
 * after the request that gave it was sent, whenever the answer came. */
#include "unit/machine.h"

#define LOST_BUT_NOT_RELEASED                                                        \
    "    0 start                     > STARTING; send #1 CONTEND\n"                  \
    "    3 #1 granted 7              > owns 7 until 14838; RUNNING; call acquired\n" \
    "14838 due                       > lost EXPIRED; owns nothing; "                 \
    "call released EXPIRED; send #2 RELEASE 7\n"                                     \
    "14839 #2 fails STORE            > failed STORE\n"                               \
    "14889 due                       > send #3 RELEASE 7\n"                          \
    "14890 #3 fails STORE            > failed STORE\n"                               \
    "14990 due                       > send #4 RELEASE 7\n"                          \
    "14991 #4 fails STORE            > failed STORE; send #5 CONTEND\n"

static void tenure_is_renewed_for_ever(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               " 4499 due            > -\n"
               " 5000 due            > send #2 RENEW 7\n"
               "      next 6250..6250\n"
               " 5400 #2 renewed     > owns 7 until 19838\n"
               "      next 9500..10000\n"
               "10000 due            > send #3 RENEW 7\n"
               "10400 #3 renewed     > owns 7 until 24838\n");
}

/* The store may have renewed for less, or an answer may come so late that it adds nothing. */
static void renewal_never_shortens_the_right_to_act(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                 > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7          > owns 7 until 14838; RUNNING; call acquired\n"
               " 5000 due                   > send #2 RENEW 7\n"
               " 5001 #2 renewed for 1000   > -\n"
               "      next 6085..6250\n");
}

/* A store that need not ask anybody answers at once, and may have nothing more to give for a while. */
static void renewals_do_not_go_round_in_a_circle(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                 > STARTING; send #1 CONTEND\n"
               "    0 #1 granted 7 for 3000 > owns 7 until 1968; RUNNING; call acquired\n"
               "  718 due                   > send #2 RENEW 7\n"
               "  718 #2 renewed for 2200   > -\n"
               "      next 743..768\n"
               "  768 due                   > send #3 RENEW 7\n"
               "  768 #3 renewed            > owns 7 until 15606\n"
               "      next 5268..5768\n");
}

/* shows: C6 */
static void pauses_between_attempts_double(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start            > STARTING; send #1 CONTEND\n"
               "    0 #1 granted 7     > owns 7 until 14838; RUNNING; call acquired\n"
               " 5000 due              > send #2 RENEW 7\n"
               " 5000 #2 fails STORE   > failed STORE\n"
               "      next 5025..5050\n"
               " 5050 due              > send #3 RENEW 7\n"
               " 5050 #3 fails STORE   > failed STORE\n"
               "      next 5100..5150\n"
               " 5150 due              > send #4 RENEW 7\n"
               " 6400 due              > failed TIMEOUT\n"
               "      next 6500..6600\n"
               " 6600 due              > send #5 RENEW 7\n"
               " 6600 #5 fails STORE   > failed STORE\n"
               "      next 6800..7000\n"
               " 7000 due              > send #6 RENEW 7\n"
               " 7000 #6 fails STORE   > failed STORE\n"
               "      next 7400..7800\n"
               " 7800 due              > send #7 RENEW 7\n"
               " 7800 #7 fails STORE   > failed STORE\n"
               "      next 8300..8800\n"
               " 8800 due              > send #8 RENEW 7\n"
               " 8800 #8 fails STORE   > failed STORE\n"
               "      next 9300..9800\n"
               " 9800 due              > send #9 RENEW 7\n"
               " 9900 #9 renewed       > owns 7 until 24638\n"
               "14800 due              > send #10 RENEW 7\n"
               "14800 #10 fails STORE  > failed STORE\n"
               "      next 14825..14850\n");
}

/* #2 was given up, but its answer says that the store renewed at 5000 or later. */
/* shows: C6 */
static void late_answer_counts_from_its_own_request(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               " 5000 due            > send #2 RENEW 7\n"
               " 6250 due            > failed TIMEOUT\n"
               " 6300 due            > send #3 RENEW 7\n"
               " 6301 #2 renewed     > owns 7 until 19838\n"
               "      next 7550..7550\n"
               " 6302 #3 renewed     > owns 7 until 21138\n"
               "      next 10800..11300\n"
               " 6303 #2 renewed     > -\n");
}

/* In the pause after the timeout the late answer also saves the next attempt. */
/* shows: C6 */
static void late_answer_ends_the_pause(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               " 5000 due              > send #2 RENEW 7\n"
               " 6250 due              > failed TIMEOUT\n"
               " 6260 #2 renewed       > owns 7 until 19838\n"
               "      next 9500..10000\n"
               " 6261 #2 fails STORE   > -\n"
               "10000 due              > send #3 RENEW 7\n"
               "11250 due              > failed TIMEOUT\n"
               "11300 due              > send #4 RENEW 7\n"
               "12550 due              > failed TIMEOUT\n"
               "12650 due              > send #5 RENEW 7\n"
               "13900 due              > failed TIMEOUT\n"
               "14100 due              > send #6 RENEW 7\n"
               "15350 due              > failed TIMEOUT\n"
               "15400 #3 renewed       > owns 7 until 24838; send #7 RENEW 7\n");
}

/* shows: C1 */
static void tenure_ends_here_before_the_store_can_give_it_away(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               "13800 due            > send #2 RENEW 7\n"
               "      next 14838..14838\n"
               "14837 due            > -\n"
               "14838 due            > lost EXPIRED; owns nothing; call released EXPIRED; "
               "send #3 RELEASE 7\n"
               "      is returning\n");
}

/* The process was stopped for a while. When it wakes, the first thing it reads is a good answer:
 * the clock counts before the news. */
/* shows: C5 */
static void deadline_counts_even_before_a_good_answer(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               "    4 done           > -\n"
               " 5000 due            > send #2 RENEW 7\n"
               "14838 #2 renewed     > lost EXPIRED; owns nothing; call released EXPIRED\n"
               "      is ended\n"
               "      next never\n"
               "14900 #2 renewed     > -\n"
               "15000 done           > send #3 RELEASE 7\n"
               "15001 #3 released    > given back; send #4 CONTEND\n");
}

/* The reply to the renewal was lost, so the store still shows our old tenure. It is over. */
/* shows: C2 */
static void spent_token_is_never_adopted_again(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               LOST_BUT_NOT_RELEASED
               "14992 #5 owner me 7 for 14000   > send #6 RELEASE 7\n"
               "14993 #6 released               > given back; send #7 CONTEND\n"
               "14994 #7 granted 8              > owns 8 until 29831; call acquired\n");
    /* With a chosen id it may just as well be another's. */
    tell_story(HANDLE_CONTENDER, PROMPT | CHOSEN_ID,
               LOST_BUT_NOT_RELEASED "14992 #5 owner me 7 for 14000   > answered\n"
                                     "      next 28791..29991\n");
    /* Unless the store knows. */
    tell_story(HANDLE_CONTENDER, PROMPT | CHOSEN_ID,
               LOST_BUT_NOT_RELEASED "14992 #5 granted 7              > send #6 RELEASE 7\n");
}

static void store_can_end_a_tenure(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               "    4 done           > -\n"
               " 5000 due            > send #2 RENEW 7\n"
               " 5001 #2 lost        > lost EVICTED; owns nothing; call released EVICTED\n"
               "      is ended\n"
               "      next never\n"
               " 5100 #2 lost        > -\n"
               " 5200 hint           > -\n"
               " 9000 done           > send #3 RELEASE 7\n"
               " 9001 #3 lost        > was gone\n"
               " 9051 due            > send #4 CONTEND\n");
}

/* A late answer says that the store gave us a later tenure: then this one must be over there. The
 * later one is given back, but only when the callback has returned. */
static void grant_while_holding_means_eviction(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start            > STARTING; send #1 CONTEND\n"
               " 2000 due              > failed TIMEOUT\n"
               " 2100 due              > send #2 CONTEND\n"
               " 2101 #2 granted 7     > owns 7 until 16938; RUNNING; call acquired\n"
               " 2102 done             > -\n"
               " 2200 #1 granted 9     > lost EVICTED; owns nothing; call released EVICTED\n"
               " 2300 done             > send #3 RELEASE 9\n"
               " 2301 #3 released      > given back; send #4 CONTEND\n");
}

/* The same while on_released runs: the greatest token is the one to give back. */
static void grant_after_the_end_waits_for_the_callback(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, 0,
               "    0 start            > STARTING; send #1 CONTEND\n"
               " 2000 due              > failed TIMEOUT\n"
               " 2100 due              > send #2 CONTEND\n"
               " 2101 #2 granted 7     > owns 7 until 16938; RUNNING; call acquired\n"
               " 2102 done             > -\n"
               "16938 due              > lost EXPIRED; owns nothing; call released EXPIRED\n"
               "17000 #1 granted 9     > -\n"
               "17100 done             > send #3 RELEASE 9\n"
               "17101 #3 released      > given back; send #4 CONTEND\n");
}

static void answers_about_an_earlier_tenure_change_nothing(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               " 5000 due              > send #2 RENEW 7\n"
               "14838 due              > lost EXPIRED; owns nothing; call released EXPIRED; "
               "send #3 RELEASE 7\n"
               "14840 #2 lost          > -\n"
               "14841 #3 released      > given back; send #4 CONTEND\n"
               "14842 #2 lost          > -\n"
               "14843 #4 granted 8     > owns 8 until 29679; call acquired\n"
               "14844 #2 lost          > -\n"
               "14845 #2 renewed       > -\n"
               "14846 #3 released      > -\n"
               "14847 #3 lost          > -\n"
               "14848 #3 fails STORE   > -\n"
               "      next 19341..19841\n");
}

/* A hint may mean that somebody ended our tenure: ask. */
static void hint_while_holding_renews_at_once(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               " 1000 hint           > send #2 RENEW 7\n"
               " 1001 hint           > -\n"
               " 1002 #2 renewed     > owns 7 until 15838; send #3 RENEW 7\n"
               " 1003 #3 lost        > lost EVICTED; owns nothing; call released EVICTED; "
               "send #4 RELEASE 7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenure_is_renewed_for_ever),
        cmocka_unit_test(renewal_never_shortens_the_right_to_act),
        cmocka_unit_test(renewals_do_not_go_round_in_a_circle),
        cmocka_unit_test(pauses_between_attempts_double),
        cmocka_unit_test(late_answer_counts_from_its_own_request),
        cmocka_unit_test(late_answer_ends_the_pause),
        cmocka_unit_test(tenure_ends_here_before_the_store_can_give_it_away),
        cmocka_unit_test(deadline_counts_even_before_a_good_answer),
        cmocka_unit_test(spent_token_is_never_adopted_again),
        cmocka_unit_test(store_can_end_a_tenure),
        cmocka_unit_test(grant_while_holding_means_eviction),
        cmocka_unit_test(grant_after_the_end_waits_for_the_callback),
        cmocka_unit_test(answers_about_an_earlier_tenure_change_nothing),
        cmocka_unit_test(hint_while_holding_renews_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
