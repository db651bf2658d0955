/* statements.c: the statements.
 *
 * The clock is the server's at the moment of the comparison, clock_timestamp(), and not the
 * beginning of the statement: that may have waited for a lock. So also what is written is
 * computed where a row is changed, and not where the statement begins.
 *
 * Many rows are changed by INSERT ... ON CONFLICT in the order in which they are given, by name,
 * so that two clients do not wait for each other. A row that is made by that, because somebody
 * has deleted it, has ended in 1970. */
#include <assert.h>
#include <string.h>

#include "backend/postgres/postgres.h"
#include "backend/postgres/schema_note_sql.h"

/* A token is at least the clock, so that it does not fall when a row is deleted, or an old copy
 * of the table is put in its place: in us where there is a column for it. A version that is the
 * token may be an int; there it is the seconds since 2020. */
#define EVICTED "ttl_at<" SQL_EVICTED_BELOW
#define CLOCK_US "floor(date_part('epoch',clock_timestamp())*1000000)::bigint"
#define CLOCK_S "floor(date_part('epoch',clock_timestamp())-1577836800)::bigint"

/* 1, or an error: the table has got the column for tokens since we have looked at it, and who
 * goes on without would give out lower ones. */
#define STILL_OLD                                                    \
    "(SELECT 1 UNION ALL SELECT 1 FROM pg_attribute WHERE attrelid=" \
    "to_regclass('simba_mutex')AND attname='fencing_token' AND NOT attisdropped)"

#define NOTIFY "pg_notify('" POSTGRES_CHANNEL "',mutex)"

/* A mark is a version above the token, so the version of a new tenure is not: its clock is read
 * first. */
static const char *next_token(const struct postgres_table *d)
{
    if (!d->fences)
        return "version=greatest(t.version+1,@u)";
    return d->marks ? "version=greatest(t.version,t.fencing_token)+1,"
                      "fencing_token=greatest(t.version+1,t.fencing_token+1,@u)"
                    : "version=least(t.version::bigint+1,2147483647),"
                      "fencing_token=greatest(t.version::bigint+1,t.fencing_token+1,@u)";
}

/* @n now, @f the column of tokens, @t the next token, @u the least one, @a condition of a new
 * tenure, @w is there a mark?, @k the columns of version and token, @v the version of a new row,
 * if that is not the token, @c the columns of an answer, @o tell observers, @r tell who waits,
 * @m leave marks, where there are any, @d 1, or 3 if the row that was changed has a mark.
 *
 * The seventh column of what a statement tells: 1 changed, 2 nobody has left a mark, 3 changed, and
 * there is a mark. */
static const char *part(const struct postgres_table *d, char what)
{
    switch (what) {
    case 'n':
        return "floor(date_part('epoch',clock_timestamp())*1000)::bigint";
    case 'f':
        return d->fences ? "fencing_token" : "version";
    case 't':
        return next_token(d);
    case 'u':
        return d->fences ? CLOCK_US : CLOCK_S;
    case 'a':
        return d->fences ? "" : " AND 1=" STILL_OLD;
    case 'w':
        return d->marks ? "CASE WHEN t.version>t.fencing_token THEN 0 ELSE 2 END" : "0";
    case 'k':
        return d->fences ? "version,fencing_token" : "version";
    case 'v':
        return d->fences ? "1," : "";
    case 'm': /* of what is held; told is what has a mark then */
        return d->marks
                   ? "WITH u AS(UPDATE simba_mutex SET version=fencing_token+1 WHERE "
                     "mutex=ANY($1::text[])AND version<=fencing_token AND transition_at>@n "
                     "RETURNING mutex)SELECT mutex,'',0,0,0,NULL,0 FROM u UNION ALL "
                     "SELECT mutex,'',0,0,0,NULL,0 FROM simba_mutex WHERE mutex=ANY($1::text[])AND "
                     "version>fencing_token AND transition_at>@n"
                   : "SELECT mutex,'',0,0,0,NULL,0 FROM simba_mutex WHERE mutex=ANY($1::text[])";
    case 'd':
        return d->marks ? "CASE WHEN version>fencing_token THEN 3 ELSE 1 END" : "1";
    case 'r':
        return d->marks ? "CASE WHEN version>fencing_token THEN " NOTIFY "::text ELSE @o END"
                        : NOTIFY;
    case 'c':
        return "t.mutex,t.owner_id,t.@f,t.transition_at-@n,@n-t.acquired_at,"
               "CASE WHEN t." EVICTED " THEN t.ttl_at END";
    default:
        return "CASE WHEN EXISTS(SELECT FROM simba_mutex AS b WHERE b.mutex='' AND "
               "b.transition_at>@n)THEN pg_notify('" POSTGRES_CHANNEL "',t.mutex)::text END";
    }
}

