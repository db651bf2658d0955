/* statements.c: the statements.
 *
 * The clock is the server's, as milliseconds since 1970 made from UTC_TIMESTAMP, so that no time
 * zone and no change to summer time can touch it. Names and ids are text for the index and bytes
 * for every decision, whatever collation the table has. Times are unsigned in the JVM's table,
 * so they are never subtracted as they are.
 *
 * In SET everything is assigned from left to right: what conditions read comes last, and @g
 * keeps whether this very row was changed. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/mysql/mysql.h"
#include "backend/mysql/schema_note_sql.h"

#define MS_OF(clock) "TIMESTAMPDIFF(MICROSECOND,'1970-01-01'," clock ")DIV 1000"
#define NOW MS_OF("UTC_TIMESTAMP(3)")
#define VERSION_MAX "2147483647" /* that JVM peers can read */
#define EVICTED_NAME_MAX 32      /* the JVM's first tables have no longer ids */

/* A token is at least the clock, so that it does not fall when a row is deleted, or an old copy
 * of the table is put in its place: in us where there is a column for it. A version has to stay
 * small for the JVM; there it is the seconds since 2020. */
#define CLOCK_US "CAST(TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6))AS UNSIGNED)"
#define CLOCK_S "CAST(TIMESTAMPDIFF(SECOND,'2020-01-01',UTC_TIMESTAMP())AS UNSIGNED)"

/* 1, or an error: the table has got the column for tokens since we have looked at it, and who
 * goes on without would give out lower ones. */
#define STILL_OLD                                                                      \
    "(SELECT 1 UNION ALL SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=" \
    "DATABASE()AND TABLE_NAME='simba_mutex' AND COLUMN_NAME='fencing_token')"

#define EVICTED "ttl_at<" SQL_EVICTED_BELOW

/* As we say them, whatever character set the table has. */
#define BYTES(column) "BINARY CONVERT(" column " USING utf8mb4)"

/* The token to tell of. JVM 3 owners leave the one of an earlier tenure in the column, or, where
 * there is none, count on in the version with each renewal. Ours is at least the clock at which
 * the tenure began. */
#define TOKEN \
    "IF(fencing_token>=1000000000000000 AND fencing_token DIV 1000<acquired_at,0,fencing_token)"
#define TOKEN_BY_VERSION "IF(version+1577836800<acquired_at DIV 1000,0,version)"

/* A time that can be subtracted from, whatever a foreign hand has written. */
#define TIME(column) "CAST(LEAST(" column ",9000000000000)AS SIGNED)"

/* These names are shared by the whole server, and at most 64 characters long. */
#define QUEUE_LOCK "CONCAT('simba:',SHA1(CONCAT(DATABASE(),'/',"

/* Connections that only wait leave half of the server's, or of the user's, to others. */
#define ROOM(schema)                                                                              \
    "SELECT $m,'',2*VARIABLE_VALUE<IF(@@max_user_connections>0,LEAST(@@max_user_connections,"     \
    "@@max_connections),@@max_connections),0,0,NULL,0 FROM " schema ".global_status WHERE UPPER(" \
    "VARIABLE_NAME)='THREADS_CONNECTED'"

struct context {
    const struct mysql_dialect *dialect;
    const struct sql_job *job;
    size_t at; /* which of its mutexes */
};

/* What does not depend on the job: $n now, $f the column of tokens, $k the token to tell of, $u
 * the least token, $o 1 if the columns are as we know them, $v the version of a new row, if that
 * is not the token, $V the columns after it, $c the columns of an answer, $C those but the name. NULL:
 * none of these. */
static const char *part(bool fences, char what)
{
    switch (what) {
    case 'n':
        return "(" NOW ")";
    case 'f':
        return fences ? "fencing_token" : "version";
    case 'k':
        return fences ? TOKEN : TOKEN_BY_VERSION;
    case 'u':
        return fences ? CLOCK_US : CLOCK_S;
    case 'o':
        return fences ? "1" : STILL_OLD;
    case 'v':
        return fences ? "1," : "";
    case 'V':
        return fences ? ",fencing_token" : "";
    case 'c':
        return "mutex,$C";
    case 'C':
        return "owner_id,$k," TIME("transition_at") "-$n,$n-" TIME("acquired_at") ",IF(" EVICTED
                                                                                  ",ttl_at,NULL)";
    default:
        return NULL;
    }
}

