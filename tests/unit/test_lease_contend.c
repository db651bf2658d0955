/* test_lease_contend.c: how a mutex is won: asking, waiting, lost answers, late answers.
 * unit/machine.h says how to read the stories. */
#include "unit/machine.h"

static void free_mutex_is_won_at_the_first_try(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               "      next 2000..2000\n"
               "    3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               "      is holding\n"
               "      next 4500..5000\n");
}

static void first_try_waits_for_the_initial_delay(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start at 700   > STARTING\n"
               "      is contending\n"
               "      next 700..700\n"
               "  699 due            > -\n"
               "  700 due            > send #1 CONTEND\n");
}

/* From a little before the end of the other's lease to one second after it. Who comes a little
 * early tries again after the end. */
/* shows: C7 */
static void loser_tries_again_when_the_lease_ends(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    4 #1 owner bob 6 for 9000   > answered; RUNNING\n"
               "      next 8800..10000\n"
               " 8799 due                       > -\n"
               "10000 due                       > send #2 CONTEND\n"
               "10001 #2 owner bob 6 for 100    > answered\n"
               "      next 10100..11100\n"
               "11100 due                       > send #3 CONTEND\n"
               "11101 #3 granted 7              > owns 7 until 25938; call acquired\n");
}

/* Nobody owns it, and yet it was not granted: the store says that it cannot be, for a while, or
 * somebody released it in this very moment. */
static void free_but_not_granted_is_asked_again_soon(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                       > STARTING; send #1 CONTEND\n"
               "    4 #1 free                     > answered; RUNNING\n"
               "      next 29..54\n"
               "   54 due                         > send #2 CONTEND\n"
               "   60 #2 owner nobody 0 for 500   > answered\n"
               "      next 354..1554\n"
               " 1554 due                         > send #3 CONTEND\n"
               " 1560 #3 owner bob 6              > answered\n"
               "      next 1580..2560\n");
}

/* shows: C7 */
static void store_that_fails_is_asked_less_and_less_often(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start               > STARTING; send #1 CONTEND\n"
               "    5 #1 fails STORE      > failed STORE\n"
               "      next 55..105\n"
               "  105 due                 > send #2 CONTEND\n"
               "  110 #2 fails DENIED     > failed DENIED\n"
               "      next 210..310\n"
               "  310 due                 > send #3 CONTEND\n"
               " 2309 due                 > -\n"
               " 2310 due                 > failed TIMEOUT\n"
               "      next 2510..2710\n"
               " 2710 due                 > send #4 CONTEND\n"
               " 2711 #4 owner bob 6      > answered; RUNNING\n"
               " 3711 due                 > send #5 CONTEND\n"
               " 3712 #5 fails STORE      > failed STORE\n"
               "      next 3762..3812\n");
}

/* The reply of #1 is lost. #2 hears that "me" owns it with a token that we know nothing of: with
 * a generated id that can only be #1. What is left counts from #2, and is renewed at once. */
/* shows: C8 */
static void lost_grant_of_a_generated_id_is_adopted(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               " 2000 due                       > failed TIMEOUT\n"
               " 2100 due                       > send #2 CONTEND\n"
               " 2105 #2 owner me 7 for 14000   > owns 7 until 14958; RUNNING; call acquired\n"
               " 2120 #1 granted 7              > -\n"
               "      next 4760..5100\n");
}

/* An id that somebody chose may be another's, too. Only the answer to the very request that won
 * makes it ours; it counts from when that request was sent. */
/* shows: C8 */
static void lost_grant_of_a_chosen_id_is_somebody_elses(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT | CHOSEN_ID,
               "    0 start                     > STARTING; send #1 CONTEND\n"
               " 2000 due                       > failed TIMEOUT\n"
               " 2100 due                       > send #2 CONTEND\n"
               " 2105 #2 owner me 7 for 14000   > answered; RUNNING\n"
               "      next 15900..17100\n"
               " 2200 #1 granted 7              > owns 7 until 14838; call acquired\n");
}

static void late_grant_is_taken_while_it_is_wanted(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               " 2000 due            > failed TIMEOUT\n"
               " 2100 due            > send #2 CONTEND\n"
               " 2101 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired\n"
               "      next 4500..5000\n"
               " 2102 #2 owner me 7 for 15999   > -\n");
}

