/* perform.c: a job as one statement, in the client library's way not to block: a call either
 * ends or says what it waits for. */
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"

#define COLUMNS 7
#define COLUMNS_WITH_NOTE 10

static int to_uv(int wait)
{
    int events = (wait & MYSQL_WAIT_READ ? UV_READABLE : 0) |
                 (wait & MYSQL_WAIT_WRITE ? UV_WRITABLE : 0) |
                 (wait & MYSQL_WAIT_EXCEPT ? UV_PRIORITIZED : 0);
    return events != 0 ? events : UV_READABLE; /* a timeout is ours to watch */
}

static int to_mysql(int events)
{
    return (events & UV_READABLE ? MYSQL_WAIT_READ : 0) |
           (events & UV_WRITABLE ? MYSQL_WAIT_WRITE : 0) |
           (events & UV_PRIORITIZED ? MYSQL_WAIT_EXCEPT : 0);
}

static int64_t number(const char *text)
{
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static void take_rows(struct sql *s, struct sql_job *job, MYSQL_RES *result)
{
    MYSQL_ROW r;
    bool with_note = mysql_num_fields(result) == COLUMNS_WITH_NOTE;
    if (!with_note && mysql_num_fields(result) != COLUMNS)
        return;
    while ((r = mysql_fetch_row(result)) != NULL) {
        struct sql_row row = {.mutex = r[0] != NULL ? r[0] : "",
                              .owner = r[1] != NULL ? r[1] : "",
                              .token = r[2] != NULL ? strtoull(r[2], NULL, 10) : 0,
                              .left_ms = number(r[3]),
                              .age_ms = number(r[4]),
                              .evicted = r[5] != NULL,
                              .first = (uint32_t)number(r[5]),
                              .changed = number(r[6]) != 0};
        if (with_note && r[7] != NULL) {
            row.note = r[7];
            row.note_token = r[8] != NULL ? strtoull(r[8], NULL, 10) : 0;
            row.note_age_ms = number(r[9]);
        }
        sql_found(s, job, &row);
    }
}

/* What an UPDATE of one row says: how many there were. */
static void take_count(struct sql *s, struct mysql_connection *l, struct sql_job *job)
{
    const struct simba_request *q = job->item[0].request;
    if (q == NULL)
        return;
    bool changed = mysql_affected_rows(&l->mysql) > 0;
    bool begins = job->op == SIMBA_CONTEND || job->op == SQL_PASS;
    struct sql_row row = {.mutex = q->mutex,
                          .owner = changed ? q->id : "",
                          .token = begins ? mysql_insert_id(&l->mysql) : q->token,
                          .left_ms = changed ? q->ttl_ms + q->transition_ms : 0,
                          .age_ms = begins ? 0 : -1,
                          .changed = changed};
    sql_found(s, job, &row);
}

/* ---- prepared statements ------------------------------------------------------------------- */

static const struct mysql_prepared *prepared_for(const struct mysql_connection *l,
                                                 const struct sql_job *job)
{
    if (job->count != 1 || job->short_lock_wait)
        return NULL;
    const struct mysql_prepared *p = job->op == SIMBA_CONTEND   ? &l->often[OFTEN_TAKE]
                                     : job->op == SIMBA_RENEW   ? &l->often[OFTEN_RENEW]
                                     : job->op == SIMBA_RELEASE ? &l->often[OFTEN_RELEASE]
                                     : job->op == SQL_PASS      ? &l->often[OFTEN_PASS]
                                                                : NULL;
    return p != NULL && p->statement != NULL ? p : NULL;
}

static MYSQL_BIND bind_text(const char *text)
{
    return (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
                        .buffer = (void *)(uintptr_t)text,
                        .buffer_length = (unsigned long)strlen(text)};
}

static MYSQL_BIND bind_number(uint64_t *number)
{
    return (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = number, .is_unsigned = 1};
}

/* False: it does not take them. */
static bool bind_all(struct mysql_connection *l, const struct mysql_prepared *p,
                     const struct sql_item *item)
{
    const struct simba_request *q = item->request, *before = item->release;
    MYSQL_BIND in[MYSQL_PARAMETERS_MAX];
    l->token = q->token;
    l->token_before = before != NULL ? before->token : 0;
    l->ttl_ms = (uint64_t)q->ttl_ms;
    l->lease_ms = (uint64_t)(q->ttl_ms + q->transition_ms);
    sql_evicted_id(q->id, l->evicted);
    for (size_t i = 0; p->parameters[i] != '\0'; i++) {
        switch (p->parameters[i]) {
        case 'm':
        case 'M':
            in[i] = bind_text(q->mutex);
            break;
        case 'i':
        case 'I':
            in[i] = bind_text(q->id);
            break;
        case 'E':
            in[i] = bind_text(l->evicted);
            break;
        case 'B':
            in[i] = bind_text(before != NULL ? before->id : "");
            break;
        default:
            in[i] = bind_number(p->parameters[i] == 't'   ? &l->token
                                : p->parameters[i] == 'T' ? &l->token_before
                                : p->parameters[i] == 'l' ? &l->ttl_ms
                                                          : &l->lease_ms);
        }
    }
    return mysql_stmt_bind_param(p->statement, in) == 0;
}

/* The one row of an acquisition. */
static void take_stored(struct sql *s, struct mysql_connection *l, struct sql_job *job)
{
    char mutex[4 * SIMBA_MUTEX_MAX + 1] = "", owner[4 * SIMBA_ID_MAX + 1] = "";
    int64_t left = 0, age = 0, changed = 0;
    uint64_t token = 0, first = 0;
    my_bool whole = 1; /* no character was replaced */
    MYSQL_BIND out[COLUMNS] = {
        {.buffer_type = MYSQL_TYPE_STRING, .buffer = mutex, .buffer_length = sizeof mutex - 1},
        {.buffer_type = MYSQL_TYPE_STRING, .buffer = owner, .buffer_length = sizeof owner - 1},
        bind_number(&token),
        {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &left},
        {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &age},
        bind_number(&first),
        {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &changed}};
    unsigned long length[2] = {0, 0};
    out[0].length = &length[0];
    out[1].length = &length[1];
    out[5].is_null = &whole;
    if (mysql_stmt_field_count(l->statement) == COLUMNS &&
        mysql_stmt_bind_result(l->statement, out) == 0 && mysql_stmt_fetch(l->statement) == 0) {
        mutex[length[0] < sizeof mutex ? length[0] : sizeof mutex - 1] = '\0';
        owner[length[1] < sizeof owner ? length[1] : sizeof owner - 1] = '\0';
        sql_found(s, job,
                  &(struct sql_row){.mutex = mutex,
                                    .owner = owner,
                                    .token = token,
                                    .left_ms = left,
                                    .age_ms = age,
                                    .evicted = !whole,
                                    .first = whole ? 0 : (uint32_t)first,
                                    .changed = changed != 0});
    }
    mysql_stmt_free_result(l->statement);
}

/* ---- statements as text -------------------------------------------------------------------- */

/* Without RETURNING: UPDATE, and if that was for nothing, SELECT, and if there is no row, INSERT
 * and all again. True: another statement is to follow. */
static bool after_contend_one(struct sql *s, struct mysql_connection *l, struct sql_job *job)
{
    struct statement *t = &s->statement;
    bool changed = mysql_affected_rows(&l->mysql) > 0;
    sql_statement_reset(t);
    switch (l->stage++) {
    case 0: /* the UPDATE */
    case 3:
        if (changed)
            take_count(s, l, job);
        else
            mysql_statements_read(t, &l->dialect, job);
        return !changed;
    case 1: /* the SELECT */
        if (!job->item[0].seen)
            mysql_statements_ensure(t, &l->dialect, job);
        return !job->item[0].seen;
    case 2: /* the INSERT */
        mysql_statements_for(t, &l->dialect, job);
        return true;
    default:
        return false;
    }
}

static bool after_statement(struct sql *s, struct mysql_connection *l, struct sql_job *job)
{
    if (l->result != NULL) {
        take_rows(s, job, l->result);
        mysql_free_result(l->result);
        l->result = NULL;
    } else if (job->op == SIMBA_RENEW || job->op == SIMBA_RELEASE || job->op == SIMBA_EVICT ||
               job->op == SQL_PASS || job->op == SIMBA_PUBLISH) {
        take_count(s, l, job);
    }
    return job->op == SIMBA_CONTEND && !l->dialect.returning && after_contend_one(s, l, job);
}

static int failed(struct sql *s, struct mysql_connection *l, enum sql_end *end)
{
    char why[SQL_WHY_MAX];
    int code;
    *end = mysql_connection_explain(&l->mysql, &code, why);
    sql_fail(s, code, "%s", why);
    if ((code == SIMBA_ESCHEMA || code == SIMBA_EDENIED) && strstr(why, "simba_note") != NULL) {
        sql_fail_notes(s, code == SIMBA_ESCHEMA, mysql_error(&l->mysql));
        *end = SQL_FAILED;
    }
    return 0;
}

static int execute(struct mysql_connection *l, const struct mysql_prepared *p, int *error)
{
    l->step = STEP_EXECUTE;
    l->statement = p->statement;
    return mysql_stmt_execute_start(error, l->statement);
}

/* The UPDATE has taken nothing: it is another's, or there is no row. */
static bool was_in_vain(const struct mysql_connection *l)
{
    return l->statement == l->often[OFTEN_TAKE].statement &&
           mysql_stmt_affected_rows(l->statement) == 0;
}

static int query(struct sql *s, struct mysql_connection *l, int *error)
{
    l->step = STEP_QUERY;
    return mysql_real_query_start(error, &l->mysql, s->statement.bytes, s->statement.length);
}

/* A call has ended well: begins the next one. False: there is none, the job is done. */
static bool next_call(struct sql *s, struct mysql_connection *l, struct sql_job *job, int *wait,
                      int *error)
{
    const struct mysql_prepared *contend = &l->often[OFTEN_CONTEND];
    switch (l->step) {
    case STEP_EXECUTE:
        if (was_in_vain(l) && bind_all(l, contend, &job->item[0])) {
            *wait = execute(l, contend, error);
            return true;
        }
        if (l->statement == contend->statement) {
            l->step = STEP_STORE;
            *wait = mysql_stmt_store_result_start(error, l->statement);
            return true;
        }
        take_count(s, l, job);
        return false;
    case STEP_STORE:
        take_stored(s, l, job);
        return false;
    case STEP_QUERY:
        l->step = STEP_RESULT;
        *wait = mysql_store_result_start(&l->result, &l->mysql);
        return true;
    default:
        if (!after_statement(s, l, job))
            return false;
        *wait = query(s, l, error);
        return true;
    }
}

/* Calls that the library has begun or can begin, until one waits or all is done. */
static int run(struct sql *s, struct mysql_connection *l, struct sql_job *job, int wait, int error,
               enum sql_end *end)
{
    do {
        l->waiting = wait;
        if (wait != 0)
            return to_uv(wait);
        bool no_result = l->step == STEP_RESULT && l->result == NULL && mysql_errno(&l->mysql) != 0;
        if (error != 0 || no_result)
            return failed(s, l, end);
    } while (next_call(s, l, job, &wait, &error));
    *end = SQL_DONE;
    return 0;
}

int mysql_perform_begin(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end)
{
    struct mysql_connection *l = handle;
    int error = 0, wait;
    const struct mysql_prepared *p = prepared_for(l, job);
    if (p != NULL && bind_all(l, p, &job->item[0])) {
        wait = execute(l, p, &error);
        return run(s, l, job, wait, error, end);
    }
    sql_statement_reset(&s->statement);
    mysql_statements_for(&s->statement, &l->dialect, job);
    if (s->statement.failed) {
        sql_fail(s, SIMBA_ELIMIT, "out of memory");
        *end = SQL_FAILED;
        return 0;
    }
    l->stage = 0;
    wait = query(s, l, &error);
    return run(s, l, job, wait, error, end);
}

int mysql_perform_resume(struct mysql_connection *l, int events, int *error)
{
    switch (l->step) {
    case STEP_QUERY:
        return mysql_real_query_cont(error, &l->mysql, events);
    case STEP_EXECUTE:
        return mysql_stmt_execute_cont(error, l->statement, events);
    case STEP_STORE:
        return mysql_stmt_store_result_cont(error, l->statement, events);
    default:
        return mysql_store_result_cont(&l->result, &l->mysql, events);
    }
}

int mysql_perform_go_on(struct sql *s, void *handle, struct sql_job *job, int events,
                        enum sql_end *end)
{
    int error = 0, wait = mysql_perform_resume(handle, to_mysql(events), &error);
    return run(s, handle, job, wait, error, end);
}
