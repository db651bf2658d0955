/* test_handle_locker.c: what the caller of a locker gets, exactly one result per call.
 * unit/machine.h says how to read the stories. */
#include "unit/machine.h"

#define HELD                                  \
    "    0 acquire       > send #1 CONTEND\n" \
    "    3 #1 granted 7  > owns 7 until 14838; result OK\n"

static void lock_and_unlock(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 5000 due           > send #2 RENEW 7\n"
                    " 5001 #2 renewed    > owns 7 until 19838\n"
                    " 6000 release       > owns nothing; send #3 RELEASE 7\n"
                    " 6001 #3 released   > given back; result OK\n"
                    "      is idle\n"
                    "      next never\n"
                    " 7000 acquire       > send #4 CONTEND\n"
                    " 7001 #4 granted 9  > owns 9 until 21838; result OK\n");
}

static void waits_for_another(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire                  > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               " 4000 hint                     > send #2 CONTEND\n"
               " 4001 #2 granted 7             > owns 7 until 18838; result OK\n");
}

static void try_is_one_question(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once             > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered; result HELD\n"
               "      is idle\n"
               "   10 acquire once             > send #2 CONTEND\n"
               "   13 #2 granted 7             > owns 7 until 14848; result OK\n");
}

/* The outcome of the one question is unknown: it is looked up, the caller need not wait. */
/* shows: C9 */
static void try_that_is_not_answered(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once             > send #1 CONTEND\n"
               " 2000 due                      > failed TIMEOUT; result STORE; send #2 LEAVE\n"
               " 2001 #2 owner me 7 for 14000  > send #3 RELEASE 7\n"
               " 2002 #3 released              > given back\n"
               "      is idle\n"
               " 3000 acquire once             > send #4 CONTEND\n"
               " 3001 #4 fails DENIED          > failed DENIED; result DENIED; send #5 LEAVE\n");
}

/* shows: C9 */
static void timeout_of_the_caller(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1500       > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               "      next 1500..1500\n"
               " 1499 due                      > -\n"
               " 1500 due                      > result TIMEOUT\n"
               "      is idle\n"
               "      next never\n");
}

/* Nobody owns it, and the store grants it to nobody for longer than a try lasts: that is no other's
 * tenure. */
static void nobody_may_own_it_yet(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once                 > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 16000  > answered; result NOTYET\n"
               "      is idle\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1500           > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 16000  > answered\n"
               " 1500 due                          > result NOTYET\n");
    /* What was said last counts. */
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1500           > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 16000  > answered\n"
               "  500 hint                         > send #2 CONTEND\n"
               "  503 #2 owner bob 6 for 9000      > answered\n"
               " 1500 due                          > result TIMEOUT\n");
}

/* It is reserved for a moment: a try waits for the end of that, as far as its time goes. */
static void try_waits_for_the_end_of_a_reservation(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once                > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 100   > answered\n"
               "  110 hint                        > send #2 CONTEND\n"
               "  113 #2 granted 7                > owns 7 until 14948; result OK\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once                > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 100   > answered\n"
               "  110 hint                        > send #2 CONTEND\n"
               "  113 #2 owner bob 6 for 9000     > answered; result HELD\n"
               "      is idle\n");
    /* Free by now, and another may have been quicker. */
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once                > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 0     > answered\n"
               "   53 due                         > send #2 CONTEND\n"
               "   54 #2 granted 7                > owns 7 until 14891; result OK\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire once                > send #1 CONTEND\n"
               "    3 #1 owner nobody 0 for 100   > answered\n"
               "  110 hint                        > send #2 CONTEND\n"
               " 3250 due                         > failed TIMEOUT; result STORE; send #3 LEAVE\n");
}

