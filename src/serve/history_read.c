/* history_read.c: reading a file of tenures: all of it, in order, or page by page, the newest first. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/owner_list.h"
#include "serve/history_file.h"

/* Whoever can write to the file may have put any number there. */
int64_t history_take_time(sqlite3_stmt *s, int at)
{
    int64_t ms = sqlite3_column_int64(s, at);
    return ms < 0 ? 0 : ms < HISTORY_TIME_MAX ? ms : HISTORY_TIME_MAX;
}

void history_take_row(sqlite3_stmt *s, struct seen_tenure *t)
{
    const char *reason = (const char *)sqlite3_column_text(s, 7);
    *t = (struct seen_tenure){
        .row = sqlite3_column_int64(s, 0),
        .token = (uint64_t)sqlite3_column_int64(s, 3),
        .began_ms = history_take_time(s, 4),
        .began_known = sqlite3_column_int(s, 5) != 0,
        .ended_ms = history_take_time(s, 6),
        .over_by_ms = history_take_time(s, 8),
        .note = (char *)(uintptr_t)sqlite3_column_text(s, 9), /* as long as the statement */
    };
    const char *mutex = (const char *)sqlite3_column_text(s, 1),
               *id = (const char *)sqlite3_column_text(s, 2);
    snprintf(t->mutex, sizeof t->mutex, "%s", mutex != NULL ? mutex : "");
    snprintf(t->id, sizeof t->id, "%s", id != NULL ? id : "");
    t->state = sqlite3_column_type(s, 6) == SQLITE_NULL ? TENURE_ON
               : reason != NULL                         ? TENURE_ENDED
                                                        : TENURE_UNSEEN;
    for (enum simba_reason r = SIMBA_RELEASED; reason != NULL && r <= SIMBA_STALLED; r++) {
        if (strcmp(reason, reason_name(r)) == 0)
            t->reason = r;
    }
}

/* The names, as a list for SQL. */
static char *condition_of(const struct history_query *q)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "(t.ended_ms>=%lld OR t.ended_ms IS NULL)", (long long)q->since_ms);
    for (size_t i = 0; i < q->name_count; i++)
        sqlite3_str_appendf(s, "%s%Q", i == 0 ? " AND t.mutex IN (" : ",", q->names[i]);
    if (q->name_count > 0)
        sqlite3_str_appendf(s, ")");
    if (q->store != NULL)
        sqlite3_str_appendf(s, " AND s.name=%Q", q->store);
    return sqlite3_str_finish(s);
}

/* Recordings of all that is asked for: of all mutexes, or of those that are named. */
static void add_covering(sqlite3_str *s, const struct history_query *q)
{
    static const char named[] = "SELECT 1 FROM recorded_name n WHERE n.recording=r.id";
    sqlite3_str_appendf(s, "(NOT EXISTS (%s)", named);
    for (size_t i = 0; i < q->name_count; i++)
        sqlite3_str_appendf(s, "%sEXISTS (%s AND n.mutex=%Q)", i == 0 ? " OR (" : " AND ", named,
                            q->names[i]);
    sqlite3_str_appendf(s, q->name_count > 0 ? "))" : ")");
}

/* From the end of such a recording to the beginning of the next; also before the first and after the last,
 * while something else was recorded. */
static void add_gaps(sqlite3_str *s, const struct history_query *q)
{
    sqlite3_str_appendf(s, " UNION ALL SELECT NULL,NULL,NULL,NULL,NULL,NULL,next,NULL,EXISTS "
                           "(SELECT 1 FROM recording r WHERE r.store=g.store AND r.began_ms<next "
                           "AND r.last_ms>g.last_ms),NULL,s.name,last_ms,NULL,last_ms FROM (SELECT "
                           "store,last_ms,lead(began_ms) OVER (PARTITION BY store ORDER BY id) AS "
                           "next FROM (SELECT id,store,began_ms,last_ms FROM recording r WHERE ");
    add_covering(s, q);
    sqlite3_str_appendf(
        s,
        " UNION ALL SELECT 0,store,0,min(began_ms) FROM recording GROUP BY store UNION ALL SELECT "
        "%lld,store,max(last_ms),0 FROM recording GROUP BY store)) g JOIN store s ON s.id=g.store "
        "WHERE next>last_ms+1000 AND next>=%lld",
        (long long)INT64_MAX, (long long)q->since_ms);
    if (q->store != NULL)
        sqlite3_str_appendf(s, " AND s.name=%Q", q->store);
}

