/* statements.c: the statements.
 *
 * The clock is the server's at the moment of the comparison, clock_timestamp(), and not the beginning of the
 * statement: that may have waited for a lock. So also what is written is computed where a row is changed, and
 * not where the statement begins.
 *
 * Many rows are changed by INSERT ... ON CONFLICT in the order in which they are given, by name, so that two
 * clients do not wait for each other. A row that is made by that, because somebody has deleted it, has ended in
 * 1970. */
#include "backend/postgres/postgres.h"

const struct postgres_form postgres_statements[STATEMENTS] = {
    [STATEMENT_CONTEND] = {"simba_contend", "mila", true},
    [STATEMENT_RENEW] = {"simba_renew", "mikla", true},
    [STATEMENT_RELEASE] = {"simba_release", "mike", true},
    [STATEMENT_CONTEND_ONE] = {"simba_contend_one", "mila", false},
    [STATEMENT_RENEW_ONE] = {"simba_renew_one", "mikla", false},
    [STATEMENT_RELEASE_ONE] = {"simba_release_one", "mike", false},
    [STATEMENT_EVICT] = {"simba_evict", "mkiec", false},
    [STATEMENT_FREE] = {"simba_free", "mkiec", false},
    [STATEMENT_READ] = {"simba_read", "m", true},
    [STATEMENT_POLL] = {"simba_poll", "m", true},
    [STATEMENT_LIST] = {"simba_list", "m", false},
    [STATEMENT_DIGEST] = {"simba_digest", "", false},
    [STATEMENT_RING] = {"simba_ring", "m", false},
    [STATEMENT_LISTEN] = {"simba_listen", "", false},
    [STATEMENT_OBSERVE] = {"simba_observe", "o", false},
    [STATEMENT_MARK] = {"simba_mark", "m", true},
};

/* A token is at least the clock, so that it does not fall when a row is deleted, or an old copy of the table is
 * put in its place: in us where there is a column for it. A version that is the token may be an int; there it is
 * the seconds since 2020. */
#define EVICTED "ttl_at<" SQL_EVICTED_BELOW
#define CLOCK_US "floor(date_part('epoch',clock_timestamp())*1000000)::bigint"
#define CLOCK_S "floor(date_part('epoch',clock_timestamp())-1577836800)::bigint"

/* 1, or an error: the table has got the column for tokens since we have looked at it, and who goes on without
 * would give out lower ones. */
#define STILL_OLD                                                    \
    "(SELECT 1 UNION ALL SELECT 1 FROM pg_attribute WHERE attrelid=" \
    "to_regclass('simba_mutex')AND attname='fencing_token' AND NOT attisdropped)"

/* A mark is a version above the token, so the version of a new tenure is not: its clock is read first. */
static const char *next_token(const struct postgres_table *d)
{
    if (!d->fences)
        return "version=greatest(t.version+1,@u)";
    return d->marks ? "version=greatest(t.version,t.fencing_token)+1,"
                      "fencing_token=greatest(t.version+1,t.fencing_token+1,@u)"
                    : "version=least(t.version::bigint+1,2147483647),"
                      "fencing_token=greatest(t.version::bigint+1,t.fencing_token+1,@u)";
}

/* @n now, @f the column of tokens, @t the next token, @u the least one, @a condition of a new tenure, @w is there a
 * mark?, @k the columns of version and token, @c those of an answer, @o tell observers */
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
    case 'c':
        return "t.mutex,t.owner_id,t.@f,t.transition_at-@n,@n-t.acquired_at,"
               "CASE WHEN t." EVICTED " THEN t.ttl_at END";
    default:
        return "CASE WHEN EXISTS(SELECT FROM simba_mutex AS b WHERE b.mutex='' AND "
               "b.transition_at>@n)THEN pg_notify('" POSTGRES_CHANNEL "',t.mutex)::text END";
    }
}

static void put(struct statement *t, char what, void *data)
{
    sql_statement_fill(t, '@', part(data, what), put, data);
}

#define MANY_CONTEND "unnest($1::text[],$2::text[],$3::bigint[],$4::bigint[])AS q(m,i,l,a)"
#define MANY_RENEW \
    "unnest($1::text[],$2::text[],$3::bigint[],$4::bigint[],$5::bigint[])AS q(m,i,k,l,a)"
#define MANY_RELEASE "unnest($1::text[],$2::text[],$3::bigint[],$4::text[])AS q(m,i,k,e)"

#define INTO "INSERT INTO simba_mutex AS t(mutex,acquired_at,ttl_at,transition_at,owner_id,@k)"

/* Who finds it held, and most do, only reads: a lock on the row would hold up its owner. What is not told
 * was free at first and then another's. */