/* Whether the mutex is taken or the store is down makes a difference to the caller. */
static void timeout_says_what_is_wrong_with_the_store(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, CHOSEN_ID,
               "    0 acquire until 1500  > send #1 CONTEND\n"
               "    3 #1 fails DENIED     > failed DENIED\n"
               " 1500 due                 > result DENIED\n"
               "      is idle\n");
}

static void timeout_before_the_answer(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1500  > send #1 CONTEND\n"
               " 1500 due                 > result STORE\n"
               "      is contending\n"
               " 1600 #1 granted 7        > send #2 RELEASE 7\n"
               " 1601 #2 released         > given back\n"
               "      is idle\n");
    /* Both at once: the timeout was first. */
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1500  > send #1 CONTEND\n"
               " 1500 #1 granted 7        > result STORE; send #2 RELEASE 7\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 2500  > send #1 CONTEND\n"
               " 2000 due                 > failed TIMEOUT\n"
               " 2500 due                 > result STORE; send #2 LEAVE\n");
}

/* The question of an earlier call is still with the store: its answer serves the next one. */
static void next_call_takes_over_the_question(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 500  > send #1 CONTEND\n"
               "  500 due                > result STORE\n"
               "  600 acquire            > -\n"
               "  700 #1 granted 7       > owns 7 until 14838; result OK\n");
}

static void no_try_can_mend_a_refusal(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, CHOSEN_ID,
               "    0 acquire         > send #1 CONTEND\n"
               "    3 #1 fails STORE  > failed STORE\n"
               "  103 due             > send #2 CONTEND\n"
               "  104 #2 fails INVAL  > failed INVAL; result INVAL\n"
               "      is idle\n");
}

/* The caller is still inside: nothing is sent until it comes out, and then it hears that its
 * work was not protected to the end. */
static void loss_while_held(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD "14838 due           > lost EXPIRED; owns nothing; call released EXPIRED\n"
                    "14839 done          > -\n"
                    "      is ended\n"
                    "      next never\n"
                    "20000 release       > result LOST; send #2 RELEASE 7\n"
                    "20001 #2 released   > given back\n"
                    "      is idle\n");
    tell_story(HANDLE_LOCKER, 0,
               HELD " 5000 due           > send #2 RENEW 7\n"
                    " 5001 #2 lost       > lost EVICTED; owns nothing; call released EVICTED\n"
                    " 5002 done          > -\n"
                    " 6000 release       > result LOST; send #3 RELEASE 7\n"
                    " 6001 #3 lost       > was gone\n"
                    "      is idle\n");
    /* It comes out just then: it hears that from the result, no callback is needed. */
    tell_story(HANDLE_LOCKER, 0,
               HELD "14838 release       > lost EXPIRED; owns nothing; result LOST; "
                    "send #2 RELEASE 7\n");
}

/* on_released is still running when the caller is out, and even in again. */
/* shows: C4 */
static void loss_is_reported_before_anything_is_given_back(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD "14838 due           > lost EXPIRED; owns nothing; call released EXPIRED\n"
                    "15000 release       > result LOST\n"
                    "      is ended\n"
                    "15001 acquire until 90000  > -\n"
                    "      next 90000..90000\n"
                    "20000 done          > send #2 RELEASE 7\n"
                    "20001 #2 released   > given back; send #3 CONTEND\n"
                    "20002 #3 granted 8  > owns 8 until 34839; result OK\n"
                    "34839 due           > lost EXPIRED; owns nothing; call released EXPIRED\n");
}

/* One exchange, not three: the caller is free, the machine goes on by itself. */
/* shows: C9 */
static void release_while_the_store_fails(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 release          > owns nothing; send #2 RELEASE 7\n"
                    " 1001 #2 fails DENIED  > failed DENIED; result STORE\n"
                    " 1051 due              > send #3 RELEASE 7\n"
                    " 3051 due              > failed TIMEOUT\n"
                    " 3060 acquire          > -\n"
                    " 3151 due              > send #4 RELEASE 7\n"
                    " 3152 #4 released      > given back; send #5 CONTEND\n");
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 release          > owns nothing; send #2 RELEASE 7\n"
                    " 3000 due              > failed TIMEOUT; result STORE\n"
                    " 3050 due              > send #3 RELEASE 7\n"
                    " 3060 acquire once     > -\n"
                    " 3061 #3 fails STORE   > failed STORE; result STORE\n"
                    " 3161 due              > send #4 RELEASE 7\n"
                    " 3162 #4 fails STORE   > failed STORE\n"
                    "      is idle\n");
}

