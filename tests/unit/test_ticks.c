/* test_ticks.c: which tick comes next, whoever led before and whatever the clock shows. */
#include "core/ticks.h"

#include "unit/zones.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MINUTE INT64_C(60000)

static struct cron cron;
static struct zone zone;

static int64_t tick_of(const char *text)
{
    int64_t tick;
    if (!tick_read(text, strlen(text), &tick))
        fail_msg("'%s' is no time", text);
    return tick;
}

static struct ticks ticks_of(const char *expression, enum simba_missed missed)
{
    char why[CRON_WHY_SIZE];
    zone_init_utc(&zone);
    assert_int_equal(cron_parse(&cron, expression, why, sizeof why), 0);
    return (struct ticks){.cron = &cron, .zone = &zone, .missed = missed};
}

static struct ticks ticks_every(int64_t period, enum simba_missed missed)
{
    return (struct ticks){.period = period, .missed = missed};
}

static void expect_plan(struct ticks *t, const char *now, const char *planned)
{
    char found[TICK_TEXT_SIZE];
    ticks_plan(t, tick_of(now));
    tick_write(found, t->planned);
    assert_string_equal(found, planned);
}

/* ---- texts --------------------------------------------------------------------------------- */

static void ticks_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t tick;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.001Z", 1},
        {"2026-11-15T03:04:05Z", INT64_C(1794711845000)},
        {"2026-11-15T03:04:05.060Z", INT64_C(1794711845060)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[TICK_TEXT_SIZE];
        assert_int_equal(tick_of(cases[i].text), cases[i].tick);
        tick_write(text, cases[i].tick);
        assert_string_equal(text, cases[i].text);
    }
}

static void what_is_no_tick(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "2026-11-15T03:04:05",
        "2026-11-15 03:04:05Z",
        "2026-11-15T03:04:05z",
        "2026-11-15T03:04:05.1Z",
        "2026-11-15T03:04:05,100Z",
        "2026-1x-15T03:04:05Z",
        "2026-1/-15T03:04:05Z",
        "1969-12-31T23:59:59Z",
        "2026-00-15T03:04:05Z",
        "2026-13-15T03:04:05Z",
        "2026-11-00T03:04:05Z",
        "2026-11-31T03:04:05Z",
        "2026-11-15T24:04:05Z",
        "2026-11-15T03:60:05Z",
        "2026-11-15T03:04:60Z",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t tick;
        assert_false(tick_read(cases[i], strlen(cases[i]), &tick));
    }
}

static void expect_note(const struct ticks *t, bool has_run, const char *expected)
{
    char note[TICKS_NOTE_SIZE] = "";
    assert_int_equal(ticks_note(t, has_run, note), expected != NULL);
    assert_string_equal(note, expected != NULL ? expected : "");
}

static void notes_are_written_and_read(void **state)
{
    (void)state;
    struct ticks t = ticks_every(MINUTE, SIMBA_MISSED_SKIP);
    t.identity = 0x3f9a2c7e;
    t.planned = tick_of("2026-11-15T03:00:00Z");
    expect_note(&t, false, "tick 1 2026-11-15T03:00:00Z claimed 3f9a2c7e");
    expect_note(&t, true, NULL);
    assert_int_equal(ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 3f9a2c7e"), 0);
    assert_int_equal(t.claimed, tick_of("2026-11-15T03:00:00Z"));
    assert_int_equal(t.planned, 0);
    t.planned = 1;
    t.at_least_once = true;
    expect_note(&t, false, "tick 1 1970-01-01T00:00:00.001Z begun 3f9a2c7e");
    expect_note(&t, true, "tick 1 1970-01-01T00:00:00.001Z done 3f9a2c7e");
    assert_int_equal(ticks_begin(&t, "tick 1 1970-01-01T00:00:00.001Z done 3f9a2c7e"), 0);
    assert_int_equal(t.claimed, 1);
    assert_int_equal(ticks_begin(&t, ""), 0);
    assert_int_equal(t.claimed, 0);
}

static void notes_of_others(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "http://10.0.0.7:8080",
        "tick",
        "tick ",
        "tick 1 ",
        "tick tock",
        "tick 2",
        "tick 1 2026-11-15T03:00:00Z",
        "tick 1 2026-11-15T03:00:00Z claimed",
        "tick 1 2026-11-15T03:00:00Z claimed ",
        "tick 1 2026-11-15T03:00:00Z claim 00000000",
        "tick 1 2026-11-15T03:00:00Z claimed 0000000",
        "tick 1 2026-11-15T03:00:00Z claimed 000000000",
        "tick 1 2026-11-15T03:00:00Z claimed 0000000x",
        "tick 1 2026-11-15T03:00:00Z claimed 00000000 ",
        "tick 1  2026-11-15T03:00:00Z claimed 00000000",
        "tick 1 soon claimed 00000000",
    };
    struct ticks t = ticks_every(MINUTE, SIMBA_MISSED_SKIP);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(ticks_begin(&t, cases[i]), SIMBA_ESCHEMA);
    assert_int_equal(ticks_begin(&t, "tick 2 soon"), SIMBA_EUNSUPPORTED);
    assert_int_equal(ticks_begin(&t, "tick 10 2026-11-15"), SIMBA_EUNSUPPORTED);
}

