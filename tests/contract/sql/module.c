/* module.c: the store by its own interface: evictions of one owner, and rows that a foreign hand
 * has written. */
#include <dlfcn.h>
#include <simba/backend.h>
#include <stdlib.h>
#include <uv.h>

#include "core/url.h"
#include "help.h"

/* ---- a host -------------------------------------------------------------------------------- */

static struct {
    struct simba_host host;
    uv_loop_t loop;
    const struct simba_backend *backend;
    void *store;
    struct database d;
    struct simba_url url;
    int open; /* requests */
    bool closed;
    bool bytes; /* the database knows no characters: what initdb makes where no locale is set */
    struct simba_answer last;
    char id[SIMBA_ID_MAX + 1];
    char found[1024]; /* MUTEX/ID/evicted, one after the other */
} me;

static void on_answer(struct simba_host *host, struct simba_request *q,
                      const struct simba_answer *answer)
{
    (void)host;
    (void)q;
    me.last = *answer;
    snprintf(me.id, sizeof me.id, "%s", answer->id != NULL ? answer->id : "");
    me.open--;
}

static void on_found(struct simba_host *host, struct simba_request *q,
                     const struct simba_found *found)
{
    (void)host;
    (void)q;
    size_t n = strlen(me.found);
    snprintf(me.found + n, sizeof me.found - n, "%s/%s%s ", found->mutex, found->id,
             found->evicted ? "/evicted" : "");
}

static void on_hint(struct simba_host *host, const char *mutex)
{
    (void)host;
    (void)mutex;
}

static void on_log(struct simba_host *host, enum simba_level level, const char *line)
{
    (void)host;
    (void)level;
    (void)line;
}

static void on_closed(struct simba_host *host)
{
    (void)host;
    me.closed = true;
}

/* Nobody waits or observes here. */
static enum simba_interest no_interest(struct simba_host *host, const char *mutex)
{
    (void)host;
    (void)mutex;
    return SIMBA_NO_INTEREST;
}

static void none_watched(struct simba_host *host, const char *mutex, simba_watched_fn *each,
                         void *data)
{
    (void)host;
    (void)mutex;
    (void)each;
    (void)data;
}

static void load(void)
{
    char path[512];
    const char *folder = getenv("SIMBA_MODULE_PATH");
    const struct simba_backend *(*entry)(void);
    if (folder == NULL)
        suite_skip("needs SIMBA_MODULE_PATH");
    snprintf(path, sizeof path, "%s/simba-%s.so", folder, sql_is_mysql() ? "mysql" : "postgres");
    void *module = dlopen(path, RTLD_NOW);
    if (module == NULL)
        suite_fail(__FILE__, __LINE__, dlerror());
    void *symbol = dlsym(module, SIMBA_MODULE_ENTRY);
    CHECK(symbol != NULL);
    memcpy(&entry, &symbol, sizeof entry);
    me.backend = entry();
}

/* The parser of URLs is not public, so this one is put together by hand. */
static void begin(bool jvm, bool fences, bool returning)
{
    static char path[64], host[] = "127.0.0.1", password[] = "geheim", off[] = "off";
    static char name[] = "returning", scheme[] = "mysql";
    char why[256];
    load();
    database_make(&me.d);
    if (me.bytes) /* from the next connection on */
        sql_run(&me.d, "UPDATE pg_database SET encoding=0 WHERE datname='%s'", me.d.name);
    if (jvm)
        sql_make_table(&me.d, fences);
    snprintf(path, sizeof path, "/%s", me.d.name);
    me.url = (struct simba_url){.scheme = scheme,
                                .user = me.d.name,
                                .password = password,
                                .path = path,
                                .hosts = 1,
                                .host = {{host, me.d.port}},
                                .options = returning || !sql_is_mysql() ? 0 : 1,
                                .option = {{name, off}}};
    CHECK(uv_loop_init(&me.loop) == 0);
    me.host = (struct simba_host){.version = SIMBA_BACKEND_VERSION,
                                  .loop = &me.loop,
                                  .connect_timeout_ms = 5000,
                                  .command_timeout_ms = 3000,
                                  .answer = on_answer,
                                  .found = on_found,
                                  .hint = on_hint,
                                  .log = on_log,
                                  .closed = on_closed,
                                  .interest = no_interest,
                                  .watched = none_watched};
    me.closed = false;
    if (me.backend->open(&me.host, &me.url, &me.store, why, sizeof why) != 0)
        suite_fail(__FILE__, __LINE__, why);
}

static void end(void)
{
    me.backend->close(me.store);
    while (!me.closed)
        uv_run(&me.loop, UV_RUN_ONCE);
    uv_run(&me.loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&me.loop) == 0);
    database_drop(&me.d);
}

static int ask(struct simba_request q)
{
    q.ttl_ms = 20000;
    q.transition_ms = 10000;
    me.open = 1;
    me.found[0] = '\0';
    me.backend->submit(me.store, &q);
    while (me.open > 0)
        uv_run(&me.loop, UV_RUN_ONCE);
    return me.last.code;
}