static void release_of_a_tenure_that_is_gone(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 release   > owns nothing; send #2 RELEASE 7\n"
                    " 1001 #2 lost   > was gone; result LOST\n");
}

/* What became of the last release is no answer to the next acquire. */
static void loss_at_release_is_reported_once(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 release             > owns nothing; send #2 RELEASE 7\n"
                    " 1001 #2 fails STORE      > failed STORE; result STORE\n"
                    " 1010 acquire until 2000  > -\n"
                    " 1051 due                 > send #3 RELEASE 7\n"
                    " 1052 #3 lost             > was gone\n"
                    " 1102 due                 > send #4 CONTEND\n"
                    " 2000 due                 > result STORE\n");
}

/* A try asks the store itself; an answer to an older question is not its answer. */
static void try_asks_anew(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 500       > send #1 CONTEND\n"
               "  500 due                     > result STORE\n"
               " 1000 acquire once            > -\n"
               " 1001 #1 owner bob 6 for 900  > send #2 CONTEND\n"
               " 1002 #2 owner bob 6 for 900  > answered; result HELD\n");
}

/* shows: C9 */
static void close_while_waiting(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire                  > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               "  100 close                    > result CANCELED; call closed\n"
               "  101 done                     > -\n"
               "      is idle\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire                  > send #1 CONTEND\n"
               "    1 close                    > result CANCELED\n"
               "    3 #1 granted 7             > send #2 RELEASE 7\n"
               "    4 #2 released              > given back; call closed\n"
               "    5 done                     > -\n");
}

/* The client is closed, but somebody works under the lock: it is kept until he comes out. */
/* shows: C4 */
static void close_while_held(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 close         > -\n"
                    "      is holding\n"
                    " 5000 due           > send #2 RENEW 7\n"
                    " 5001 #2 renewed    > owns 7 until 19838\n"
                    " 6000 release       > owns nothing; send #3 RELEASE 7\n"
                    " 6001 #3 released   > given back; result OK; call closed\n"
                    " 6002 done          > -\n");
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 close         > -\n"
                    "14838 due           > lost EXPIRED; owns nothing; call released EXPIRED\n"
                    "14839 done          > -\n"
                    "20000 release       > result LOST; send #2 RELEASE 7\n"
                    "20001 #2 released   > given back; call closed\n");
}

/* Who destroys a locker says that nobody works under it. */
static void destroy_while_held(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 close         > -\n"
                    " 1001 destroy       > owns nothing; send #2 RELEASE 7\n"
                    " 1002 #2 released   > given back; call closed\n"
                    " 1003 done          > -\n");
    tell_story(HANDLE_LOCKER, 0,
               HELD "14838 due           > lost EXPIRED; owns nothing; call released EXPIRED\n"
                    "15000 destroy       > -\n"
                    "15001 done          > send #2 RELEASE 7\n"
                    "15002 #2 released   > given back; call closed\n");
}

static void close_while_releasing(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               HELD " 1000 release       > owns nothing; send #2 RELEASE 7\n"
                    " 1001 close         > -\n"
                    " 1002 #2 released   > given back; result OK; call closed\n");
}

static void close_while_free(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 close  > call closed\n"
               "    1 done   > -\n");
}

