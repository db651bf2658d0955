/* notes.c: the table of notes, beside one that others have made, and where it is missing. */
#include <stdlib.h>

#include "help.h"

/* What JVM peers know of the mutex, but for the end of the lease, which renewals move. */
static long long row_of(struct database *d)
{
    return sql_number(d, "SELECT acquired_at+version+13*LENGTH(owner_id) FROM simba_mutex WHERE "
                         "mutex='m'");
}

static bool has_notes(struct database *d)
{
    return sql_number(d,
                      "SELECT COUNT(*) FROM information_schema.tables WHERE "
                      "table_name='simba_note' AND table_schema=%s",
                      sql_is_mysql() ? "DATABASE()" : "current_schema()") == 1;
}

/* Whoever needs a note first, to read or to write it, makes the table; the other one stays as it was. */
static void note_makes_table(bool fences, bool reads_first)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    sql_make_table(&d, fences);
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(!has_notes(&d));
    long long row = row_of(&d);
    if (reads_first) {
        CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
        CHECK(note.token == 0 && has_notes(&d));
    }
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
    note_makes_table(false, true);
}

static void sql_note_jvm4(void)
{
    note_makes_table(true, false);
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

/* Who may not make tables is told what to run. */
static void sql_note_denied(void)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    sql_make_table(&d, true);
    if (sql_is_mysql()) {
        sql_run(&d, "REVOKE CREATE ON %s.* FROM %s, %s@localhost", d.name, d.name, d.name);
    } else {
        sql_run(&d, "ALTER DATABASE %s OWNER TO postgres", d.name);
        sql_run(&d, "REVOKE CREATE ON SCHEMA public FROM public");
    }
    simba_client *s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_REFUSED(simba_read_note(s, "m", PATIENCE_MS, &note, NULL), SIMBA_ESCHEMA, "simba init");
    CHECK_REFUSED(simba_locker_publish(l, "x", PATIENCE_MS), SIMBA_ESCHEMA, "simba init");
    CHECK(simba_locker_is_held(l));
    client_close(s);
    database_drop(&d);
}

/* Each role has a schema of its own before the one that the mutexes are in: the notes are there. */
static void sql_note_two_schemas(void)
{
    struct database d;
    char url[512], name[64];
    struct simba_note note;
    if (sql_is_mysql())
        suite_skip("needs a server that has schemas");
    database_make(&d);
    sql_make_table(&d, true);
    snprintf(name, sizeof name, "%s_o", d.name);
    sql_run(&d, "CREATE ROLE %s LOGIN PASSWORD 'geheim' IN ROLE %s", name, d.name);
    sql_run(&d, "CREATE SCHEMA AUTHORIZATION %s", d.name);
    sql_run(&d, "CREATE SCHEMA AUTHORIZATION %s", name);
    sql_run(&d, "GRANT ALL ON SCHEMA public TO %s", d.name);
    snprintf(url, sizeof url, "postgresql://%s:geheim@127.0.0.1:%d/%s", name, d.port, d.name);
    simba_client *s = open_at(d.url), *other = open_at(url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "shared", PATIENCE_MS));
    CHECK(sql_number(&d, "SELECT COUNT(*) FROM public.simba_note") == 1);
    sql_run(&d, "GRANT SELECT, INSERT, UPDATE ON public.simba_note TO %s", name);
    CHECK_OK(simba_read_note(other, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "shared") == 0);
    CHECK_OK(simba_locker_release(l));
    l = locker(other, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "by the other", PATIENCE_MS));
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "by the other") == 0);
    CHECK(sql_number(&d, "SELECT COUNT(*) FROM pg_class WHERE relname='simba_note'") == 1);
    client_close(s);
    client_close(other);
    sql_run(&d, "DROP OWNED BY %s CASCADE", name);
    sql_run(&d, "DROP ROLE %s", name);
    database_drop(&d);
}

/* ---- what doctor says ---------------------------------------------------------------------- */

struct said {
    enum simba_level level;
    const char *part;
    char grants[1536];
    bool found;
};

static void on_finding(void *data, enum simba_level level, const char *line)
{
    struct said *x = data;
    const char *grants = strstr(line, "GRANT ");
    if (level != x->level || strstr(line, x->part) == NULL)
        return;
    x->found = true;
    snprintf(x->grants, sizeof x->grants, "%s", grants != NULL ? grants : "");
}