/* Names that others have given are taken as they are: @s the table of notes, of which two schemas
 * must not have one each; @b its columns. */
static void put(struct statement *t, char what, void *data)
{
    const struct postgres_table *d = data;
    if (what == 's')
        sql_statement_put(t, d->notes);
    else if (what == 'b')
        sql_statement_put(t, strchr(schema_note_sql, '('));
    else
        sql_statement_fill(t, '@', part(d, what), put, data);
}

#define MANY_CONTEND "unnest($1::text[],$2::text[],$3::bigint[],$4::bigint[])AS q(m,i,l,a)"
#define MANY_RENEW \
    "unnest($1::text[],$2::text[],$3::bigint[],$4::bigint[],$5::bigint[])AS q(m,i,k,l,a)"
#define MANY_RELEASE "unnest($1::text[],$2::text[],$3::bigint[],$4::text[])AS q(m,i,k,e)"

#define INTO "INSERT INTO simba_mutex AS t(mutex,acquired_at,ttl_at,transition_at,owner_id,@k)"

/* Who finds it held, and most do, only reads: a lock on the row would hold up its owner. What is
 * not told was free at first and then another's. */
#define CONTEND                                                                                  \
    "WITH q AS(SELECT*FROM " MANY_CONTEND "),g AS(" INTO "SELECT m,@n,@n+l,@n+a,i,@v@u FROM q "  \
    "WHERE NOT EXISTS(SELECT FROM simba_mutex AS h WHERE h.mutex=q.m AND h.transition_at>@n)@a " \
    "ON CONFLICT(mutex)DO UPDATE SET acquired_at=@n,"                                            \
    "ttl_at=@n+EXCLUDED.ttl_at-EXCLUDED.acquired_at,"                                            \
    "transition_at=@n+EXCLUDED.transition_at-EXCLUDED.acquired_at,"                              \
    "owner_id=EXCLUDED.owner_id,@t WHERE t.transition_at<=@n RETURNING t.*)"                     \
    "SELECT @c,1,@o FROM g AS t UNION ALL SELECT @c,@w,NULL FROM simba_mutex AS t,q "            \
    "WHERE t.mutex=q.m AND t.transition_at>@n AND NOT EXISTS(SELECT FROM g WHERE g.mutex=q.m)"

/* For one, who wins most of the time: what is not told is read. */
#define CONTEND_ONE                                                                    \
    INTO "SELECT $1::text,@n,@n+$3::bigint,@n+$4::bigint,$2::text,@v@u"                \
         " WHERE NOT EXISTS(SELECT FROM simba_mutex AS h WHERE h.mutex=$1::text AND "  \
         "h.transition_at>@n)@a "                                                      \
         "ON CONFLICT(mutex)DO UPDATE SET acquired_at=@n,ttl_at=@n+$3::bigint,"        \
         "transition_at=@n+$4::bigint,owner_id=$2::text,@t WHERE t.transition_at<=@n " \
         "RETURNING @c,1,@o"

#define RENEW                                                                              \
    INTO "SELECT m,0,l,a,i,@vk FROM " MANY_RENEW                                           \
         " WHERE 1=1@a ON CONFLICT(mutex)DO UPDATE SET ttl_at=@n+EXCLUDED.ttl_at,"         \
         "transition_at=greatest(t.transition_at,@n+EXCLUDED.transition_at)"               \
         "WHERE t.owner_id=EXCLUDED.owner_id AND t.@f=EXCLUDED.@f AND t.transition_at>@n " \
         "RETURNING @c,(t.transition_at>@n)::int"

#define RENEW_ONE                                                                          \
    "UPDATE simba_mutex AS t SET ttl_at=@n+$4::bigint,"                                    \
    "transition_at=greatest(transition_at,@n+$5::bigint)"                                  \
    "WHERE mutex=$1::text AND owner_id=$2::text AND @f=$3::bigint AND transition_at>@n@a " \
    "RETURNING @c,1"

/* NOTIFY follows what has happened, in the same transaction: who is told finds it so. All that
 * notify wait for each other until they are committed, so a release does it only if somebody has
 * left a mark that he waits: a version above the token. */