/* Nobody polled: the caller looked at the clock by itself. */
/* shows: C8 */
static void caller_gives_up(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1000       > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               "  999 abandon                  > -\n"
               "      is idle\n"
               " 1000 acquire until 2000       > send #2 CONTEND\n"
               " 1500 abandon                  > -\n"
               " 1501 #2 granted 7             > send #3 RELEASE 7\n"
               " 1502 #3 released              > given back\n"
               "      is idle\n");
    tell_story(HANDLE_LOCKER, 0, /* granted before it was seen that the caller had gone */
               HELD "  100 abandon       > owns nothing; send #2 RELEASE 7\n"
                    "  101 #2 released   > given back\n"
                    "      is idle\n");
    tell_story(HANDLE_LOCKER, 0, /* late: the machine has seen the same deadline */
               "    0 acquire until 1000       > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               " 1001 abandon                  > result TIMEOUT\n"
               "      is idle\n");
}

/* The outcome of a request that is under way is found out after the wait. */
/* shows: C8 */
static void caller_is_canceled(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire                  > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               "  500 cancel                   > result CANCELED\n"
               "      is idle\n"
               "      next never\n"
               "  600 acquire                  > send #2 CONTEND\n"
               "  700 cancel                   > result CANCELED\n"
               "  701 #2 granted 7             > send #3 RELEASE 7\n"
               "  702 #3 released              > given back\n"
               "      is idle\n"
               "  800 acquire                  > send #4 CONTEND\n"
               "  801 #4 granted 9             > owns 9 until 15638; result OK\n");
    tell_story(HANDLE_LOCKER, QUEUES, /* a store that remembers who waits hears of it */
               "    0 acquire                  > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               "  500 cancel                   > result CANCELED; send #2 LEAVE\n"
               "  501 #2 owner bob 6 for 8502  > -\n"
               "      is idle\n");
}

/* It does nothing where nobody waits: another result was first. */
static void cancel_comes_too_late(void **state)
{
    (void)state;
    tell_story(HANDLE_LOCKER, 0,
               "    0 cancel  > -\n"
               "      is idle\n");
    tell_story(HANDLE_LOCKER, 0,
               HELD "  100 cancel      > -\n"
                    "  200 release     > owns nothing; send #2 RELEASE 7\n"
                    "  201 cancel      > -\n"
                    "  202 #2 released > given back; result OK\n");
    tell_story(HANDLE_LOCKER, 0,
               "    0 acquire until 1000       > send #1 CONTEND\n"
               "    3 #1 owner bob 6 for 9000  > answered\n"
               " 1001 cancel                   > result TIMEOUT\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caller_gives_up),
        cmocka_unit_test(caller_is_canceled),
        cmocka_unit_test(cancel_comes_too_late),
        cmocka_unit_test(lock_and_unlock),
        cmocka_unit_test(waits_for_another),
        cmocka_unit_test(try_is_one_question),
        cmocka_unit_test(try_that_is_not_answered),
        cmocka_unit_test(timeout_of_the_caller),
        cmocka_unit_test(nobody_may_own_it_yet),
        cmocka_unit_test(try_waits_for_the_end_of_a_reservation),
        cmocka_unit_test(timeout_says_what_is_wrong_with_the_store),
        cmocka_unit_test(timeout_before_the_answer),
        cmocka_unit_test(next_call_takes_over_the_question),
        cmocka_unit_test(no_try_can_mend_a_refusal),
        cmocka_unit_test(loss_while_held),
        cmocka_unit_test(loss_is_reported_before_anything_is_given_back),
        cmocka_unit_test(release_while_the_store_fails),
        cmocka_unit_test(release_of_a_tenure_that_is_gone),
        cmocka_unit_test(loss_at_release_is_reported_once),
        cmocka_unit_test(try_asks_anew),
        cmocka_unit_test(close_while_waiting),
        cmocka_unit_test(close_while_held),
        cmocka_unit_test(destroy_while_held),
        cmocka_unit_test(close_while_releasing),
        cmocka_unit_test(close_while_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