/* Later than half the ttl: the next renewal is due at once. */
/* After a stop the store may have been told that we left: what was granted to an earlier life may
 * be over there, and begins nothing in this one. */
/* shows: C8 */
static void grant_of_an_earlier_life_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start          > STARTING; send #1 CONTEND\n"
               " 2000 due            > failed TIMEOUT\n"
               " 2001 stop           > STOPPING; send #2 LEAVE\n"
               " 2002 #2 free        > INITIAL\n"
               " 2100 start          > STARTING; send #3 CONTEND\n"
               " 2101 #1 granted 7   > send #4 RELEASE 7\n"
               " 2102 #3 granted 8   > -\n"
               " 2103 #4 lost        > send #5 RELEASE 8\n"
               " 2104 #5 released    > given back; send #6 CONTEND\n"
               " 2105 #6 granted 9   > owns 9 until 16942; RUNNING; call acquired\n");
}

static void very_late_grant_is_renewed_at_once(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start              > STARTING; send #1 CONTEND\n"
               " 2000 due                > failed TIMEOUT\n"
               " 2100 due                > send #2 CONTEND\n"
               " 4100 due                > failed TIMEOUT\n"
               " 4300 due                > send #3 CONTEND\n"
               " 5000 #1 granted 7       > owns 7 until 14838; RUNNING; call acquired; "
               "send #4 RENEW 7\n");
}

static void grant_that_came_too_late_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start               > STARTING; send #1 CONTEND\n"
               " 1999 #1 granted 7 for 2900   > send #2 RELEASE 7\n"
               "      is returning\n"
               " 2003 #2 released         > given back; send #3 CONTEND\n"
               " 2005 #3 granted 8        > owns 8 until 16841; RUNNING; call acquired\n");
}

static void duplicate_grant_is_old_news(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start           > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 7    > owns 7 until 14838; RUNNING; call acquired\n"
               "    4 #1 granted 7    > -\n"
               " 1000 stop            > owns nothing; STOPPING; call released RELEASED; "
               "send #2 RELEASE 7\n"
               " 1001 #1 granted 7    > -\n"
               " 1002 #2 released     > given back; INITIAL\n"
               " 1003 #1 granted 7    > -\n"
               " 2000 start           > STARTING; send #3 CONTEND\n"
               " 2001 #1 granted 7    > -\n"
               "      next 4000..4000\n"
               " 2002 #3 granted 8    > owns 8 until 16838; RUNNING; call acquired\n"
               " 2003 #1 granted 7    > -\n");
}

/* A grant without a token cannot be renewed: it is not ours. One with the token of a spent
 * tenure of ours is given back, as every sight of a spent token. */
/* A store may tell late that we lead: little is left, and the first renewal comes in time. */
static void short_grant_is_renewed_in_time(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start                  > STARTING; send #1 CONTEND\n"
               "    1 #1 granted 7 for 5000  > owns 7 until 3948; RUNNING; call acquired\n"
               "      next 1085..1250\n"
               " 1250 due                    > send #2 RENEW 7\n"
               " 1251 #2 renewed for 5000    > owns 7 until 5198\n"
               "      next 2335..2500\n");
}

/* The first try waits for its time, whatever the store shouts. */
static void hint_does_not_cut_the_initial_delay(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start at 700  > STARTING\n"
               "  100 hint          > -\n"
               "  700 due           > send #1 CONTEND\n");
}

/* shows: C1 */
static void odd_grants_make_nobody_owner(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start           > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 0    > answered; RUNNING\n"
               "      next 15800..17000\n"
               "17000 due             > send #2 CONTEND\n"
               "17001 #2 granted 7    > owns 7 until 31838; call acquired\n"
               "21999 due             > send #3 RENEW 7\n"
               "22000 #3 lost         > lost EVICTED; owns nothing; call released EVICTED; "
               "send #4 RELEASE 7\n"
               "22001 #4 released     > given back; send #5 CONTEND\n"
               "22002 #5 granted 7    > send #6 RELEASE 7\n"
               "22003 #6 lost         > was gone\n"
               "      is contending\n"
               "      next 22028..22053\n" /* no hurry with a store that contradicts itself */
               "22004 #2 fails STORE  > -\n");
}