static void schedules_differ(void **state)
{
    (void)state;
    struct ticks t = ticks_of("0 3 * * *", SIMBA_MISSED_ALL);
    uint32_t identity = ticks_identity(&t, NULL);
    assert_int_equal(ticks_identity(&t, "UTC"), identity);
    assert_int_not_equal(ticks_identity(&t, "Europe/Berlin"), identity);
    t = ticks_of(" 0  3-3 * * *", SIMBA_MISSED_SKIP); /* the same, in other words */
    assert_int_equal(ticks_identity(&t, NULL), identity);
    static const char *const others[] = {"1 3 * * *",   "0 4 * * *",   "0 3 2 * *",
                                         "0 3 * 2 *",   "0 3 * * 2",   "0-0 3 1-31 * *",
                                         "0 3 * * 0-6", "*/60 3 * * *"};
    for (size_t i = 0; i < COUNT(others); i++) {
        t = ticks_of(others[i], SIMBA_MISSED_ALL);
        assert_int_not_equal(ticks_identity(&t, NULL), identity);
    }
    t = ticks_every(MINUTE, SIMBA_MISSED_SKIP);
    identity = ticks_identity(&t, NULL);
    t = ticks_every(2 * MINUTE, SIMBA_MISSED_SKIP);
    assert_int_not_equal(ticks_identity(&t, NULL), identity);
}

/* ---- which is next ------------------------------------------------------------------------- */

static void the_first_leader(void **state)
{
    (void)state;
    struct ticks t = ticks_of("0 3 * * *", SIMBA_MISSED_ALL);
    ticks_begin(&t, "");
    expect_plan(&t, "2026-11-15T03:00:00Z", "2026-11-16T03:00:00Z");
    t = ticks_every(5 * MINUTE, SIMBA_MISSED_ALL); /* at once */
    ticks_begin(&t, "");
    expect_plan(&t, "2026-11-15T03:00:01.234Z", "2026-11-15T03:00:01.234Z");
    assert_true(ticks_is_due(&t, tick_of("2026-11-15T03:00:01.234Z")));
}

/* Whatever its clock shows, a leader goes on after what is claimed. */
static void the_next_leader_goes_on(void **state)
{
    (void)state;
    static const enum simba_missed all[] = {SIMBA_MISSED_SKIP, SIMBA_MISSED_ONCE, SIMBA_MISSED_ALL};
    for (size_t i = 0; i < COUNT(all); i++) {
        struct ticks t = ticks_of("0 * * * *", all[i]);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
        expect_plan(&t, "2026-11-15T03:20:00Z", "2026-11-15T04:00:00Z");
        expect_plan(&t, "2026-11-15T02:59:30Z", "2026-11-15T04:00:00Z"); /* 30 s behind */
        expect_plan(&t, "2020-01-01T00:00:00Z", "2026-11-15T04:00:00Z");
        assert_false(ticks_is_due(&t, tick_of("2026-11-15T03:59:59.999Z")));
        assert_true(ticks_is_due(&t, tick_of("2026-11-15T04:00:00Z")));
        t = ticks_every(7 * MINUTE, all[i]);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00.500Z claimed 00000000");
        expect_plan(&t, "2026-11-15T03:01:00Z", "2026-11-15T03:07:00.500Z");
        expect_plan(&t, "2026-11-15T01:00:00Z", "2026-11-15T03:07:00.500Z");
    }
}