#define FREE "acquired_at=0,ttl_at=0,transition_at=0,owner_id=''"
#define RELEASE                                                                                   \
    "WITH r AS(UPDATE simba_mutex AS t SET " FREE " FROM " MANY_RELEASE " WHERE t.mutex=q.m AND " \
    "t.@f=q.k AND(t.owner_id=q.i OR(t." EVICTED " AND t.owner_id=q.e))@a RETURNING t.*)"          \
    "SELECT mutex,'',0,0,0,NULL,@d,@r FROM r AS t"

#define RELEASE_ONE                                                                    \
    "UPDATE simba_mutex AS t SET " FREE " WHERE mutex=$1::text AND @f=$3::bigint AND(" \
    "owner_id=$2::text OR(" EVICTED " AND owner_id=$4::text))@a "                      \
    "RETURNING mutex,'',0,0,0,NULL,@d,@r"

/* The next tenure begins where the one before ends, and whoever else waits goes on waiting: its mark
 * stays. The clock of the token is read once, so that a mark is above it. Only where there are
 * marks. */
#define PASS_TOKEN "greatest(t.version+1,t.fencing_token+1,c.u)"
#define PASS                                                                                     \
    "UPDATE simba_mutex AS t SET acquired_at=@n,ttl_at=@n+$5::bigint,transition_at=@n+"          \
    "$6::bigint,owner_id=$4::text,fencing_token=" PASS_TOKEN ",version=CASE WHEN t.version>"     \
    "t.fencing_token THEN " PASS_TOKEN "+1 ELSE greatest(t.version,t.fencing_token)+1 END FROM(" \
    "SELECT @u AS u)AS c WHERE mutex=$1::text AND owner_id=$2::text AND "                        \
    "fencing_token=$3::bigint RETURNING @c,@d,@o"

/* Of the owner's first character: its length, in characters. A database without an encoding
 * takes each byte of our UTF-8 for one; there ascii() is the first byte. */
#define FIRST                                                                              \
    "CASE WHEN getdatabaseencoding()<>'SQL_ASCII' THEN 1 WHEN ascii(owner_id)<192 THEN 1 " \
    "WHEN ascii(owner_id)<224 THEN 2 WHEN ascii(owner_id)<240 THEN 3 ELSE 4 END"

/* Gracefully: the owner's id changes, so that it cannot renew, and the lease runs out. ttl_at
 * says that it has been done, and keeps the character. */
#define END_SOON                                                                \
    "ttl_at=CASE WHEN " EVICTED                                                 \
    " THEN ttl_at ELSE('x'||lpad(encode(convert_to(left(owner_id," FIRST        \
    "),'UTF8'),'hex'),8,'0'))::bit(32)::bigint END,owner_id=CASE WHEN " EVICTED \
    " THEN owner_id WHEN left(owner_id,1)='~' THEN '!'||substr(owner_id,2)"     \
    "ELSE '~'||substr(owner_id,1+" FIRST ")END"
#define EVICT(how)                                                                               \
    "WITH r AS(UPDATE simba_mutex AS t SET " how " WHERE mutex=$1::text AND "                    \
    "transition_at>@n AND owner_id<>'' AND($2::bigint=0 OR @f=$2::bigint)AND("                   \
    "$3::text='' OR owner_id=$3::text OR(" EVICTED " AND owner_id=$4::text)OR($5::text<>'' AND " \
    "octet_length(owner_id)>128 AND starts_with(owner_id,$5::text)))RETURNING mutex)SELECT "     \
    "mutex,'',0,0,0,NULL,1," NOTIFY "FROM r"

/* The row of the mutex is locked until this is committed, so nobody takes it over between the
 * comparison and the note. A note that was overtaken by a later one of its tenure stays. */
#define PUBLISH                                                                           \
    "WITH m AS(SELECT t.mutex FROM simba_mutex AS t WHERE t.mutex=$1::text AND "          \
    "t.owner_id=$2::text AND t.@f=$3::bigint AND t.transition_at>@n@a FOR UPDATE),w AS("  \
    "INSERT INTO @s AS o(mutex,token,serial,written_at,note)SELECT $1::text,$3::bigint,"  \
    "$4::bigint,@n,$5::text FROM m ON CONFLICT(mutex)DO UPDATE SET token=EXCLUDED.token," \
    "serial=EXCLUDED.serial,written_at=EXCLUDED.written_at,note=EXCLUDED.note WHERE "     \
    "o.token<>EXCLUDED.token OR o.serial<EXCLUDED.serial)"                                \
    "SELECT mutex,'',0,0,0,NULL,1 FROM m"

