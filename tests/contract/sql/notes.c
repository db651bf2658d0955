/* notes.c: the table of notes, beside one that others have made, and where it is missing. */
#include <stdlib.h>

#include "help.h"

/* All that JVM peers know of the mutex. */
static long long row_of(struct database *d)
{
    return sql_number(d, "SELECT acquired_at+3*ttl_at+7*transition_at+version+13*LENGTH(owner_id) "
                         "FROM simba_mutex WHERE mutex='m'");
}

static bool has_notes(struct database *d)
{
    return sql_number(d,
                      "SELECT COUNT(*) FROM information_schema.tables WHERE "
                      "table_name='simba_note' AND table_schema=%s",
                      sql_is_mysql() ? "DATABASE()" : "current_schema()") == 1;
}

/* The first note makes the table; the other one stays as it was. */
static void note_makes_table(bool fences)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    sql_make_table(&d, fences);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(!has_notes(&d));
    CHECK_REFUSED(simba_read_note(s, "m", PATIENCE_MS, &note, NULL), SIMBA_ESCHEMA, "simba init");
    long long row = row_of(&d);
    CHECK_OK(simba_locker_publish(l, "first", PATIENCE_MS));
    CHECK(row_of(&d) == row);
    CHECK(has_notes(&d));
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "first") == 0 && note.token == simba_locker_token(l));
    CHECK_OK(simba_locker_release(l));
    sql_run(&d, "DELETE FROM simba_mutex"); /* the note does not hang on the row */
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "first") == 0);
    client_close(s);
    database_drop(&d);
}

static void sql_note_jvm3(void)
{
    note_makes_table(false);
}

static void sql_note_jvm4(void)
{
    note_makes_table(true);
}

static void count_entry(void *data, const struct simba_entry *e)
{
    CHECK(e->note == NULL);
    *(int *)data += strcmp(e->mutex, "m") == 0;
}

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)mutex;
    if (state->after.token != 0)
        atomic_store((_Atomic uint64_t *)data, state->after.token);
}

/* Where tables are not made, all but notes works, on the same connection. */
static void sql_note_no_table(void)
{
    struct database d;
    char url[600];
    struct simba_owner owner;
    struct simba_note note;
    struct simba_metrics before = SIMBA_METRICS_INIT, after = SIMBA_METRICS_INIT;
    struct simba_handle_options o = lease_long(), watches = SIMBA_HANDLE_OPTIONS_INIT;
    simba_observer *w;
    _Atomic uint64_t seen = 0;
    int listed = 0;
    database_make(&d);
    sql_make_table(&d, true);
    snprintf(url, sizeof url, "%s?create=off", d.url);
    simba_client *s = open_at(url);
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner));
    CHECK_OK(simba_metrics_read(s, &before));
    o.note = "nowhere to be kept";
    simba_locker *l = locker(s, "m", NULL, o);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS)); /* after one attempt */
    uint64_t token = simba_locker_token(l);
    CHECK_REFUSED(simba_locker_publish(l, "x", PATIENCE_MS), SIMBA_ESCHEMA, "simba init");
    CHECK_REFUSED(simba_read_note(s, "m", PATIENCE_MS, &note, &owner), SIMBA_ESCHEMA,
                  "no table simba_note");
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner));
    CHECK(owner.token == token);
    CHECK_OK(simba_list(s, NULL, PATIENCE_MS, count_entry, &listed));
    CHECK_OK(simba_list(s, "m", PATIENCE_MS, count_entry, &listed));
    CHECK(listed == 2);
    watches.on_changed = on_changed;
    watches.data = &seen;
    CHECK_OK(simba_observer_create(s, "m", &watches, &w));
    AWAIT(atomic_load(&seen) == token);
    CHECK_OK(simba_observer_note(w, &note));
    CHECK(note.token == 0);
    CHECK(simba_locker_token(l) == token);
    CHECK_OK(simba_metrics_read(s, &after));
    CHECK(after.reconnects == before.reconnects);
    snprintf(url, sizeof url, "%s?create=upgrade", d.url); /* simba init */
    simba_client *init = open_at(url);
    CHECK_OK(simba_read(init, "m", PATIENCE_MS, &owner));
    CHECK(has_notes(&d));
    client_close(init);
    /* The other table has changed as well, and a connection may have to be made anew for that. */
    AWAIT(simba_locker_publish(l, "now", PATIENCE_MS) == 0);
    AWAIT(simba_read_note(s, "m", PATIENCE_MS, &note, &owner) == 0);
    CHECK(strcmp(note.text, "now") == 0 && owner.token == token);
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    database_drop(&d);
}

/* A takeover waits until the note is committed, and a note until a takeover is: another transaction
 * has the row, so the publication waits for it, and then finds another owner. */
static void sql_note_waits(void)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "mine", PATIENCE_MS));
    sql_run(&d, "BEGIN");
    sql_run(&d, "UPDATE simba_mutex SET owner_id='thief' WHERE mutex='m'");
    CHECK_CODE(simba_locker_publish(l, "blocked", PATIENCE_MS), SIMBA_ESTORE);
    sql_run(&d, "COMMIT");
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "mine") == 0);
    int code = simba_locker_publish(l, "too late", PATIENCE_MS);
    CHECK(code == SIMBA_ELOST);
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "mine") == 0);
    client_close(s);
    database_drop(&d);
}

const struct test sql_note_tests[] = {
    {"sql_note_jvm3", sql_note_jvm3, SQL_ONLY, 0},
    {"sql_note_jvm4", sql_note_jvm4, SQL_ONLY, 0},
    {"sql_note_no_table", sql_note_no_table, SQL_ONLY, 0},
    {"sql_note_waits", sql_note_waits, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