static void missed_ticks(void **state)
{
    (void)state;
    static const struct {
        enum simba_missed missed;
        const char *hourly, *every_7m;
    } cases[] = {
        {SIMBA_MISSED_SKIP, "2026-11-15T07:00:00Z", "2026-11-15T06:09:00Z"},
        {SIMBA_MISSED_ONCE, "2026-11-15T06:00:00Z", "2026-11-15T06:02:00Z"},
        {SIMBA_MISSED_ALL, "2026-11-15T04:00:00Z", "2026-11-15T03:07:00Z"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ticks t = ticks_of("0 * * * *", cases[i].missed);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
        expect_plan(&t, "2026-11-15T06:05:00Z", cases[i].hourly);
        t = ticks_every(7 * MINUTE, cases[i].missed);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z done 00000000");
        expect_plan(&t, "2026-11-15T06:05:00Z", cases[i].every_7m);
    }
}

/* Each of them, in order. */
static void all_are_made_up(void **state)
{
    (void)state;
    struct ticks t = ticks_of("*/15 * * * *", SIMBA_MISSED_ALL);
    int64_t now = tick_of("2026-11-15T09:59:59Z"), last = tick_of("2026-11-15T03:00:00Z");
    ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
    int made_up = 0;
    for (; !ticks_plan(&t, now) && ticks_is_due(&t, now); made_up++) {
        assert_int_equal(t.planned, last + 15 * MINUTE);
        last = t.planned;
        ticks_claimed(&t);
        assert_int_equal(t.claimed, last);
    }
    assert_int_equal(made_up, 27);
    assert_int_equal(t.planned, tick_of("2026-11-15T10:00:00Z"));
}

/* Of more than can be made up, the last ones are. */
static void what_is_made_up_has_a_limit(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *now;
        bool dropped;
    } cases[] = {
        {NULL, "2026-11-15T19:40:59Z", false},        {NULL, "2026-11-15T19:41:00Z", true},
        {NULL, "2036-11-15T19:41:00Z", true},         {"* * * * *", "2026-11-15T19:40:59Z", false},
        {"* * * * *", "2026-11-15T19:41:00Z", true},  {"* * * * *", "2027-11-15T19:41:00Z", true},
        {"0 0 * * *", "2029-08-11T00:00:00Z", false}, {"0 0 * * *", "2029-08-12T00:00:00Z", true},
        {"0 0 1 1 *", "2999-08-12T00:00:00Z", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t now = tick_of(cases[i].now), claimed = tick_of("2026-11-15T03:00:00Z");
        struct ticks t = cases[i].expression != NULL
                             ? ticks_of(cases[i].expression, SIMBA_MISSED_ALL)
                             : ticks_every(MINUTE, SIMBA_MISSED_ALL);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
        int64_t next = ticks_after(&t, claimed);
        assert_int_equal(ticks_plan(&t, now), cases[i].dropped);
        assert_int_equal(t.planned == next, !cases[i].dropped);
        int64_t count = 0;
        for (int64_t tick = t.planned; tick <= now; tick = ticks_after(&t, tick))
            count++;
        assert_true(count <= TICKS_MADE_UP_MAX);
        assert_true(!cases[i].dropped || count == TICKS_MADE_UP_MAX);
    }
}

/* A thread that comes late: of several, the last that has come; all in order where all are wanted. */
static void late(void **state)
{
    (void)state;
    static const struct {
        enum simba_missed missed;
        const char *planned;
    } cases[] = {
        {SIMBA_MISSED_SKIP, "2026-11-15T03:03:00Z"},
        {SIMBA_MISSED_ONCE, "2026-11-15T03:03:00Z"},
        {SIMBA_MISSED_ALL, "2026-11-15T03:01:00Z"},
    };
    for (size_t i = 0; i < COUNT(cases) * 2; i++) {
        enum simba_missed missed = cases[i / 2].missed;
        struct ticks t = i % 2 == 0 ? ticks_of("* * * * *", missed) : ticks_every(MINUTE, missed);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
        expect_plan(&t, "2026-11-15T03:00:30Z", "2026-11-15T03:01:00Z");
        assert_true(ticks_is_due(&t, tick_of("2026-11-15T03:01:59Z")));
        assert_int_equal(t.planned, tick_of("2026-11-15T03:01:00Z"));
        assert_true(ticks_is_due(&t, tick_of("2026-11-15T03:03:59Z")));
        assert_int_equal(t.planned, tick_of(cases[i / 2].planned));
    }
}

static void never(void **state)
{
    (void)state;
    struct ticks t = ticks_of("0 0 1 1 *", SIMBA_MISSED_SKIP);
    ticks_begin(&t, "tick 1 9999-12-30T00:00:00Z claimed 00000000");
    assert_false(ticks_plan(&t, tick_of("9999-12-31T00:00:00Z")));
    assert_int_equal(t.planned, CALENDAR_NEVER);
    assert_false(ticks_is_due(&t, tick_of("9999-12-31T00:00:00Z")));
    t = ticks_every(MINUTE, SIMBA_MISSED_SKIP);
    assert_int_equal(ticks_after(&t, CALENDAR_NEVER - 1), CALENDAR_NEVER);
}

/* From when on ticks of cron count is in the note before the first is claimed. */
static void a_schedule_starts(void **state)
{
    (void)state;
    char note[TICKS_NOTE_SIZE];
    struct ticks t = ticks_of("0 3 * * *", SIMBA_MISSED_ALL);
    ticks_begin(&t, "");
    assert_true(ticks_start(&t, tick_of("2026-11-15T12:00:00.500Z"), note));
    assert_string_equal(note, "tick 1 2026-11-15T12:00:00.500Z started 00000000");
    expect_plan(&t, "2026-11-15T12:00:01Z", "2026-11-16T03:00:00Z");
    ticks_begin(&t, note); /* the next leader: nobody was there at three */
    assert_false(ticks_start(&t, tick_of("2026-11-16T09:00:00Z"), note));
    expect_plan(&t, "2026-11-16T09:00:00Z", "2026-11-16T03:00:00Z");
    t = ticks_every(MINUTE, SIMBA_MISSED_ALL);
    ticks_begin(&t, "");
    assert_false(ticks_start(&t, tick_of("2026-11-15T12:00:00Z"), note));
}

/* What another schedule has claimed is not overtaken, but its ticks are not made up for. */
static void a_schedule_that_was_changed(void **state)
{
    (void)state;
    char note[TICKS_NOTE_SIZE];
    struct ticks t = ticks_of("* * * * *", SIMBA_MISSED_ALL);
    assert_int_equal(ticks_begin(&t, "tick 1 2026-11-15T00:00:00Z claimed 12345678"), 0);
    assert_true(ticks_start(&t, tick_of("2026-11-15T15:30:10Z"), note));
    assert_string_equal(note, "tick 1 2026-11-15T15:30:10Z started 00000000");
    expect_plan(&t, "2026-11-15T15:30:10Z", "2026-11-15T15:31:00Z");
    ticks_begin(&t, "tick 1 2026-11-15T15:30:40Z claimed 12345678"); /* a clock that is ahead */
    assert_true(ticks_start(&t, tick_of("2026-11-15T15:30:10Z"), note));
    assert_string_equal(note, "tick 1 2026-11-15T15:30:40Z started 00000000");
    t = ticks_every(MINUTE, SIMBA_MISSED_ALL);
    ticks_begin(&t, "tick 1 2026-11-15T00:00:00Z claimed 12345678");
    assert_false(ticks_start(&t, tick_of("2026-11-15T15:30:10Z"), note));
    expect_plan(&t, "2026-11-15T15:30:10Z", "2026-11-15T15:30:10Z");
    ticks_claimed(&t);
    expect_plan(&t, "2026-11-15T15:30:11Z", "2026-11-15T15:31:10Z");
    ticks_begin(&t, "tick 1 2026-11-15T15:30:40Z claimed 12345678");
    expect_plan(&t, "2026-11-15T15:30:10Z", "2026-11-15T15:30:40.001Z");
}

/* Whatever is to become of missed ones, and although others have come since. */
static void a_tick_that_was_begun(void **state)
{
    (void)state;
    static const enum simba_missed all[] = {SIMBA_MISSED_SKIP, SIMBA_MISSED_ONCE, SIMBA_MISSED_ALL};
    char note[TICKS_NOTE_SIZE];
    for (size_t i = 0; i < COUNT(all) * 2; i++) {
        struct ticks t =
            i % 2 == 0 ? ticks_of("0 * * * *", all[i / 2]) : ticks_every(60 * MINUTE, all[i / 2]);
        bool is_changed = i >= COUNT(all);
        const char *begun = is_changed ? "tick 1 2026-11-15T03:00:00Z begun 12345678"
                                       : "tick 1 2026-11-15T03:00:00Z begun 00000000";
        ticks_begin(&t, begun); /* at most once */
        assert_false(t.is_to_repeat);
        t.at_least_once = true;
        ticks_begin(&t, begun);
        assert_false(ticks_start(&t, tick_of("2026-11-15T09:30:00Z"), note));
        expect_plan(&t, "2026-11-15T09:30:00Z", "2026-11-15T03:00:00Z");
        assert_true(ticks_is_due(&t, tick_of("2026-11-15T09:30:00Z")));
        expect_note(&t, false, "tick 1 2026-11-15T03:00:00Z begun 00000000");
        ticks_claimed(&t);
        expect_note(&t, true, "tick 1 2026-11-15T03:00:00Z done 00000000");
        ticks_claimed(&t);
        ticks_plan(&t, tick_of("2026-11-15T09:30:00Z"));
        assert_true(t.planned > t.claimed);
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z done 00000000");
        assert_false(t.is_to_repeat);
    }
}

/* A leader that takes over is late by up to a lease or so: that is not missed. */
static void a_takeover_misses_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *now, *planned;
    } cases[] = {
        {"2026-11-15T04:00:16Z", "2026-11-15T04:00:00Z"},
        {"2026-11-15T04:00:32Z", "2026-11-15T04:00:00Z"},
        {"2026-11-15T04:00:32.001Z", "2026-11-15T05:00:00Z"},
        {"2026-11-15T07:00:16Z", "2026-11-15T07:00:00Z"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ticks t = ticks_of("0 * * * *", SIMBA_MISSED_SKIP);
        t.grace = 32000;
        ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
        expect_plan(&t, cases[i].now, cases[i].planned);
    }
    struct ticks t = ticks_of("0 * * * *", SIMBA_MISSED_SKIP); /* its own run is too long */
    t.grace = 32000;
    ticks_begin(&t, "tick 1 2026-11-15T03:00:00Z claimed 00000000");
    expect_plan(&t, "2026-11-15T03:10:00Z", "2026-11-15T04:00:00Z");
    ticks_claimed(&t);
    expect_plan(&t, "2026-11-15T05:00:16Z", "2026-11-15T06:00:00Z");
}