static int tenure(enum simba_op op, const char *id, uint64_t token)
{
    return ask((struct simba_request){.op = op, .mutex = "m", .id = id, .token = token});
}

static int evict(const char *id, uint64_t token, bool forced)
{
    return ask((struct simba_request){
        .op = SIMBA_EVICT, .mutex = "m", .id = id, .token = token, .forced = forced});
}

static void put_row(const char *owner, int version)
{
    sql_run(&me.d, "DELETE FROM simba_mutex");
    sql_run(&me.d,
            "INSERT INTO simba_mutex(mutex,acquired_at,ttl_at,transition_at,owner_id,version) "
            "VALUES ('m',%s,%s+60000,%s+90000,'%s',%d)",
            sql_now, sql_now, sql_now, owner, version);
}

/* ---- evictions ----------------------------------------------------------------------------- */

/* Its true owner is told until the lease has run out, whatever its id is like, and may give it
 * back. */
static void evicted_shows(const char *id)
{
    char found[256];
    CHECK(tenure(SIMBA_CONTEND, id, 0) == 0 && me.last.granted && !me.last.evicted);
    uint64_t token = me.last.token;
    CHECK(evict("", token + 1, false) == SIMBA_ELOST);
    CHECK(evict("", token, false) == 0);
    CHECK(evict("", 0, false) == 0); /* twice is once */
    CHECK(tenure(SIMBA_READ, "", 0) == 0);
    CHECK(strcmp(me.id, id) == 0 && me.last.evicted && me.last.token == token);
    CHECK(me.last.left_ms > 0);
    CHECK(tenure(SIMBA_CONTEND, "another", 0) == 0 && !me.last.granted);
    CHECK(strcmp(me.id, id) == 0 && me.last.evicted && me.last.token == token);
    CHECK(ask((struct simba_request){.op = SIMBA_LIST, .mutex = "", .id = ""}) == 0);
    snprintf(found, sizeof found, "m/%s/evicted ", id);
    CHECK(strcmp(me.found, found) == 0);
    CHECK(tenure(SIMBA_RENEW, id, token) == SIMBA_ELOST);
    /* Whoever compares the id only, as JVM owners do, cannot renew either. */
    CHECK(sql_number(&me.d, "SELECT COUNT(*) FROM simba_mutex WHERE mutex='m' AND owner_id='%s'",
                     id) == 0);
    CHECK(tenure(SIMBA_RELEASE, id, token) == 0);
    CHECK(tenure(SIMBA_READ, "", 0) == 0 && me.id[0] == '\0' && !me.last.evicted);
}

static void evicted_ids(bool any_text)
{
    char longest[SIMBA_ID_MAX + 1];
    memset(longest, 'x', sizeof longest);
    longest[SIMBA_ID_MAX] = '\0';
    evicted_shows("nightly@web1");
    evicted_shows("~ightly@web1");
    evicted_shows("!");
    evicted_shows("\xc3\xa4");
    evicted_shows("\xe2\x82\xacuro");
    evicted_shows(longest);
    if (!any_text)
        return;
    evicted_shows("\xf0\x9f\x98\x80 smiles");
    memcpy(longest, "\xf0\x9f\x98\x80", 4);
    evicted_shows(longest);
}

static void sql_evicted_id_is_shown(void)
{
    begin(false, true, true);
    evicted_ids(true);
    end();
    begin(true, false, true); /* and on tables of JVM Simba's, whose text is Latin-1 */
    evicted_ids(false);
    end();
    begin(true, true, false);
    evicted_ids(false);
    end();
}

/* The first character of an id may be several bytes, which such a database takes for as many
 * characters. */
static void sql_evict_without_encoding(void)
{
    if (sql_is_mysql())
        suite_skip("every table has a character set");
    me.bytes = true;
    begin(false, true, true);
    evicted_ids(true);
    end();
    me.bytes = false;
}

/* Only the owner that was meant. */
static void sql_evict_one_owner(void)
{
    for (int forced = 0; forced < 2; forced++) {
        begin(forced != 0, false, true);
        CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && me.last.granted);
        uint64_t token = me.last.token;
        CHECK(evict("two", 0, forced) == SIMBA_ELOST);
        CHECK(evict("two", token, forced) == SIMBA_ELOST);
        CHECK(evict("One", token, forced) == SIMBA_ELOST);
        CHECK(evict("one", token + 1, forced) == SIMBA_ELOST);
        CHECK(tenure(SIMBA_RENEW, "one", token) == 0);
        CHECK(evict("one", 0, false) == 0);
        CHECK(evict("one", token, forced) == 0); /* also after it was evicted */
        CHECK(tenure(SIMBA_RENEW, "one", token) == SIMBA_ELOST);
        end();
    }
}

/* ---- foreign rows -------------------------------------------------------------------------- */

