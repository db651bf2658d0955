/* statements.c: the statements.
 *
 * The clock is the server's, as milliseconds since 1970 made from UTC_TIMESTAMP, so that no time zone and
 * no change to summer time can touch it. Names and ids are text for the index and bytes for every decision,
 * whatever collation the table has. Times are unsigned in the JVM's table, so they are never subtracted as
 * they are.
 *
 * In SET everything is assigned from left to right: what conditions read comes last, and @g keeps whether
 * this very row was changed. */
#include <assert.h>
#include <string.h>

#include "backend/mysql/mysql.h"

#define NOW "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(3))DIV 1000"
#define VERSION_MAX "2147483647" /* that JVM peers can read */

/* A token is at least the clock, so that it does not fall when a row is deleted, or an old copy of the table
 * is put in its place: in us where there is a column for it. A version has to stay small for the JVM; there it
 * is the seconds since 2020. */
#define CLOCK_US "CAST(TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6))AS UNSIGNED)"
#define CLOCK_S "CAST(TIMESTAMPDIFF(SECOND,'2020-01-01',UTC_TIMESTAMP())AS UNSIGNED)"

/* 1, or an error: the table has got the column for tokens since we have looked at it, and who goes on without
 * would give out lower ones. */
#define STILL_OLD                                                                      \
    "(SELECT 1 UNION ALL SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=" \
    "DATABASE()AND TABLE_NAME='simba_mutex' AND COLUMN_NAME='fencing_token')"

struct context {
    const struct mysql_dialect *dialect;
    const struct sql_item *item;
};

#define EVICTED "ttl_at<" SQL_EVICTED_BELOW

/* As we say them, whatever character set the table has. */
#define BYTES(column) "BINARY CONVERT(" column " USING utf8mb4)"

/* The token to tell of. JVM 3 owners leave the one of an earlier tenure in the column, or, where there is none,
 * count on in the version with each renewal. Ours is at least the clock at which the tenure began. */
#define TOKEN \
    "IF(fencing_token>=1000000000000000 AND fencing_token DIV 1000<acquired_at,0,fencing_token)"
#define TOKEN_BY_VERSION "IF(version+1577836800<acquired_at DIV 1000,0,version)"

/* A time that can be subtracted from, whatever a foreign hand has written. */
#define TIME(column) "CAST(LEAST(" column ",9000000000000)AS SIGNED)"

/* $n now, $f the column of tokens, $k the token to tell of, $u the least token, $o 1 if the columns are as we
 * know them, $m the name, $M its bytes, $i the id, $I its bytes, $E those of an evicted one's, $t the token, $l
 * ttl, $a lease, $c the columns of an answer. */
static void put(struct statement *t, char what, void *data)
{
    static const struct simba_request no_request = {.id = ""};
    static const struct sql_item no_item = {.mutex = ""};
    const struct context *c = data;
    const struct sql_item *item = c->item != NULL ? c->item : &no_item;
    const struct simba_request *q = item->request != NULL ? item->request : &no_request;
    char evicted[SIMBA_ID_MAX + 1], *marks = c->dialect->marks;
    if (marks != NULL && strchr("mMiIEtla", what) != NULL) {
        size_t n = strlen(marks);
        assert(n + 1 < MYSQL_MARKS_MAX);
        marks[n] = what;
        sql_statement_put(t, strchr("MIE", what) != NULL ? "BINARY ?" : "?");
        return;
    }
    switch (what) {
    case 'n':
        sql_statement_put(t, "(" NOW ")");
        return;
    case 'f':
        sql_statement_put(t, c->dialect->fences ? "fencing_token" : "version");
        return;
    case 'k':
        sql_statement_put(t, c->dialect->fences ? TOKEN : TOKEN_BY_VERSION);
        return;
    case 'u':
        sql_statement_put(t, c->dialect->fences ? CLOCK_US : CLOCK_S);
        return;
    case 'o':
        sql_statement_put(t, c->dialect->fences ? "1" : STILL_OLD);
        return;
    case 'c':
        sql_statement_fill(t, '$',
                           "mutex,owner_id,$k," TIME("transition_at") "-$n,$n-" TIME(
                               "acquired_at") ",IF(" EVICTED ",ttl_at,NULL)",
                           put, data);
        return;
    case 'm':
    case 'i':
        sql_statement_put(t, "_utf8mb4 x'");
        sql_statement_hex(t, what == 'm' ? item->mutex : q->id);
        break;
    case 'M':
    case 'I':
        sql_statement_put(t, "x'");
        sql_statement_hex(t, what == 'M' ? item->mutex : q->id);
        break;
    case 'E':
        sql_evicted_id(q->id, evicted);
        sql_statement_put(t, "x'");
        sql_statement_hex(t, evicted);
        break;
    case 't':
        sql_statement_number(t, q->token);
        return;
    case 'l':
        sql_statement_number(t, (uint64_t)q->ttl_ms);
        return;
    default:
        sql_statement_number(t, (uint64_t)(q->ttl_ms + q->transition_ms));
        return;
    }
    sql_statement_put(t, "'");
}