static void clocks_that_are_apart(void **state)
{
    (void)state;
    int64_t store = tick_of("2026-11-15T12:00:00Z"), most = TICKS_APART_MS;
    struct ticks t = ticks_every(MINUTE, SIMBA_MISSED_SKIP);
    assert_int_equal(ticks_clock(store + 60 * MINUTE, 0), store + 60 * MINUTE);
    assert_int_equal(ticks_clock(store + most, store), store + most);
    assert_int_equal(ticks_clock(store - most, store), store - most);
    assert_int_equal(ticks_clock(store + most + 1, store), store);
    assert_int_equal(ticks_clock(store - most - 1, store), store);
    assert_int_equal(ticks_begin(&t, ""), 0);
    assert_false(ticks_is_blocked(&t, store));
    t.claimed = store + most;
    assert_false(ticks_is_blocked(&t, store));
    assert_true(ticks_is_blocked(&t, store - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_read_and_written),
        cmocka_unit_test(what_is_no_tick),
        cmocka_unit_test(notes_are_written_and_read),
        cmocka_unit_test(notes_of_others),
        cmocka_unit_test(schedules_differ),
        cmocka_unit_test(the_first_leader),
        cmocka_unit_test(the_next_leader_goes_on),
        cmocka_unit_test(missed_ticks),
        cmocka_unit_test(all_are_made_up),
        cmocka_unit_test(what_is_made_up_has_a_limit),
        cmocka_unit_test(late),
        cmocka_unit_test(never),
        cmocka_unit_test(a_schedule_starts),
        cmocka_unit_test(a_schedule_that_was_changed),
        cmocka_unit_test(a_tick_that_was_begun),
        cmocka_unit_test(a_takeover_misses_nothing),
        cmocka_unit_test(clocks_that_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