/* Also of a mutex that has no row. */
#define READ_NOTE                                                                           \
    "SELECT @c,@w,NULL::text,0::bigint,0::bigint FROM simba_mutex AS t WHERE "              \
    "mutex=ANY($1::text[])UNION ALL SELECT mutex,'',0,0,0,NULL,0,note,token,@n-written_at " \
    "FROM @s WHERE mutex=ANY($1::text[])UNION ALL SELECT '','',@n,0,0,NULL,0,NULL,0,0"

#define LISTED                                                                             \
    "WHERE t.transition_at>@n AND t.owner_id<>'' AND t.mutex<>'' AND starts_with(t.mutex," \
    "$1::text)"

/* Of those that do the same the one for one mutex comes first. */
const struct postgres_form postgres_statements[STATEMENTS] = {
    {"simba_contend_one", "mila", CONTEND_ONE, SIMBA_CONTEND, false},
    {"simba_contend", "mila", CONTEND, SIMBA_CONTEND, true},
    {"simba_renew_one", "mikla", RENEW_ONE, SIMBA_RENEW, false},
    {"simba_renew", "mikla", RENEW, SIMBA_RENEW, true},
    {"simba_release_one", "mike", RELEASE_ONE, SIMBA_RELEASE, false},
    {"simba_release", "mike", RELEASE, SIMBA_RELEASE, true},
    {"simba_pass", "mftila", PASS, SQL_PASS, false},
    {"simba_evict", "mkiec", EVICT(END_SOON), SIMBA_EVICT, false},
    {"simba_free", "mkiec", EVICT(FREE), POSTGRES_FREE, false},
    {"simba_read", "m", "SELECT @c,@w FROM simba_mutex AS t WHERE mutex=ANY($1::text[])",
     SIMBA_READ, true},
    {"simba_poll", "m",
     "SELECT mutex,owner_id,CASE WHEN mutex='' THEN version ELSE @f END,"
     "transition_at-@n,0,NULL,@w FROM simba_mutex AS t WHERE mutex=ANY($1::text[])",
     SQL_POLL, true},
    {"simba_list", "m", "SELECT @c,0 FROM simba_mutex AS t " LISTED, SIMBA_LIST, false},
    {"simba_publish", "miksx", PUBLISH, SIMBA_PUBLISH, false},
    {"simba_read_note", "m", READ_NOTE, SQL_READ_NOTE, true},
    {"simba_list_note", "m",
     "SELECT @c,0,n.note,n.token,@n-n.written_at FROM simba_mutex AS t LEFT JOIN @s AS n "
     "ON n.mutex=t.mutex COLLATE \"C\" " LISTED,
     SQL_LIST_NOTE, false},
    {NULL, "", "CREATE TABLE IF NOT EXISTS @s@b", SQL_MAKE_NOTES, false},
    {"simba_digest", "",
     "SELECT '','',abs(coalesce(sum(hashtext(mutex||'/'||owner_id||'/'||@f)::bigint),0)),"
     "1,0,NULL,0 FROM simba_mutex WHERE transition_at>@n AND owner_id<>'' AND mutex<>''",
     SQL_DIGEST, false},
    {"simba_count_eviction", "m", /* for those who cannot listen */
     "INSERT INTO simba_mutex AS t(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
     "VALUES('',0,0,0,$1::text,1)ON CONFLICT(mutex)DO UPDATE SET "
     "owner_id=EXCLUDED.owner_id,version=(t.version+1)%2147483647",
     SQL_COUNT_EVICTION, false},
    {"simba_observe", "o",
     "INSERT INTO simba_mutex AS t(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
     "VALUES('',0,0,@n+$1::bigint,'',0)ON CONFLICT(mutex)DO UPDATE SET "
     "transition_at=@n+$1::bigint",
     SQL_OBSERVE, false},
    {"simba_mark", "m", "@m", SQL_MARK, true},
    {NULL, "", "LISTEN " POSTGRES_CHANNEL, SQL_LISTEN, false},
};

bool postgres_statements_make(struct postgres_connection *l)
{
    bool failed = false;
    for (int w = 0; w < STATEMENTS; w++) {
        sql_statement_reset(&l->statement[w]);
        sql_statement_fill(&l->statement[w], '@', postgres_statements[w].form, put, &l->table);
        failed = failed || l->statement[w].failed;
    }
    return !failed;
}

int postgres_statements_of_job(const struct sql_job *job)
{
    bool forced = job->op == SIMBA_EVICT && job->item[0].request->forced;
    int op = forced ? POSTGRES_FREE : job->op, w = 0;
    while (postgres_statements[w].op != op || (job->count > 1 && !postgres_statements[w].many)) {
        w++;
        assert(w < STATEMENTS);
    }
    return w;
}