static void fill(struct statement *t, const struct mysql_dialect *d, const struct sql_item *item,
                 const char *form)
{
    struct context c = {d, item};
    sql_statement_fill(t, '$', form, put, &c);
}

static void put_columns(struct statement *t, const struct mysql_dialect *d)
{
    sql_statement_put(t, "INSERT INTO simba_mutex"
                         "(mutex,acquired_at,ttl_at,transition_at,owner_id,version");
    sql_statement_put(t, d->fences ? ",fencing_token)VALUES" : ")VALUES");
}

static void put_rows(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job,
                     const char *row)
{
    for (size_t i = 0; i < job->count; i++) {
        sql_statement_put(t, i > 0 ? ",(" : "(");
        fill(t, d, &job->item[i], row);
        sql_statement_put(t, ")");
    }
    sql_statement_put(t, "ON DUPLICATE KEY UPDATE ");
}

#define SAME_NAME "BINARY mutex=BINARY VALUES(mutex)"
#define SAME_TENURE SAME_NAME " AND BINARY owner_id=BINARY VALUES(owner_id)AND $f=VALUES($f)"

/* Takes what is free. A missing row is made, and taken by that. */
static void contend(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job)
{
    put_columns(t, d);
    put_rows(t, d, job,
             d->fences ? "$m,IF(@g:=$o,$n,0),$n+$l,$n+$a,$i,1,$u"
                       : "$m,IF(@g:=$o,$n,0),$n+$l,$n+$a,$i,$u");
    fill(t, d, NULL,
         "owner_id=IF(@g:=(" SAME_NAME " AND transition_at<=$n),VALUES(owner_id),owner_id),");
    fill(t, d, NULL,
         d->fences ? "fencing_token=IF(@g,GREATEST(version+1,fencing_token+1,$u),fencing_token),"
                     "version=IF(@g,LEAST(version+1," VERSION_MAX "),version),"
                   : "version=IF(@g,GREATEST(version+1,$u),version),");
    fill(t, d, NULL,
         "acquired_at=IF(@g,$n,acquired_at),ttl_at=IF(@g,VALUES(ttl_at),ttl_at),"
         "transition_at=IF(@g,VALUES(transition_at),transition_at)RETURNING $c,@g");
}

/* Many at once, by the same means: the row that is inserted if there is none has ended in 1970. */
static void renew_many(struct statement *t, const struct mysql_dialect *d,
                       const struct sql_job *job)
{
    put_columns(t, d);
    put_rows(t, d, job,
             d->fences ? "$m,IF(@g:=0,0,0),$l,$a,$i,1,$t" : "$m,IF(@g:=0,0,0),$l,$a,$i,$t");
    fill(t, d, NULL,
         "ttl_at=IF(@g:=(" SAME_TENURE " AND transition_at>$n),$n+VALUES(ttl_at),ttl_at),"
         "transition_at=IF(@g,GREATEST(transition_at,$n+VALUES(transition_at)),transition_at)"
         "RETURNING $c,@g");
}

static void release_many(struct statement *t, const struct mysql_dialect *d,
                         const struct sql_job *job)
{
    put_columns(t, d);
    put_rows(t, d, job, d->fences ? "$m,IF(@g:=0,0,0),0,0,$i,1,$t" : "$m,IF(@g:=0,0,0),0,0,$i,$t");
    /* Of an evicted id the first character differs. */
    fill(t, d, NULL,
         "acquired_at=IF(@g:=(" SAME_NAME " AND $f=VALUES($f)AND(BINARY owner_id=BINARY "
         "VALUES(owner_id)OR(" EVICTED " AND LEFT(owner_id,1)IN('~','!')AND "
         "BINARY SUBSTRING(owner_id,2)=BINARY SUBSTRING(VALUES(owner_id),2)))),0,acquired_at),"
         "ttl_at=IF(@g,0,ttl_at),transition_at=IF(@g,0,transition_at),"
         "owner_id=IF(@g,'',owner_id)RETURNING $c,@g");
}