static void put_text(struct statement *t, const char *before, const char *value)
{
    sql_statement_put(t, before);
    sql_statement_hex(t, value);
    sql_statement_put(t, "'");
}

/* And, of the mutex: $m the name, $M its bytes, $i the id, $I its bytes, $E those of an evicted
 * one's, $t the token, of a pass $B the bytes of the id and $T the token of the owner before, $l
 * ttl, $a lease, $s the serial and $x the text of a note, $b what the row of evictions says of it, $q the name of
 * the queue lock; at the end $N, the names of all. */
static void put(struct statement *t, char what, void *data)
{
    static const struct simba_request no_request = {.id = ""};
    struct context *c = data;
    const struct sql_item *item = &c->job->item[c->at];
    const char *form = part(c->dialect->fences, what);
    char evicted[SIMBA_ID_MAX + 1], *parameters = c->dialect->parameters;
    if (form != NULL) {
        sql_statement_fill(t, '$', form, put, data);
        return;
    }
    if (what == 'N') {
        for (c->at = 0; c->at < c->job->count; c->at++)
            sql_statement_fill(t, '$', c->at > 0 ? ",$m" : "$m", put, data);
        return;
    }
    if (parameters != NULL) {
        size_t n = strlen(parameters);
        assert(n + 1 < MYSQL_PARAMETERS_MAX);
        parameters[n] = what;
        sql_statement_put(t, strchr("MIEB", what) != NULL ? "BINARY ?" : "?");
        return;
    }
    const struct simba_request *q = item->request != NULL ? item->request : &no_request;
    switch (what) {
    case 'm':
        put_text(t, "_utf8mb4 x'", item->mutex);
        break;
    case 'M':
        put_text(t, "x'", item->mutex);
        break;
    case 'b':
        put_text(t, "_utf8mb4 x'", strlen(item->mutex) <= EVICTED_NAME_MAX ? item->mutex : "");
        break;
    case 'q':
        put_text(t, QUEUE_LOCK "x'", item->mutex);
        sql_statement_put(t, ")))");
        break;
    case 'i':
        put_text(t, "_utf8mb4 x'", q->id);
        break;
    case 'I':
        put_text(t, "x'", q->id);
        break;
    case 'B':
        put_text(t, "x'", item->release->id);
        break;
    case 'T':
        sql_statement_number(t, item->release->token);
        break;
    case 's':
        sql_statement_number(t, q->serial);
        break;
    case 'x':
        put_text(t, "_utf8mb4 x'", q->note);
        break;
    case 'E':
        sql_evicted_id(q->id, evicted);
        put_text(t, "x'", evicted);
        break;
    default:
        sql_statement_number(t, what == 't'   ? q->token
                                : what == 'l' ? (uint64_t)q->ttl_ms
                                              : (uint64_t)(q->ttl_ms + q->transition_ms));
    }
}

static void fill(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job,
                 size_t at, const char *form)
{
    struct context c = {d, job, at};
    sql_statement_fill(t, '$', form, put, &c);
}

#define INTO "INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version"

/* Many at once: a row for each is inserted; the update says what becomes of one that is there. */
static void put_many(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job,
                     const char *row, const char *update)
{
    fill(t, d, job, 0, "INSERT " INTO "$V)VALUES");
    for (size_t i = 0; i < job->count; i++) {
        sql_statement_put(t, i > 0 ? ",(" : "(");
        fill(t, d, job, i, row);
        sql_statement_put(t, ")");
    }
    sql_statement_put(t, "ON DUPLICATE KEY UPDATE ");
    fill(t, d, job, 0, update);
    fill(t, d, job, 0, "RETURNING $c,@g");
}

#define SAME_NAME "BINARY mutex=BINARY VALUES(mutex)"
#define SAME_TENURE SAME_NAME " AND BINARY owner_id=BINARY VALUES(owner_id)AND $f=VALUES($f)"

/* Takes what is free. A missing row is made, and taken by that. */
#define CONTEND_ROW "$m,IF(@g:=$o,$n,0),$n+$l,$n+$a,$i,$v$u"
#define CONTEND(token)                                                                        \
    "owner_id=IF(@g:=(" SAME_NAME " AND transition_at<=$n),VALUES(owner_id),owner_id)," token \
    "acquired_at=IF(@g,$n,acquired_at),ttl_at=IF(@g,VALUES(ttl_at),ttl_at),"                  \
    "transition_at=IF(@g,VALUES(transition_at),transition_at)"