#define CONTEND(rows, values)                                                                    \
    "WITH q AS(SELECT*FROM " rows "),g AS(" INTO "SELECT m,@n,@n+l,@n+a,i," values " FROM q "    \
    "WHERE NOT EXISTS(SELECT FROM simba_mutex AS h WHERE h.mutex=q.m AND h.transition_at>@n)@a " \
    "ON CONFLICT(mutex)DO UPDATE SET acquired_at=@n,"                                            \
    "ttl_at=@n+EXCLUDED.ttl_at-EXCLUDED.acquired_at,"                                            \
    "transition_at=@n+EXCLUDED.transition_at-EXCLUDED.acquired_at,"                              \
    "owner_id=EXCLUDED.owner_id,@t WHERE t.transition_at<=@n RETURNING t.*)"                     \
    "SELECT @c,1,@o FROM g AS t UNION ALL SELECT @c,@w,NULL FROM simba_mutex AS t,q "            \
    "WHERE t.mutex=q.m AND t.transition_at>@n AND NOT EXISTS(SELECT FROM g WHERE g.mutex=q.m)"

/* For one, who wins most of the time: what is not told is read. */
#define CONTEND_ONE(values)                                                            \
    INTO "SELECT $1::text,@n,@n+$3::bigint,@n+$4::bigint,$2::text," values             \
         " WHERE NOT EXISTS(SELECT FROM simba_mutex AS h WHERE h.mutex=$1::text AND "  \
         "h.transition_at>@n)@a "                                                      \
         "ON CONFLICT(mutex)DO UPDATE SET acquired_at=@n,ttl_at=@n+$3::bigint,"        \
         "transition_at=@n+$4::bigint,owner_id=$2::text,@t WHERE t.transition_at<=@n " \
         "RETURNING @c,1,@o"

#define RENEW(rows, values)                                                                \
    INTO "SELECT m,0,l,a,i," values " FROM " rows                                          \
         " WHERE 1=1@a ON CONFLICT(mutex)DO UPDATE SET ttl_at=@n+EXCLUDED.ttl_at,"         \
         "transition_at=greatest(t.transition_at,@n+EXCLUDED.transition_at)"               \
         "WHERE t.owner_id=EXCLUDED.owner_id AND t.@f=EXCLUDED.@f AND t.transition_at>@n " \
         "RETURNING @c,(t.transition_at>@n)::int"

#define RENEW_ONE                                                                          \
    "UPDATE simba_mutex AS t SET ttl_at=@n+$4::bigint,"                                    \
    "transition_at=greatest(transition_at,@n+$5::bigint)"                                  \
    "WHERE mutex=$1::text AND owner_id=$2::text AND @f=$3::bigint AND transition_at>@n@a " \
    "RETURNING @c,1"

/* NOTIFY follows what has happened, in the same transaction: who is told finds it so. All that notify wait for
 * each other until they are committed, so a release does it only if somebody has left a mark that he waits: a
 * version above the token. */
#define TELL "SELECT mutex,'',0,0,0,NULL,1,pg_notify('" POSTGRES_CHANNEL "',mutex)FROM r"
#define TELL_MARKED                                                      \
    "SELECT mutex,'',0,0,0,NULL,1,CASE WHEN version>fencing_token THEN " \
    "pg_notify('" POSTGRES_CHANNEL "',mutex)::text ELSE @o END FROM r AS t"
#define FREE "acquired_at=0,ttl_at=0,transition_at=0,owner_id=''"
#define RELEASE(rows, tell)                                                               \
    "WITH r AS(UPDATE simba_mutex AS t SET " FREE " FROM " rows " WHERE t.mutex=q.m AND " \
    "t.@f=q.k AND(t.owner_id=q.i OR(t." EVICTED " AND t.owner_id=q.e))@a RETURNING t.*)" tell

#define RELEASE_ONE(tell)                                                              \
    "UPDATE simba_mutex AS t SET " FREE " WHERE mutex=$1::text AND @f=$3::bigint AND(" \
    "owner_id=$2::text OR(" EVICTED " AND owner_id=$4::text))@a "                      \
    "RETURNING mutex,'',0,0,0,NULL,1," tell
#define TOLD "pg_notify('" POSTGRES_CHANNEL "',mutex)"

/* Of the owner's first character: its length, in characters. A database without an encoding takes each byte of
 * our UTF-8 for one; there ascii() is the first byte. */
#define FIRST                                                                              \
    "CASE WHEN getdatabaseencoding()<>'SQL_ASCII' THEN 1 WHEN ascii(owner_id)<192 THEN 1 " \
    "WHEN ascii(owner_id)<224 THEN 2 WHEN ascii(owner_id)<240 THEN 3 ELSE 4 END"

/* Gracefully: the owner's id changes, so that it cannot renew, and the lease runs out. ttl_at says that it has
 * been done, and keeps the character. */
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
    "octet_length(owner_id)>128 AND starts_with(owner_id,$5::text)))RETURNING mutex)" TELL

