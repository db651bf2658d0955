/* scheduler_ticks.c: runs that belong to ticks, which leaders claim in the note of the mutex. What faults do to
 * them is in tests/ticks and in the simulator. */
#include "suite.h"

#include <string.h>

#define PERIOD_MS 100
#define TICKS_MAX 256

/* The ticks that have run, in their order, whoever ran them. */
struct ticks {
    _Atomic int64_t tick[TICKS_MAX];
    atomic_int count;
};

static int note_tick(void *data, const simba_run *run)
{
    struct ticks *t = data;
    int i = atomic_load(&t->count);
    CHECK(i < TICKS_MAX);
    CHECK(simba_run_token(run) != 0);
    atomic_store(&t->tick[i], simba_run_tick(run));
    atomic_store(&t->count, i + 1);
    return 0;
}

static simba_scheduler *schedule(simba_client *s, const char *mutex, uint32_t flags,
                                 struct ticks *t)
{
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    struct simba_handle_options o = lease_long();
    simba_scheduler *x = NULL;
    when.period_ms = PERIOD_MS;
    when.missed = SIMBA_MISSED_ALL;
    when.flags = SIMBA_KEEP_PHASE | flags;
    o.data = t;
    CHECK_OK(simba_scheduler_create(s, mutex, &when, note_tick, &o, &x));
    CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
    return x;
}

static void check_notes_are_kept(simba_client *s)
{
    struct simba_note note;
    if (simba_read_note(s, fresh("none"), PATIENCE_MS, &note, NULL) == SIMBA_EUNSUPPORTED)
        suite_skip("this store keeps no notes");
}

/* Three leaders, one after the other, each stopped in order. Whoever is stopped between a claim and its run leaves
 * that tick out; at least once, the next leader runs it. A run that has ended is not repeated. */
static void pass_on(uint32_t flags)
{
    enum { LEADERS = 3, EACH = 4 };
    static struct ticks t;
    simba_client *s = client_open();
    const char *mutex = fresh("ticks");
    bool is_made_up = flags == SIMBA_AT_LEAST_ONCE;
    check_notes_are_kept(s);
    for (int i = 1; i <= LEADERS; i++) {
        simba_scheduler *x = schedule(s, mutex, flags, &t);
        simba_contender *c = simba_scheduler_contender(x);
        AWAIT(atomic_load(&t.count) >= i * EACH);
        CHECK_OK(simba_contender_stop(c));
        CHECK_OK(simba_contender_wait(c, SIMBA_INITIAL, PATIENCE_MS));
        simba_scheduler_destroy(x);
    }
    int skipped = 0, repeated = 0;
    for (int i = 1; i < atomic_load(&t.count); i++) {
        int64_t step = atomic_load(&t.tick[i]) - atomic_load(&t.tick[i - 1]);
        CHECK(step >= 0 && step % PERIOD_MS == 0);
        repeated += step == 0;
        skipped += step > PERIOD_MS ? (int)(step / PERIOD_MS) - 1 : 0;
    }
    CHECK(repeated == 0);
    CHECK(skipped <= (is_made_up ? 0 : LEADERS));
    client_close(s);
}

static void schedule_ticks_at_most_once(void)
{
    pass_on(0);
}

static void schedule_ticks_at_least_once(void)
{
    pass_on(SIMBA_AT_LEAST_ONCE);
}

/* Somebody else's note is neither overwritten nor taken for a tick. */
static void schedule_ticks_foreign_note(void)
{
    static struct ticks t;
    simba_client *s = client_open();
    const char *mutex = fresh("foreign");
    struct simba_handle_options o = lease_long();
    struct simba_note note;
    simba_locker *l = NULL;
    check_notes_are_kept(s);
    CHECK_OK(simba_locker_create(s, mutex, &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "mine", PATIENCE_MS));
    uint64_t token = simba_locker_token(l);
    CHECK_OK(simba_locker_release(l));
    simba_contender *c = simba_scheduler_contender(schedule(s, mutex, 0, &t));
    CHECK_OK(simba_contender_wait(c, SIMBA_INITIAL, PATIENCE_MS)); /* it gives up by itself */
    CHECK(atomic_load(&t.count) == 0);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(simba_locker_token(l) >= token + 2); /* it was the leader in between */
    CHECK_OK(simba_locker_release(l));
    CHECK_OK(simba_read_note(s, mutex, PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "mine") == 0);
    client_close(s);
}

/* The first run of each tick is not done, and is repeated, by this leader and by the next. */
static int do_at_second_try(void *data, const simba_run *run)
{
    struct ticks *t = data;
    int i = atomic_load(&t->count);
    note_tick(data, run);
    bool is_second = i > 0 && atomic_load(&t->tick[i - 1]) == simba_run_tick(run);
    return is_second ? 0 : SIMBA_ECANCELED;
}