#define THIS_ROW "WHERE mutex=$m AND " BYTES("mutex") "=$M"
#define THIS_OWNER "(" BYTES("owner_id") "=$I OR(" EVICTED " AND " BYTES("owner_id") "=$E))"

static void contend_one(struct statement *t, const struct mysql_dialect *d,
                        const struct sql_item *item)
{
    /* LAST_INSERT_ID(x) tells x together with the number of rows. */
    fill(t, d, item,
         d->fences ? "UPDATE simba_mutex SET "
                     "fencing_token=LAST_INSERT_ID(GREATEST(version+1,fencing_token+1,$u)),"
                     "version=LEAST(version+1," VERSION_MAX "),"
                   : "UPDATE simba_mutex SET version=LAST_INSERT_ID(GREATEST(version+1,$u)),");
    fill(t, d, item,
         "owner_id=$i,acquired_at=$n,ttl_at=$n+$l,transition_at=$n+$a " THIS_ROW
         " AND transition_at<=$n AND 1=$o");
}

static void renew_one(struct statement *t, const struct mysql_dialect *d,
                      const struct sql_item *item)
{
    fill(t, d, item,
         "UPDATE simba_mutex SET ttl_at=$n+$l,transition_at=GREATEST(transition_at,$n+$a) " THIS_ROW
         " AND " BYTES("owner_id") "=$I AND $f=$t AND transition_at>$n");
}

static void release_one(struct statement *t, const struct mysql_dialect *d,
                        const struct sql_item *item)
{
    fill(t, d, item,
         "UPDATE simba_mutex SET acquired_at=0,transition_at=0,owner_id='',ttl_at=0 " THIS_ROW
         " AND $f=$t AND " THIS_OWNER);
}

/* Which owner: the id as it was shown, where a long one is cut. */
static void put_evicted_owner(struct statement *t, const struct mysql_dialect *d,
                              const struct sql_item *item)
{
    const char *id = item->request->id;
    char cut[SIMBA_ID_MAX + 1];
    size_t n = sql_cut_bytes(id);
    fill(t, d, item, " AND(" THIS_OWNER);
    if (n > 0) {
        memcpy(cut, id, n);
        cut[n] = '\0';
        sql_statement_put(t,
                          "OR(LENGTH(" BYTES("owner_id") ")>128 AND LEFT(" BYTES("owner_id") ",");
        sql_statement_number(t, n);
        sql_statement_put(t, ")=x'");
        sql_statement_hex(t, cut);
        sql_statement_put(t, "')");
    }
    sql_statement_put(t, ")");
}

/* Gracefully: the owner's id changes, so that neither ours nor a JVM owner can renew, and the lease runs
 * out. ttl_at says that it has been done, and keeps the character. */
static void evict(struct statement *t, const struct mysql_dialect *d, const struct sql_item *item)
{
    fill(t, d, item,
         item->request->forced
             ? "UPDATE simba_mutex SET acquired_at=0,ttl_at=0,owner_id='',transition_at=0 "
             : "UPDATE simba_mutex SET ttl_at=IF(@g:=NOT(" EVICTED "),CONV(HEX(CONVERT("
               "LEFT(owner_id,1)USING utf8mb4)),16,10),ttl_at),owner_id=IF(@g,CONCAT("
               "IF(LEFT(owner_id,1)='~','!','~'),SUBSTRING(owner_id,2)),owner_id)");
    fill(t, d, item, THIS_ROW " AND transition_at>$n AND owner_id<>''");
    if (item->request->token != 0)
        fill(t, d, item, " AND $f=$t");
    if (item->request->id[0] != '\0')
        put_evicted_owner(t, d, item);
}

static void put_names(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        sql_statement_put(t, i > 0 ? "," : "");
        fill(t, d, &job->item[i], "$m");
    }
    sql_statement_put(t, ")");
}