#define NEXT_TOKEN                                                               \
    "fencing_token=IF(@g,GREATEST(version+1,fencing_token+1,$u),fencing_token)," \
    "version=IF(@g,LEAST(version+1," VERSION_MAX "),version),"
#define NEXT_VERSION "version=IF(@g,GREATEST(version+1,$u),version),"

/* The row that is inserted if there is none has ended in 1970. */
#define RENEW_ROW "$m,IF(@g:=0,0,0),$l,$a,$i,$v$t"
#define RENEW                                                                         \
    "ttl_at=IF(@g:=(" SAME_TENURE " AND transition_at>$n),$n+VALUES(ttl_at),ttl_at)," \
    "transition_at=IF(@g,GREATEST(transition_at,$n+VALUES(transition_at)),transition_at)"

/* Of an evicted id the first character differs. */
#define RELEASE_ROW "$m,IF(@g:=0,0,0),0,0,$i,$v$t"
#define RELEASE                                                                            \
    "acquired_at=IF(@g:=(" SAME_NAME " AND $f=VALUES($f)AND(BINARY owner_id=BINARY "       \
    "VALUES(owner_id)OR(" EVICTED " AND LEFT(owner_id,1)IN('~','!')AND "                   \
    "BINARY SUBSTRING(owner_id,2)=BINARY SUBSTRING(VALUES(owner_id),2)))),0,acquired_at)," \
    "ttl_at=IF(@g,0,ttl_at),transition_at=IF(@g,0,transition_at),owner_id=IF(@g,'',owner_id)"

#define THIS_ROW "WHERE mutex=$m AND " BYTES("mutex") "=$M"
#define THIS_OWNER "(" BYTES("owner_id") "=$I OR(" EVICTED " AND " BYTES("owner_id") "=$E))"

/* Locks that others have are not waited for. */
#define AT_ONCE "SET STATEMENT innodb_lock_wait_timeout=0 FOR "

/* LAST_INSERT_ID(x) tells x together with the number of rows. */
#define TAKE_ONE(token)             \
    "UPDATE simba_mutex SET " token \
    "owner_id=$i,acquired_at=$n,ttl_at=$n+$l,transition_at=$n+$a " THIS_ROW
#define MAKE_ROW "$m,IF($o,$n,0),$n+$l,$n+$a,$i,$vLAST_INSERT_ID($u)"
#define CONTEND_ONE(token) TAKE_ONE(token) " AND transition_at<=$n AND 1=$o"
#define PASS(token) TAKE_ONE(token) " AND $f=$T AND " BYTES("owner_id") "=$B AND 1=$o"
#define NEXT_TOKEN_ONE                                                      \
    "fencing_token=LAST_INSERT_ID(GREATEST(version+1,fencing_token+1,$u))," \
    "version=LEAST(version+1," VERSION_MAX "),"
#define NEXT_VERSION_ONE "version=LAST_INSERT_ID(GREATEST(version+1,$u)),"

#define RENEW_ONE                                                                               \
    "UPDATE simba_mutex SET ttl_at=$n+$l,transition_at=GREATEST(transition_at,$n+$a) " THIS_ROW \
    " AND " BYTES("owner_id") "=$I AND $f=$t AND transition_at>$n"

#define RELEASE_ONE                                                                       \
    "UPDATE simba_mutex SET acquired_at=0,transition_at=0,owner_id='',ttl_at=0 " THIS_ROW \
    " AND $f=$t AND " THIS_OWNER

/* The row of the mutex is locked until this is committed, so nobody takes it over between the
 * comparison and the note. A note that was overtaken by a later one of its tenure stays. With
 * CLIENT_FOUND_ROWS that counts as a row, too; none is counted if the tenure is over.
 *
 * The time is that of the writing: UTC_TIMESTAMP is when the statement began, before it waited for
 * the lock. SYSDATE is read where the row is, in UTC by our session's time zone; a server that runs with
 * --sysdate-is-now has nothing better than the beginning. */