static void schedule_ticks_not_done(void)
{
    static struct ticks t;
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    const char *mutex = fresh("not-done");
    check_notes_are_kept(s);
    o.data = &t;
    for (int i = 1; i <= 2; i++) { /* the second leader has another schedule */
        struct simba_schedule when = SIMBA_SCHEDULE_INIT;
        simba_scheduler *x = NULL;
        when.period_ms = i * PERIOD_MS;
        when.flags = SIMBA_KEEP_PHASE | SIMBA_AT_LEAST_ONCE;
        CHECK_OK(simba_scheduler_create(s, mutex, &when, do_at_second_try, &o, &x));
        CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
        AWAIT(atomic_load(&t.count) >= 2 * i - 1); /* the first time in the middle of a pair */
        CHECK_OK(simba_contender_stop(simba_scheduler_contender(x)));
        CHECK_OK(simba_contender_wait(simba_scheduler_contender(x), SIMBA_INITIAL, PATIENCE_MS));
        simba_scheduler_destroy(x);
    }
    for (int i = 0; i + 1 < atomic_load(&t.count); i += 2)
        CHECK(atomic_load(&t.tick[i]) == atomic_load(&t.tick[i + 1]));
    client_close(s);
}

struct publisher {
    struct ticks ticks;
    simba_contender *c;
    atomic_int code;
};

static int publish_in_work(void *data, const simba_run *run)
{
    struct publisher *p = data;
    atomic_store(&p->code,
                 simba_contender_publish(p->c, simba_run_token(run), "mine", PATIENCE_MS));
    return note_tick(&p->ticks, run);
}

/* The note is what the next leader goes by. */
static void schedule_ticks_keep_the_note(void)
{
    static struct publisher p;
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    struct simba_note note;
    simba_scheduler *x = NULL;
    const char *mutex = fresh("keeps");
    check_notes_are_kept(s);
    o.data = &p;
    when.period_ms = PERIOD_MS;
    when.flags = SIMBA_KEEP_PHASE;
    CHECK_OK(simba_scheduler_create(s, mutex, &when, publish_in_work, &o, &x));
    p.c = simba_scheduler_contender(x);
    CHECK_OK(simba_contender_start(p.c));
    AWAIT(atomic_load(&p.ticks.count) >= 1);
    CHECK(atomic_load(&p.code) == SIMBA_ESTATE);
    CHECK_OK(simba_read_note(s, mutex, PATIENCE_MS, &note, NULL));
    CHECK(strncmp(note.text, "tick 1 ", 7) == 0);
    client_close(s);
}

/* From when on ticks count is known before the first comes. */
static void schedule_cron_starts(void)
{
    static struct ticks t;
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    struct simba_schedule when = SIMBA_SCHEDULE_INIT;
    struct simba_note note = {.token = 0};
    simba_scheduler *x = NULL;
    const char *mutex = fresh("starts");
    check_notes_are_kept(s);
    o.data = &t;
    when.pace = SIMBA_CRON;
    when.cron = "0 0 1 1 *";
    CHECK_OK(simba_scheduler_create(s, mutex, &when, note_tick, &o, &x));
    CHECK_OK(simba_contender_start(simba_scheduler_contender(x)));
    AWAIT(simba_read_note(s, mutex, PATIENCE_MS, &note, NULL) == 0 && note.token != 0);
    CHECK(strstr(note.text, " started ") != NULL);
    client_close(s);
}

/* Before anything is asked of the store. */
static void schedule_cron_refused(void)
{
    static const char *const wrong[] = {"30 3 * *", "0 0 30 2 *", "60 * * * *", "@often", ""};
    simba_client *s = client_open();
    struct simba_handle_options o = lease_long();
    simba_scheduler *x = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct simba_schedule when = SIMBA_SCHEDULE_INIT;
        when.pace = SIMBA_CRON;
        when.cron = wrong[i];
        CHECK_REFUSED(simba_scheduler_create(s, "m", &when, note_tick, &o, &x), SIMBA_EINVAL,
                      "cron");
    }
    client_close(s);
}

const struct test scheduler_ticks_tests[] = {
    {"schedule_ticks_at_most_once", schedule_ticks_at_most_once, ANY_STORE, 0},
    {"schedule_ticks_at_least_once", schedule_ticks_at_least_once, ANY_STORE, 0},
    {"schedule_ticks_not_done", schedule_ticks_not_done, ANY_STORE, 0},
    {"schedule_ticks_keep_the_note", schedule_ticks_keep_the_note, ANY_STORE, 0},
    {"schedule_cron_starts", schedule_cron_starts, ANY_STORE, 0},
    {"schedule_ticks_foreign_note", schedule_ticks_foreign_note, ANY_STORE, 0},
    {"schedule_cron_refused", schedule_cron_refused, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