/* What JVM Simba 3 does each time it renews. */
static void renew_as_jvm(void)
{
    sql_run(&me.d,
            "UPDATE simba_mutex SET acquired_at=%s,ttl_at=%s+60000,transition_at=%s+90000,"
            "version=version+1 WHERE mutex='m' AND owner_id='0:1@jvm'",
            sql_now, sql_now, sql_now);
}

/* A JVM owner's renewals are no new tenures; and it has not got the token of an earlier one. */
static void sql_jvm_renewal(void)
{
    if (!sql_is_mysql())
        suite_skip("JVM Simba knows MariaDB and MySQL");
    for (int fences = 0; fences < 2; fences++) {
        begin(true, fences != 0, true);
        CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && me.last.granted);
        uint64_t token = me.last.token;
        CHECK(tenure(SIMBA_READ, "", 0) == 0 && me.last.token == token);
        CHECK(tenure(SIMBA_RELEASE, "one", token) == 0);
        /* That was a while ago; then a JVM contender has taken it. */
        sql_run(&me.d, fences ? "UPDATE simba_mutex SET fencing_token=fencing_token-100000000,"
                                "owner_id='0:1@jvm' WHERE mutex='m'"
                              : "UPDATE simba_mutex SET version=version-100,owner_id='0:1@jvm' "
                                "WHERE mutex='m'");
        for (int i = 0; i < 3; i++) {
            renew_as_jvm();
            CHECK(tenure(SIMBA_READ, "", 0) == 0 && strcmp(me.id, "0:1@jvm") == 0);
            CHECK(me.last.token == 0 && !me.last.evicted);
        }
        CHECK(evict("0:1@jvm", 0, false) == 0);
        CHECK(tenure(SIMBA_READ, "", 0) == 0 && strcmp(me.id, "0:1@jvm") == 0 && me.last.evicted);
        CHECK(evict("0:1@jvm", 0, true) == 0);
        CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && me.last.granted);
        end();
    }
}

/* 128 characters are more than 128 bytes: such an owner is one as others are, and its id is
 * shown cut. */
static void sql_long_owner(void)
{
    char owner[2 * 128 + 1] = "", cut[SIMBA_ID_MAX + 1] = "";
    for (int i = 0; i < 128; i++)
        memcpy(owner + 2 * i, "\xc3\xa4", 2);
    memcpy(cut, owner, 124);
    strcpy(cut + 124, "\xe2\x80\xa6");
    begin(false, true, true);
    CHECK(tenure(SIMBA_READ, "", 0) == 0); /* there is a table */
    put_row(owner, 41);
    CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && !me.last.granted && strcmp(me.id, cut) == 0);
    CHECK(evict("\xc3\xa4\xe2\x80\xa6\xe2\x80\xa6", 0, true) == SIMBA_ELOST);
    CHECK(evict(cut, 0, true) == 0);
    CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && me.last.granted);
    end();
}

/* Numbers that make no sense end nothing, and nobody is granted what they hold. */
static void sql_absurd_row(void)
{
    static const char *const times[] = {"9223372036854775807", "4102444800000"};
    begin(false, true, true);
    CHECK(tenure(SIMBA_READ, "", 0) == 0);
    for (int i = 0; i < 2; i++) {
        put_row("x", 1);
        sql_run(&me.d, "UPDATE simba_mutex SET acquired_at=%s,ttl_at=%s,transition_at=%s", times[i],
                times[i], times[i]);
        CHECK(tenure(SIMBA_CONTEND, "one", 0) == 0 && !me.last.granted && strcmp(me.id, "x") == 0);
        CHECK(me.last.left_ms > 0 && me.last.left_ms < INT64_MAX / 1000000);
    }
    if (sql_is_mysql()) {
        sql_run(&me.d, "UPDATE simba_mutex SET transition_at=18446744073709551615");
        CHECK(tenure(SIMBA_READ, "", 0) == 0 && strcmp(me.id, "x") == 0 && me.last.left_ms > 0);
        sql_run(&me.d, "UPDATE simba_mutex SET transition_at=0,fencing_token=~0");
    } else {
        sql_run(&me.d, "UPDATE simba_mutex SET transition_at=0,fencing_token=9223372036854775807");
    }
    CHECK(tenure(SIMBA_CONTEND, "one", 0) < 0 && !me.last.granted); /* no token is left */
    end();
}

const struct test sql_module_tests[] = {
    {"sql_evicted_id_is_shown", sql_evicted_id_is_shown, SQL_ONLY, 0},
    {"sql_evict_without_encoding", sql_evict_without_encoding, SQL_ONLY, 0},
    {"sql_evict_one_owner", sql_evict_one_owner, SQL_ONLY, 0},
    {"sql_jvm_renewal", sql_jvm_renewal, SQL_ONLY, 0},
    {"sql_long_owner", sql_long_owner, SQL_ONLY, 0},
    {"sql_absurd_row", sql_absurd_row, SQL_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