/* Tenures and gaps in one order; a gap has no mutex. One process records into the file, so what it
 * records now is the last recording. */
static char *query_of(const struct history_query *q, bool with_gaps)
{
    char *condition = condition_of(q);
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s,
                        "SELECT * FROM (SELECT " HISTORY_ROW
                        ",s.name,(SELECT max(last_ms) FROM recording r WHERE r.store=t.store) AS "
                        "last_ms,t.store=(SELECT store FROM recording ORDER BY id DESC LIMIT 1),"
                        "t.began_ms AS at FROM tenure t JOIN store s ON s.id=t.store WHERE %s )",
                        condition != NULL ? condition : "0");
    if (with_gaps)
        add_gaps(s, q);
    sqlite3_str_appendf(s, " ORDER BY at, 1");
    sqlite3_free(condition);
    return sqlite3_str_finish(s);
}

static void tell_row(struct history *h, sqlite3_stmt *s, history_tenure_fn *tenure,
                     history_gap_fn *gap, void *data)
{
    struct seen_tenure t;
    const char *store = (const char *)sqlite3_column_text(s, 10);
    int64_t last_ms = history_take_time(s, 11);
    if (sqlite3_column_type(s, 0) == SQLITE_NULL) {
        assert(gap != NULL); /* else they are not asked for */
        gap(data, &(struct history_gap){.from_ms = last_ms,
                                        .to_ms = history_take_time(s, 6),
                                        .store = store,
                                        .is_partial = sqlite3_column_int(s, 8) != 0});
        return;
    }
    history_take_row(s, &t);
    bool is_recorded = h->is_recorded && sqlite3_column_int(s, 12) != 0;
    if (t.state == TENURE_ON && !is_recorded) {
        t.state = TENURE_UNSEEN;
        t.ended_ms = last_ms > t.began_ms ? last_ms : t.began_ms;
    }
    tenure(data, &t, store);
}

int history_read(struct history *h, const struct history_query *q, history_tenure_fn *tenure,
                 history_gap_fn *gap, void *data)
{
    char *sql = query_of(q, gap != NULL);
    sqlite3_stmt *s = sql != NULL ? history_prepare(h, sql) : NULL;
    int step = SQLITE_ERROR;
    while (s != NULL && (step = sqlite3_step(s)) == SQLITE_ROW)
        tell_row(h, s, tenure, gap, data);
    if (step != SQLITE_DONE)
        history_fail(h);
    sqlite3_finalize(s);
    sqlite3_free(sql);
    return step == SQLITE_DONE ? 0 : -1;
}

#define STEPS 1000 /* of SQLite, so often the time is asked for */

static int is_over(void *until)
{
    return simba_now() >= *(const int64_t *)until;
}

#define PAGE_ORDER                                                                              \
    " AND t.ended_ms>=?2 AND t.ended_ms<=?3 AND (t.ended_ms,t.id)<(?3,?4) ORDER BY t.ended_ms " \
    "DESC,t.id DESC LIMIT ?6"

