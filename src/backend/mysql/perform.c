/* perform.c: a job as one statement, in the client library's way not to block: a call either
 * ends or says what it waits for. */
#include <assert.h>
#include <mysqld_error.h>
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"

#define COLUMNS 7
#define COLUMNS_WITH_NOTE 10

/* Of an acquisition. A lock on a row holds up its owner, the more the more there are that wait for
 * the row, so what is held is only read. INSERT ... ON DUPLICATE KEY UPDATE locks what is there in any
 * case, so it is for many mutexes at once. */
enum mysql_stage {
    STAGE_READ,
    STAGE_MAKE, /* a row: it is ours, unless somebody else has made one meanwhile */
    STAGE_TAKE, /* if it is free */
    STAGE_READ_AGAIN
};

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
static void take_count(struct sql *s, struct mysql_connection *my, struct sql_job *job)
{
    const struct simba_request *q = job->item[0].request;
    if (q == NULL)
        return;
    bool changed = mysql_affected_rows(&my->mysql) > 0;
    bool begins = job->op == SIMBA_CONTEND || job->op == SQL_PASS;
    struct sql_row row = {.mutex = q->mutex,
                          .owner = changed ? q->id : "",
                          .token = begins ? mysql_insert_id(&my->mysql) : q->token,
                          .left_ms = changed ? q->ttl_ms + q->transition_ms : 0,
                          .age_ms = begins ? 0 : -1,
                          .changed = changed};
    sql_found(s, job, &row);
}

/* ---- prepared statements ------------------------------------------------------------------- */