#define WRITTEN_AT MS_OF("SYSDATE(3)")
#define NEWER "(token<>VALUES(token)OR serial<VALUES(serial))"
#define PUBLISH                                                                             \
    "INSERT INTO simba_note(mutex,token,serial,written_at,note)SELECT $M,$t,$s," WRITTEN_AT \
    ",$x FROM "                                                                             \
    "simba_mutex " THIS_ROW                                                                 \
    " AND " BYTES("owner_id") "=$I AND $f=$t AND transition_at>$n AND "                     \
                              "1=$o FOR UPDATE ON DUPLICATE KEY UPDATE note=IF(" NEWER      \
                              ",VALUES(note),note),"                                        \
                              "written_at=IF(" NEWER                                        \
                              ",VALUES(written_at),written_at),serial=IF(" NEWER            \
                              ",VALUES(serial),serial),token=VALUES(token)"

#define NOTE_AGE "$n-" TIME("written_at")
#define NO_NOTE "NULL,0,0"

/* Gracefully: the owner's id changes, so that neither ours nor a JVM owner can renew, and the
 * lease runs out. ttl_at says that it has been done, and keeps the character. */
#define END_SOON                                                                              \
    "ttl_at=IF(@g:=NOT(" EVICTED "),CONV(HEX(CONVERT(LEFT(owner_id,1)USING utf8mb4)),16,10)," \
    "ttl_at),owner_id=IF(@g,CONCAT(IF(LEFT(owner_id,1)='~','!','~'),SUBSTRING(owner_id,2)),"  \
    "owner_id)"
#define FREE "acquired_at=0,ttl_at=0,owner_id='',transition_at=0 "
#define EVICT(how) "UPDATE simba_mutex SET " how THIS_ROW " AND transition_at>$n AND owner_id<>''"

/* Which owner: the id as it was shown, where a long one is cut. */
static void evict(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job)
{
    const struct simba_request *q = job->item[0].request;
    char cut[SIMBA_ID_MAX + 1];
    size_t n = sql_cut_bytes(q->id);
    fill(t, d, job, 0, q->forced ? EVICT(FREE) : EVICT(END_SOON));
    if (q->token != 0)
        fill(t, d, job, 0, " AND $f=$t");
    if (q->id[0] == '\0')
        return;
    fill(t, d, job, 0, " AND(" THIS_OWNER);
    if (n > 0) {
        snprintf(cut, sizeof cut, "%.*s", (int)n, q->id);
        sql_statement_put(t,
                          "OR(LENGTH(" BYTES("owner_id") ")>128 AND LEFT(" BYTES("owner_id") ",");
        sql_statement_number(t, n);
        put_text(t, ")=x'", cut);
        sql_statement_put(t, ")");
    }
    sql_statement_put(t, ")");
}

static void list(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job)
{
    size_t length = strlen(job->item[0].mutex);
    fill(t, d, job, 0,
         job->op == SIMBA_LIST
             ? "SELECT $c,0 FROM simba_mutex"
             : "SELECT $c,0,note,note_token,note_age FROM simba_mutex LEFT JOIN(SELECT mutex AS "
               "note_mutex,note,token AS note_token," NOTE_AGE " AS note_age FROM simba_note)AS n "
               "ON note_mutex=" BYTES("mutex"));
    fill(t, d, job, 0, " WHERE transition_at>$n AND owner_id<>'' AND mutex<>''");
    if (length > 0) {
        sql_statement_put(t, " AND LEFT(" BYTES("mutex") ",");
        sql_statement_number(t, length);
        fill(t, d, job, 0, ")=$M");
    }
}

void mysql_statements_read(struct statement *t, const struct mysql_dialect *d,
                           const struct sql_job *job)
{
    fill(t, d, job, 0, "SELECT $c,0 FROM simba_mutex WHERE mutex IN($N)");
}

void mysql_statements_make(struct statement *t, const struct mysql_dialect *d,
                           const struct sql_job *job)
{
    if (job->short_lock_wait && d->returning)
        sql_statement_put(t, AT_ONCE);
    fill(t, d, job, 0, "INSERT " INTO "$V)VALUES(" MAKE_ROW ")");
}

bool mysql_statements_often(struct statement *t, const struct mysql_dialect *d,
                            enum mysql_often which, char parameters[MYSQL_PARAMETERS_MAX])
{
    static const int op[OFTEN] = {SIMBA_CONTEND, SIMBA_READ, SIMBA_RENEW, SIMBA_RELEASE, SQL_PASS};
    struct mysql_dialect open = {.fences = d->fences, .parameters = parameters};
    struct sql_job *job = sql_job_new(op[which], 1);
    if (job == NULL)
        return false;
    memset(parameters, 0, MYSQL_PARAMETERS_MAX);
    sql_job_add(job, "", NULL);
    mysql_statements_for(t, &open, job);
    free(job);
    return !t->failed;
}