void mysql_statements_read(struct statement *t, const struct mysql_dialect *d,
                           const struct sql_job *job)
{
    fill(t, d, NULL, "SELECT $c,0 FROM simba_mutex WHERE mutex IN(");
    put_names(t, d, job);
}

static void poll(struct statement *t, const struct mysql_dialect *d, const struct sql_job *job)
{
    fill(t, d, NULL,
         "SELECT mutex,owner_id,IF(mutex='',version,$k)," TIME(
             "transition_at") "-$n,0,NULL,0 "
                              "FROM simba_mutex WHERE mutex IN(");
    put_names(t, d, job);
}

static void list(struct statement *t, const struct mysql_dialect *d, const struct sql_item *item)
{
    fill(t, d, item,
         "SELECT $c,0 FROM simba_mutex WHERE transition_at>$n AND owner_id<>'' AND mutex<>''");
    if (item->mutex[0] != '\0') {
        fill(t, d, item, " AND LEFT(" BYTES("mutex") ",");
        sql_statement_number(t, strlen(item->mutex));
        fill(t, d, item, ")=$M");
    }
}

#define BELL_NAME_MAX 32 /* the JVM's first tables have no longer ids */

static void ring(struct statement *t, const char *mutex)
{
    sql_statement_put(t, "INSERT INTO simba_mutex"
                         "(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
                         "VALUES('',0,0,0,_utf8mb4 x'");
    sql_statement_hex(t, strlen(mutex) <= BELL_NAME_MAX ? mutex : "");
    sql_statement_put(t, "',1)ON DUPLICATE KEY UPDATE owner_id=VALUES(owner_id),version=version+1");
}

void mysql_statements_ensure(struct statement *t, const char *mutex)
{
    sql_statement_put(t, "INSERT IGNORE INTO simba_mutex"
                         "(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
                         "VALUES(_utf8mb4 x'");
    sql_statement_hex(t, mutex);
    sql_statement_put(t, "',0,0,0,'',0)");
}

bool mysql_statements_often(struct statement *t, const struct mysql_dialect *d,
                            enum mysql_often which, char marks[MYSQL_MARKS_MAX])
{
    static const int op[OFTEN] = {SIMBA_CONTEND, SIMBA_CONTEND, SIMBA_RENEW, SIMBA_RELEASE};
    struct mysql_dialect open = *d;
    union {
        struct sql_job job;
        char space[sizeof(struct sql_job) + sizeof(struct sql_item)];
    } one;
    if (op[which] == SIMBA_CONTEND && !d->returning)
        return false;
    memset(&one, 0, sizeof one);
    memset(marks, 0, MYSQL_MARKS_MAX);
    one.job.op = op[which];
    one.job.count = 1;
    open.marks = marks;
    open.returning = which != OFTEN_TAKE;
    mysql_statements_for(t, &open, &one.job);
    return !t->failed;
}

void mysql_statements_for(struct statement *t, const struct mysql_dialect *d,
                          const struct sql_job *job)
{
    bool many = job->count > 1;
    if (job->impatient && d->returning)
        sql_statement_put(t, "SET STATEMENT innodb_lock_wait_timeout=0 FOR ");
    switch (job->op) {
    case SIMBA_CONTEND:
        if (d->returning)
            contend(t, d, job);
        else
            contend_one(t, d, &job->item[0]);
        break;
    case SIMBA_RENEW:
        if (many)
            renew_many(t, d, job);
        else
            renew_one(t, d, &job->item[0]);
        break;
    case SIMBA_RELEASE:
        if (many)
            release_many(t, d, job);
        else
            release_one(t, d, &job->item[0]);
        break;
    case SIMBA_EVICT:
        evict(t, d, &job->item[0]);
        break;
    case SIMBA_LIST:
        list(t, d, &job->item[0]);
        break;
    case SQL_POLL:
        poll(t, d, job);
        break;
    case SQL_DIGEST:
        fill(t, d, NULL,
             "SELECT '','',IFNULL(SUM(CRC32(CONCAT(mutex,'/',owner_id,'/',$k))),0),1,0,NULL,0 "
             "FROM simba_mutex WHERE transition_at>$n AND owner_id<>''");
        break;
    case SQL_RING:
        ring(t, job->item[0].mutex);
        break;
    default:
        mysql_statements_read(t, d, job);
    }
}