static const char *form_of(enum postgres_statement w, const struct postgres_table *d)
{
    bool fences = d->fences, marks = d->marks;
    switch (w) {
    case STATEMENT_CONTEND:
        return fences ? CONTEND(MANY_CONTEND, "1,@u") : CONTEND(MANY_CONTEND, "@u");
    case STATEMENT_CONTEND_ONE:
        return fences ? CONTEND_ONE("1,@u") : CONTEND_ONE("@u");
    case STATEMENT_RENEW:
        return fences ? RENEW(MANY_RENEW, "1,k") : RENEW(MANY_RENEW, "k");
    case STATEMENT_RENEW_ONE:
        return RENEW_ONE;
    case STATEMENT_RELEASE:
        return marks ? RELEASE(MANY_RELEASE, TELL_MARKED) : RELEASE(MANY_RELEASE, TELL);
    case STATEMENT_RELEASE_ONE:
        return marks
                   ? RELEASE_ONE("CASE WHEN version>fencing_token THEN " TOLD "::text ELSE @o END")
                   : RELEASE_ONE(TOLD);
    case STATEMENT_EVICT:
        return EVICT(END_SOON);
    case STATEMENT_FREE:
        return EVICT(FREE);
    case STATEMENT_READ:
        return "SELECT @c,@w FROM simba_mutex AS t WHERE mutex=ANY($1::text[])";
    case STATEMENT_POLL:
        return "SELECT mutex,owner_id,CASE WHEN mutex='' THEN version ELSE @f END,"
               "transition_at-@n,0,NULL,@w FROM simba_mutex AS t WHERE mutex=ANY($1::text[])";
    case STATEMENT_LIST:
        return "SELECT @c,0 FROM simba_mutex AS t WHERE transition_at>@n AND owner_id<>'' AND "
               "mutex<>'' AND starts_with(mutex,$1::text)";
    case STATEMENT_DIGEST:
        return "SELECT '','',abs(coalesce(sum(hashtext(mutex||'/'||owner_id||'/'||@f)::bigint),0)),"
               "1,0,NULL,0 FROM simba_mutex WHERE transition_at>@n AND owner_id<>'' AND mutex<>''";
    case STATEMENT_RING: /* for those who cannot listen */
        return "INSERT INTO simba_mutex AS "
               "t(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
               "VALUES('',0,0,0,$1::text,1)ON CONFLICT(mutex)DO UPDATE SET "
               "owner_id=EXCLUDED.owner_id,version=(t.version+1)%2147483647";
    case STATEMENT_MARK: /* of what is held; told is what has a mark then */
        return marks
                   ? "WITH u AS(UPDATE simba_mutex SET version=fencing_token+1 WHERE "
                     "mutex=ANY($1::text[])AND version<=fencing_token AND transition_at>@n "
                     "RETURNING mutex)SELECT mutex,'',0,0,0,NULL,0 FROM u UNION ALL "
                     "SELECT mutex,'',0,0,0,NULL,0 FROM simba_mutex WHERE mutex=ANY($1::text[])AND "
                     "version>fencing_token AND transition_at>@n"
                   : "SELECT mutex,'',0,0,0,NULL,0 FROM simba_mutex WHERE mutex=ANY($1::text[])";
    case STATEMENT_LISTEN:
        return "LISTEN " POSTGRES_CHANNEL;
    default:
        return "INSERT INTO simba_mutex AS "
               "t(mutex,acquired_at,ttl_at,transition_at,owner_id,version)"
               "VALUES('',0,0,@n+$1::bigint,'',0)ON CONFLICT(mutex)DO UPDATE SET "
               "transition_at=@n+$1::bigint";
    }
}

bool postgres_statements_make(struct postgres_connection *l)
{
    bool failed = false;
    for (int w = 0; w < STATEMENTS; w++) {
        sql_statement_reset(&l->statement[w]);
        sql_statement_fill(&l->statement[w], '@', form_of((enum postgres_statement)w, &l->table),
                           put, &l->table);
        failed = failed || l->statement[w].failed;
    }
    return !failed;
}

enum postgres_statement postgres_statements_of_job(const struct sql_job *job)
{
    bool one = job->count == 1;
    switch (job->op) {
    case SIMBA_CONTEND:
        return one ? STATEMENT_CONTEND_ONE : STATEMENT_CONTEND;
    case SIMBA_RENEW:
        return one ? STATEMENT_RENEW_ONE : STATEMENT_RENEW;
    case SIMBA_RELEASE:
        return one ? STATEMENT_RELEASE_ONE : STATEMENT_RELEASE;
    case SIMBA_EVICT:
        return job->item[0].request->forced ? STATEMENT_FREE : STATEMENT_EVICT;
    case SIMBA_LIST:
        return STATEMENT_LIST;
    case SQL_POLL:
        return STATEMENT_POLL;
    case SQL_DIGEST:
        return STATEMENT_DIGEST;
    case SQL_RING:
        return STATEMENT_RING;
    case SQL_LISTEN:
        return STATEMENT_LISTEN;
    case SQL_OBSERVE:
        return STATEMENT_OBSERVE;
    case SQL_MARK:
        return STATEMENT_MARK;
    default:
        return STATEMENT_READ;
    }
}