static struct said doctor(const char *url, enum simba_level level, const char *part)
{
    struct said x = {.level = level, .part = part};
    struct simba_owner owner;
    simba_client *s = open_at(url);
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner)); /* connected */
    CHECK_OK(simba_diagnose(s, PATIENCE_MS, on_finding, &x));
    if (!x.found)
        suite_fail(__FILE__, __LINE__, part);
    client_close(s);
    return x;
}

static void sql_note_doctor(void)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    sql_make_table(&d, true);
    doctor(d.url, SIMBA_LOG_WARN, "no table simba_note");
    simba_client *s = open_at(d.url);
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    client_close(s);
    struct said all = doctor(d.url, SIMBA_LOG_INFO, "rights: all that are needed");
    CHECK(strstr(all.grants, "simba_mutex") != NULL && strstr(all.grants, "simba_note") != NULL);
    doctor(d.url, SIMBA_LOG_INFO, "table simba_note");
    if (sql_is_mysql()) {
        sql_run(&d,
                "DROP USER %s@localhost; REVOKE ALL ON %s.* FROM %s; GRANT SELECT, INSERT, UPDATE "
                "ON %s.simba_mutex TO %s; GRANT SELECT ON %s.simba_note TO %s",
                d.name, d.name, d.name, d.name, d.name, d.name, d.name);
    } else {
        sql_run(&d, "ALTER TABLE public.simba_note OWNER TO postgres");
        sql_run(&d, "GRANT SELECT ON public.simba_note TO %s", d.name);
    }
    struct said some = doctor(d.url, SIMBA_LOG_WARN, "rights to simba_note are missing");
    CHECK(strstr(some.grants, "simba_note") != NULL);
    sql_run(&d, "%s", some.grants);
    doctor(d.url, SIMBA_LOG_INFO, "table simba_note");
    s = open_at(d.url);
    simba_locker *l = locker(s, "m", NULL, lease_long());
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "now", PATIENCE_MS));
    client_close(s);
    if (sql_is_mysql()) {
        sql_run(&d, "CREATE USER %s@localhost", d.name); /* to be dropped */
    } else {
        sql_run(&d, "CREATE SCHEMA AUTHORIZATION %s", d.name);
        sql_run(&d, "CREATE TABLE %s.simba_note(LIKE public.simba_note)", d.name);
        doctor(d.url, SIMBA_LOG_WARN, "another table simba_note");
    }
    database_drop(&d);
}

/* ---- age ----------------------------------------------------------------------------------- */

struct publication {
    simba_locker *l;
    int code;
};

static void *publish_there(void *data)
{
    struct publication *p = data;
    p->code = simba_locker_publish(p->l, "waited", PATIENCE_MS);
    return NULL;
}

/* A note that had to wait for a lock is as old as its writing, and not as its statement. */
static void sql_note_age(void)
{
    struct database d;
    struct simba_note note;
    database_make(&d);
    simba_client *s = open_at(d.url);
    struct publication p = {.l = locker(s, "m", NULL, lease_long()), .code = SIMBA_ESTORE};
    CHECK_OK(simba_locker_acquire(p.l, PATIENCE_MS));
    int64_t committed = 0;
    for (int64_t until = simba_now() + PATIENCE_MS; p.code == SIMBA_ESTORE;) {
        CHECK(simba_now() < until); /* it waits for a lock no longer than a second */
        sql_run(&d, "BEGIN");
        sql_run(&d, "UPDATE simba_mutex SET version=version WHERE mutex='m'");
        pthread_t thread = spawn(publish_there, &p);
        nap(600);
        committed = simba_now();
        sql_run(&d, "COMMIT");
        join(thread);
    }
    CHECK_OK(p.code);
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(note.written_at >= committed - 2);
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
    {"sql_note_denied", sql_note_denied, SQL_ONLY, 0},
    {"sql_note_two_schemas", sql_note_two_schemas, SQL_ONLY, 0},
    {"sql_note_doctor", sql_note_doctor, SQL_ONLY, 0},
    {"sql_note_age", sql_note_age, SQL_ONLY, 0},
    {"sql_note_waits", sql_note_waits, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
