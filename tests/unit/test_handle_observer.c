/* test_handle_observer.c: what an observer is told. unit/machine.h says how to read the stories. */
#include "unit/machine.h"

#define SEEN                                            \
    "    0 start         > STARTING; send #1 READ\n"    \
    "    3 #1 owner x 7 for 9000 > answered; RUNNING\n" \
    "    3 changed       > call changed\n"

/* It reads, and never contends or owns, whatever the answer says. */
static void reads_and_tells(void **state)
{
    (void)state;
    tell_story(HANDLE_OBSERVER, 0,
               SEEN "    4 done          > -\n"
                    "      next 8212..8551\n"
                    "10003 due           > send #2 READ\n"
                    "10004 #2 free       > answered\n"
                    "10004 changed       > call changed\n"
                    "10005 done          > -\n"
                    "      next 20004..20004\n"
                    "20004 due           > send #3 READ\n"
                    "20005 #3 owner me 9 for 5000 > answered\n");
}

/* A list of all mutexes may take longer than any other request, and is not asked for twice. */
static void waits_for_a_list(void **state)
{
    (void)state;
    struct machine m;
    machine_init(&m, HANDLE_OBSERVER, 0, 0);
    m.handle.lease.lists = true;
    play(&m, "     0 start         > STARTING; send #1 READ\n"
             "100000 due           > -\n"
             "100001 #1 free       > answered; RUNNING\n");
}

static void changes_become_one(void **state)
{
    (void)state;
    tell_story(HANDLE_OBSERVER, 0,
               SEEN "    5 hint          > send #2 READ\n"
                    "    6 #2 free       > answered\n"
                    "    6 changed       > -\n"
                    "    7 hint          > send #3 READ\n"
                    "    8 #3 owner y 9 for 9000 > answered\n"
                    "    8 changed       > -\n"
                    "    9 done          > call changed\n"
                    "   10 done          > -\n");
}

static void stops_and_closes(void **state)
{
    (void)state;
    tell_story(HANDLE_OBSERVER, 0,
               SEEN "    5 hint          > send #2 READ\n"
                    "    6 #2 free       > answered\n"
                    "    6 changed       > -\n"
                    "    7 destroy       > STOPPING\n"
                    "    8 done          > INITIAL; call closed\n"
                    "    9 done          > -\n"
                    "      next never\n"
                    "      is idle\n");
}

static void stops_while_it_asks(void **state)
{
    (void)state;
    tell_story(HANDLE_OBSERVER, 0,
               SEEN "    4 done          > -\n"
                    "    5 hint          > send #2 READ\n"
                    "    6 stop          > STOPPING\n"
                    "    7 #2 free       > INITIAL\n"
                    "    7 changed       > -\n"
                    "      is idle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_tells),     cmocka_unit_test(waits_for_a_list),
        cmocka_unit_test(changes_become_one),  cmocka_unit_test(stops_and_closes),
        cmocka_unit_test(stops_while_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