void mysql_statements_for(struct statement *t, const struct mysql_dialect *d,
                          const struct sql_job *job)
{
    bool many = job->count > 1;
    if (job->short_lock_wait && d->returning)
        sql_statement_put(t, AT_ONCE);
    switch (job->op) {
    case SIMBA_CONTEND:
        if (many)
            put_many(t, d, job, CONTEND_ROW,
                     d->fences ? CONTEND(NEXT_TOKEN) : CONTEND(NEXT_VERSION));
        else
            fill(t, d, job, 0,
                 d->fences ? CONTEND_ONE(NEXT_TOKEN_ONE) : CONTEND_ONE(NEXT_VERSION_ONE));
        break;
    case SIMBA_RENEW:
        if (many)
            put_many(t, d, job, RENEW_ROW, RENEW);
        else
            fill(t, d, job, 0, RENEW_ONE);
        break;
    case SIMBA_RELEASE:
        if (many)
            put_many(t, d, job, RELEASE_ROW, RELEASE);
        else
            fill(t, d, job, 0, RELEASE_ONE);
        break;
    case SQL_PASS:
        fill(t, d, job, 0, d->fences ? PASS(NEXT_TOKEN_ONE) : PASS(NEXT_VERSION_ONE));
        break;
    case SIMBA_EVICT:
        evict(t, d, job);
        break;
    case SIMBA_LIST:
    case SQL_LIST_NOTE:
        list(t, d, job);
        break;
    case SIMBA_PUBLISH:
        fill(t, d, job, 0, PUBLISH);
        break;
    case SQL_READ_NOTE: /* also of a mutex that has no row */
        fill(t, d, job, 0,
             "SELECT " BYTES("mutex") ",$C,0," NO_NOTE " FROM simba_mutex WHERE mutex IN($N)");
        fill(t, d, job, 0,
             "UNION ALL SELECT mutex,'',0,0,0,NULL,0,note,token," NOTE_AGE
             " FROM simba_note WHERE mutex IN($N)");
        fill(t, d, job, 0, "UNION ALL SELECT '','',$n,0,0,NULL,0," NO_NOTE);
        break;
    case SQL_MAKE_NOTES:
        fill(t, d, job, 0, schema_note_sql);
        break;
    case SQL_POLL:
        fill(t, d, job, 0,
             "SELECT mutex,owner_id,IF(mutex='',version,$k)," TIME(
                 "transition_at") "-$n,0,NULL,0 FROM simba_mutex WHERE mutex IN($N)");
        break;
    case SQL_DIGEST:
        fill(t, d, job, 0,
             "SELECT '','',IFNULL(SUM(CRC32(CONCAT(mutex,'/',owner_id,'/',$k))),0),1,0,NULL,0 "
             "FROM simba_mutex WHERE transition_at>$n AND owner_id<>''");
        break;
    case SQL_QUEUE_WAIT:
        if (d->timed)
            sql_statement_put(t, "SET STATEMENT max_statement_time=0 FOR ");
        fill(t, d, job, 0, "SELECT $m,'',GET_LOCK($q,");
        sql_statement_number(t, SQL_QUEUE_WAIT_S);
        sql_statement_put(t, "),0,0,NULL,0");
        break;
    case SQL_QUEUE_ROOM:
        fill(t, d, job, 0, d->timed ? ROOM("information_schema") : ROOM("performance_schema"));
        break;
    case SQL_QUEUE_TRY:
        fill(t, d, job, 0, "SELECT $m,'',GET_LOCK($q,0),0,0,NULL,0");
        break;
    case SQL_QUEUE_END: /* who waits has it at once, so that it is not free in between */
        fill(t, d, job, 0, "SELECT $m,'',RELEASE_LOCK($q),IS_FREE_LOCK($q),0,NULL,0");
        break;
    case SQL_COUNT_EVICTION:
        fill(t, d, job, 0,
             "INSERT " INTO ")VALUES('',0,0,0,$b,1)ON DUPLICATE KEY UPDATE "
             "owner_id=VALUES(owner_id),version=version+1");
        break;
    default:
        mysql_statements_read(t, d, job);
    }
}