int history_read_page(struct history *h, const struct history_page *p, history_tenure_fn *tenure,
                      void *data)
{
    /* Two, so that each walks along its own index, which whoever records has made. */
    static const char of_all[] =
        "SELECT " HISTORY_ROW " FROM tenure t INDEXED BY tenure_by_store WHERE ?1 IS NULL AND "
        "t.store=(SELECT id FROM store "
        "WHERE name=?5)" PAGE_ORDER;
    static const char of_one[] =
        "SELECT " HISTORY_ROW " FROM tenure t INDEXED BY tenure_by_store_mutex WHERE t.mutex=?1 "
        "AND t.store=(SELECT id FROM store "
        "WHERE name=?5)" PAGE_ORDER;
    sqlite3_stmt *s = history_prepare(h, p->mutex != NULL ? of_one : of_all);
    int step = SQLITE_ERROR;
    struct seen_tenure t;
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, p->mutex, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, p->since_ms);
    sqlite3_bind_int64(s, 3, p->before_ms);
    sqlite3_bind_int64(s, 4, p->before_row);
    sqlite3_bind_text(s, 5, p->store, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 6, (int64_t)p->limit);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        if (p->until != 0) /* from here on: whoever asks for the next page is to get on */
            sqlite3_progress_handler(h->db, STEPS, is_over, (void *)(uintptr_t)&p->until);
        history_take_row(s, &t);
        tenure(data, &t, p->store);
    }
    sqlite3_progress_handler(h->db, 0, NULL, NULL);
    if (step != SQLITE_DONE)
        history_fail(h);
    sqlite3_finalize(s);
    return step == SQLITE_DONE ? 0 : step == SQLITE_INTERRUPT ? 1 : -1;
}

int history_read_gaps(struct history *h, const char *store, int64_t since_ms, history_gap_fn *gap,
                      void *data)
{
    sqlite3_stmt *s = history_prepare(
        h,
        "WITH whole AS (SELECT id,began_ms,last_ms FROM recording r WHERE store=(SELECT id FROM "
        "store WHERE name=?1) AND NOT EXISTS (SELECT 1 FROM recorded_name n WHERE "
        "n.recording=r.id)) SELECT 0,min(began_ms) FROM whole UNION ALL SELECT * FROM (SELECT "
        "last_ms,next FROM (SELECT last_ms,lead(began_ms) OVER (ORDER BY id) AS next FROM whole) "
        "WHERE next>last_ms+1000 AND next>=?2 ORDER BY next DESC LIMIT ?3)");
    int step = SQLITE_ERROR;
    if (s == NULL)
        return -1;
    sqlite3_bind_text(s, 1, store, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, since_ms);
    sqlite3_bind_int(s, 3, HISTORY_GAPS_MAX);
    while ((step = sqlite3_step(s)) == SQLITE_ROW)
        gap(data, &(struct history_gap){.from_ms = history_take_time(s, 0),
                                        .to_ms = history_take_time(s, 1),
                                        .store = store});
    if (step != SQLITE_DONE)
        history_fail(h);
    sqlite3_finalize(s);
    return step == SQLITE_DONE ? 0 : -1;
}

int history_count_stores(struct history *h)
{
    return (int)history_ask_number(h, "SELECT count(*) FROM store");
}

void seen_tenure_json(struct json_buffer *t, const struct seen_tenure *tenure, const char *store)
{
    static const char *const states[] = {"held", "ended", "unseen"};
    bool is_ended = tenure->state == TENURE_ENDED, is_unseen = tenure->state == TENURE_UNSEEN;
    json_buffer_add(t, "{");
    json_buffer_string_of(t, "mutex", tenure->mutex);
    json_buffer_string_of(t, "state", states[tenure->state]);
    json_buffer_string_of(t, "holder", tenure->id);
    json_buffer_token_of(t, "token", tenure->token);
    json_buffer_number_of(t, "began_ms", true, tenure->began_ms);
    json_buffer_bool_of(t, "began_known", tenure->began_known);
    json_buffer_number_of(t, "ended_ms", is_ended, tenure->ended_ms);
    json_buffer_string_of(t, "reason", is_ended ? reason_name(tenure->reason) : NULL);
    json_buffer_number_of(t, "last_seen_ms", is_unseen, tenure->ended_ms);
    json_buffer_number_of(t, "over_by_ms", is_unseen && tenure->over_by_ms != 0,
                          tenure->over_by_ms);
    json_buffer_string_of(t, "note", tenure->note);
    if (store != NULL)
        json_buffer_string_of(t, "store", store);
    json_buffer_add(t, "}");
}