/* A store that lost its memory begins again with small tokens. The answer that we wait for is
 * believed; what nobody waits for is not. */
static void store_may_lose_its_memory(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 start            > STARTING; send #1 CONTEND\n"
               "    3 #1 granted 900   > owns 900 until 14838; RUNNING; call acquired\n"
               " 5000 due              > send #2 RENEW 900\n"
               " 5001 #2 lost          > lost EVICTED; owns nothing; call released EVICTED; "
               "send #3 RELEASE 900\n"
               " 5002 #3 lost          > was gone\n"
               " 5052 due              > send #4 CONTEND\n"
               " 5053 #4 granted 1     > owns 1 until 19890; call acquired\n"
               "      is holding\n");
}

static void hint_brings_the_next_try_forward(void **state)
{
    (void)state;
    tell_story(HANDLE_CONTENDER, PROMPT,
               "    0 hint                      > -\n"
               "    0 start                     > STARTING; send #1 CONTEND\n"
               "    4 #1 owner bob 6 for 9000   > answered; RUNNING\n"
               " 3000 hint                      > send #2 CONTEND\n"
               " 3001 hint                      > -\n"
               " 3002 #2 owner bob 6 for 6000   > answered; send #3 CONTEND\n"
               " 3003 #3 owner bob 6 for 6000   > answered\n"
               "      next 8800..10000\n"
               "10100 hint                      > send #4 CONTEND\n");
}

/* Right before the end of the lease, where its owner has renewed or never will, and at its end; where it is
 * free once per ttl; and when hinted. It waits in no queue. */
static void observer_reads_and_never_contends(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, HANDLE_CONTENDER, PROMPT, 30000);
    lease_init(&m.handle.lease, &m.period, LEASE_OBSERVER, "me", false, false, 1);
    play(&m, "    0 start                     > STARTING; send #1 READ\n"
             "    4 #1 owner bob 6 for 9000   > answered; RUNNING\n"
             "      next 8212..8551\n"
             " 8551 due                       > send #2 READ\n"
             " 8552 #2 owner bob 6 for 449    > answered\n"
             "      next 8960..8978\n"
             " 8978 due                       > send #3 READ\n"
             " 8979 #3 owner bob 6 for 22     > answered\n"
             "      next 9000..10000\n"
             "10000 due                       > send #4 READ\n"
             "10001 #4 free                   > answered\n"
             "      next 20001..20001\n"
             "12000 hint                      > send #5 READ\n"
             "12001 #5 owner me 9 for 16000   > answered\n"
             "29000 due                       > send #6 READ\n"
             "29001 #6 fails STORE            > failed STORE\n"
             "      next 29051..29101\n"
             "29101 due                       > send #7 READ\n"
             "29102 stop                      > STOPPING\n"
             "31101 due                       > failed TIMEOUT; INITIAL\n"
             "      is idle\n"
             "      next never\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_mutex_is_won_at_the_first_try),
        cmocka_unit_test(first_try_waits_for_the_initial_delay),
        cmocka_unit_test(loser_tries_again_when_the_lease_ends),
        cmocka_unit_test(free_but_not_granted_is_asked_again_soon),
        cmocka_unit_test(store_that_fails_is_asked_less_and_less_often),
        cmocka_unit_test(lost_grant_of_a_generated_id_is_adopted),
        cmocka_unit_test(lost_grant_of_a_chosen_id_is_somebody_elses),
        cmocka_unit_test(late_grant_is_taken_while_it_is_wanted),
        cmocka_unit_test(grant_of_an_earlier_life_is_given_back),
        cmocka_unit_test(very_late_grant_is_renewed_at_once),
        cmocka_unit_test(grant_that_came_too_late_is_given_back),
        cmocka_unit_test(duplicate_grant_is_old_news),
        cmocka_unit_test(short_grant_is_renewed_in_time),
        cmocka_unit_test(hint_does_not_cut_the_initial_delay),
        cmocka_unit_test(odd_grants_make_nobody_owner),
        cmocka_unit_test(store_may_lose_its_memory),
        cmocka_unit_test(hint_brings_the_next_try_forward),
        cmocka_unit_test(observer_reads_and_never_contends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