static const struct mysql_prepared *prepared_for(const struct mysql_connection *my,
                                                 const struct sql_job *job)
{
    if (job->count != 1 || job->short_lock_wait)
        return NULL;
    const struct mysql_prepared *p = job->op == SIMBA_RENEW     ? &my->often[OFTEN_RENEW]
                                     : job->op == SIMBA_RELEASE ? &my->often[OFTEN_RELEASE]
                                     : job->op == SQL_PASS      ? &my->often[OFTEN_PASS]
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
static bool bind_all(struct mysql_connection *my, const struct mysql_prepared *p,
                     const struct sql_item *item)
{
    const struct simba_request *q = item->request, *before = item->release;
    MYSQL_BIND in[MYSQL_PARAMETERS_MAX];
    my->token = q->token;
    my->token_before = before != NULL ? before->token : 0;
    my->ttl_ms = (uint64_t)q->ttl_ms;
    my->lease_ms = (uint64_t)(q->ttl_ms + q->transition_ms);
    sql_evicted_id(q->id, my->evicted);
    for (size_t i = 0; p->parameters[i] != SQL_VALUE_NONE; i++) {
        switch (p->parameters[i]) {
        case SQL_VALUE_MUTEX:
        case SQL_VALUE_MUTEX_BYTES:
        case SQL_VALUE_MUTEXES:
            in[i] = bind_text(q->mutex);
            break;
        case SQL_VALUE_ID:
        case SQL_VALUE_ID_BYTES:
            in[i] = bind_text(q->id);
            break;
        case SQL_VALUE_EVICTED_ID_BYTES:
            in[i] = bind_text(my->evicted);
            break;
        case SQL_VALUE_BEFORE_ID_BYTES:
            in[i] = bind_text(before != NULL ? before->id : "");
            break;
        case SQL_VALUE_TOKEN:
            in[i] = bind_number(&my->token);
            break;
        case SQL_VALUE_BEFORE_TOKEN:
            in[i] = bind_number(&my->token_before);
            break;
        case SQL_VALUE_TTL:
            in[i] = bind_number(&my->ttl_ms);
            break;
        default:
            assert(p->parameters[i] == SQL_VALUE_LEASE);
            in[i] = bind_number(&my->lease_ms);
        }
    }
    return mysql_stmt_bind_param(p->statement, in) == 0;
}

/* The one row of an acquisition. */
static void take_stored(struct sql *s, struct mysql_connection *my, struct sql_job *job)
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
    if (mysql_stmt_field_count(my->statement) == COLUMNS &&
        mysql_stmt_bind_result(my->statement, out) == 0 && mysql_stmt_fetch(my->statement) == 0) {
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
    mysql_stmt_free_result(my->statement);
}

/* ---- statements as text -------------------------------------------------------------------- */

/* The result of a statement as text. */
static void take_result(struct sql *s, struct mysql_connection *my, struct sql_job *job)
{
    if (my->result != NULL) {
        take_rows(s, job, my->result);
        mysql_free_result(my->result);
        my->result = NULL;
    } else if (job->op == SIMBA_RENEW || job->op == SIMBA_RELEASE || job->op == SIMBA_EVICT ||
               job->op == SQL_PASS || job->op == SIMBA_PUBLISH) {
        take_count(s, my, job);
    }
}

static int failed(struct sql *s, struct mysql_connection *my, enum sql_end *end)
{
    char why[SQL_WHY_MAX];
    int code;
    if (s->statement.failed) {
        sql_fail(s, SIMBA_ELIMIT, "out of memory");
        *end = SQL_FAILED;
        return 0;
    }
    *end = mysql_connection_explain(&my->mysql, &code, why);
    sql_fail(s, code, "%s", why);
    if ((code == SIMBA_ESCHEMA || code == SIMBA_EDENIED) && strstr(why, "simba_note") != NULL) {
        sql_fail_notes(s, code == SIMBA_ESCHEMA, mysql_error(&my->mysql));
        *end = SQL_FAILED;
    }
    return 0;
}

static int execute(struct mysql_connection *my, const struct mysql_prepared *p, int *error)
{
    my->step = STEP_EXECUTE;
    my->statement = p->statement;
    return mysql_stmt_execute_start(error, my->statement);
}

static int query(struct sql *s, struct mysql_connection *my, int *error)
{
    my->step = STEP_QUERY;
    *error = s->statement.failed; /* the beginning of one may mean something else */
    if (*error != 0)
        return 0;
    return mysql_real_query_start(error, &my->mysql, s->statement.bytes, s->statement.length);
}

/* ---- acquisitions -------------------------------------------------------------------------- */

static bool is_contend_one(const struct sql_job *job)
{
    return job->op == SIMBA_CONTEND && job->count == 1;
}

/* Begins what the stage of an acquisition of one mutex is about. */
static int contend(struct sql *s, struct mysql_connection *my, struct sql_job *job, int *error)
{
    bool takes = my->stage == STAGE_TAKE, makes = my->stage == STAGE_MAKE;
    const struct mysql_prepared *p = makes || (takes && job->short_lock_wait)
                                         ? NULL
                                         : &my->often[takes ? OFTEN_TAKE : OFTEN_READ];
    sql_job_forget(job);
    if (p != NULL && p->statement != NULL && bind_all(my, p, &job->item[0]))
        return execute(my, p, error);
    sql_statement_reset(&s->statement);
    if (makes)
        mysql_statements_make(&s->statement, &my->table, job);
    else if (takes)
        mysql_statements_for(&s->statement, &my->table, job);
    else
        mysql_statements_read(&s->statement, &my->table, job);
    return query(s, my, error);
}

/* Another has made the row meanwhile. */
static bool is_made_by_another(struct mysql_connection *my, const struct sql_job *job)
{
    return is_contend_one(job) && my->stage == STAGE_MAKE &&
           mysql_errno(&my->mysql) == ER_DUP_ENTRY;
}

/* What follows on a stage that has ended well. False: the acquisition is done. */
static bool next_stage(struct sql *s, struct mysql_connection *my, struct sql_job *job)
{
    const struct sql_item *item = &job->item[0];
    bool is_made = is_made_by_another(my, job);
    switch (my->stage) {
    case STAGE_READ:
        my->reads_first = item->owner[0] != '\0' && item->left_ms > 0;
        my->has_read = true;
        my->stage = item->seen ? STAGE_TAKE : STAGE_MAKE;
        return !my->reads_first;
    case STAGE_MAKE:
        my->stage = STAGE_TAKE;
        if (!is_made)
            take_count(s, my, job);
        return is_made;
    case STAGE_TAKE:
        my->reads_first = mysql_affected_rows(&my->mysql) == 0;
        if (!my->reads_first)
            take_count(s, my, job);
        my->stage = my->has_read ? STAGE_READ_AGAIN : STAGE_READ;
        return my->reads_first;
    default:
        return false;
    }
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A call has ended well: begins the next one. False: there is none, the job is done. */
static bool next_call(struct sql *s, struct mysql_connection *my, struct sql_job *job, int *wait,
                      int *error)
{
    switch (my->step) {
    case STEP_EXECUTE:
        if (mysql_stmt_field_count(my->statement) > 0) {
            my->step = STEP_STORE;
            *wait = mysql_stmt_store_result_start(error, my->statement);
            return true;
        }
        if (!is_contend_one(job))
            take_count(s, my, job);
        break;
    case STEP_STORE:
        take_stored(s, my, job);
        break;
    case STEP_QUERY:
        my->step = STEP_RESULT;
        *wait = mysql_store_result_start(&my->result, &my->mysql);
        return true;
    default:
        take_result(s, my, job);
    }
    if (!is_contend_one(job) || !next_stage(s, my, job))
        return false;
    *wait = contend(s, my, job, error);
    return true;
}

/* Calls that the library has begun or can begin, until one waits or all is done. */
static int run(struct sql *s, struct mysql_connection *my, struct sql_job *job, int wait, int error,
               enum sql_end *end)
{
    do {
        my->waiting = wait;
        if (wait != 0)
            return to_uv(wait);
        bool no_result =
            my->step == STEP_RESULT && my->result == NULL && mysql_errno(&my->mysql) != 0;
        if (error != 0 || no_result) {
            if (!is_made_by_another(my, job))
                return failed(s, my, end);
            error = 0;
            my->step = STEP_RESULT;
        }
    } while (next_call(s, my, job, &wait, &error));
    *end = SQL_DONE;
    return 0;
}

int mysql_perform_begin(struct sql *s, void *handle, struct sql_job *job, enum sql_end *end)
{
    struct mysql_connection *my = handle;
    int error = 0, wait;
    const struct mysql_prepared *p = prepared_for(my, job);
    sql_statement_reset(&s->statement);
    if (is_contend_one(job)) {
        my->has_read = false;
        my->stage = my->reads_first || job->short_lock_wait ? STAGE_READ : STAGE_TAKE;
        wait = contend(s, my, job, &error);
        return run(s, my, job, wait, error, end);
    }
    if (p != NULL && bind_all(my, p, &job->item[0])) {
        wait = execute(my, p, &error);
        return run(s, my, job, wait, error, end);
    }
    mysql_statements_for(&s->statement, &my->table, job);
    wait = query(s, my, &error);
    return run(s, my, job, wait, error, end);
}

int mysql_perform_resume(struct mysql_connection *my, int events, int *error)
{
    switch (my->step) {
    case STEP_QUERY:
        return mysql_real_query_cont(error, &my->mysql, events);
    case STEP_EXECUTE:
        return mysql_stmt_execute_cont(error, my->statement, events);
    case STEP_STORE:
        return mysql_stmt_store_result_cont(error, my->statement, events);
    default:
        return mysql_store_result_cont(&my->result, &my->mysql, events);
    }
}

int mysql_perform_go_on(struct sql *s, void *handle, struct sql_job *job, int events,
                        enum sql_end *end)
{
    int error = 0, wait = mysql_perform_resume(handle, to_mysql(events), &error);
    return run(s, handle, job, wait, error, end);
}
