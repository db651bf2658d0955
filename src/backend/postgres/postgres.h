/* postgres.h: the store in a PostgreSQL server. See docs/backends/postgres.md.
 *
 *   postgres.c   the URL, and the way into the frame of backend/sql
 *   connect.c    a new connection, on a thread: the session; and its failures
 *   look.c       what its server and table are like; makes the table, or a better one of it
 *   perform.c    a job as a statement, without blocking; what is told unasked
 *   words.c      the statements */
#ifndef BACKEND_POSTGRES_H
#define BACKEND_POSTGRES_H

#include <libpq-fe.h>

#include "backend/sql/health.h"
#include "backend/sql/sql.h"

#define POSTGRES_PARAMETERS 40
#define POSTGRES_CHANNEL "simba"
#define POSTGRES_PATIENT "SET lock_timeout=1000"
#define POSTGRES_IMPATIENT "SET lock_timeout=20"

struct postgres_config {
    /* As libpq takes them, NULL at the end. */
    char *keyword[POSTGRES_PARAMETERS + 1], *value[POSTGRES_PARAMETERS + 1];
    size_t count;
    enum sql_create create;
    enum { LISTEN_AUTO, LISTEN_ON, LISTEN_OFF } listen;
    int64_t command_timeout_ms;
};

enum words {
    WORDS_CONTEND,
    WORDS_RENEW,
    WORDS_RELEASE,
    WORDS_SINGLE, /* from here on those for one mutex */
    WORDS_CONTEND_ONE = WORDS_SINGLE,
    WORDS_RENEW_ONE,
    WORDS_RELEASE_ONE,
    WORDS_EVICT,
    WORDS_FREE, /* evict by force */
    WORDS_READ,
    WORDS_POLL,
    WORDS_LIST,
    WORDS_DIGEST,
    WORDS_RING,
    WORDS_LISTEN,
    WORDS_OBSERVE,
    WORDS_MARK,
    WORDS
};

/* What the table can do, which changes the words of statements. */
struct postgres_table {
    bool fences; /* there is a fencing_token; else the version is the token */
    bool marks;  /* the version can be above the token: somebody waits */
};

struct postgres_link {
    PGconn *conn;
    struct postgres_table table;
    struct sql_health health;
    bool pooled; /* others may use the server's process between our statements */
    bool tells;  /* LISTEN can work */
    bool syncs;  /* synchronous_commit is not off, or we switch it on */
    int notes;   /* in health, about the server */
    /* What is said again is worth being prepared; not behind a pooler. */
    enum { WORDS_NEW, WORDS_SAID, WORDS_PREPARED } known[WORDS];
    bool preparing;
    bool impatient, hurrying; /* lock_timeout is short; is being changed */
    enum sql_end end;
    struct statement words[WORDS];
};

extern const struct simba_backend postgres_backend;
extern const struct sql_driver postgres_driver;

/* connect.c */
void *postgres_dial(const void *config, int *code, char *why);
void postgres_hang_up(void *link);
enum sql_end postgres_explain(const char *state, int *code, const char **help);

struct postgres_dialing {
    struct postgres_link *link;
    const struct postgres_config *config;
    int *code;
    char *why;
    enum sql_end end; /* of the last statement that failed */
};
PGresult *postgres_run(struct postgres_dialing *d, const char *statement); /* NULL: see code, why */

/* look.c: false: see code, why */
bool postgres_look_at_server(struct postgres_dialing *d);
bool postgres_look_at_table(struct postgres_dialing *d);

/* perform.c */
int postgres_perform_begin(struct sql *s, void *link, struct sql_job *job, enum sql_end *end);
int postgres_perform_go_on(struct sql *s, void *link, struct sql_job *job, int events,
                           enum sql_end *end);
bool postgres_perform_idle(struct sql *s, void *link);

/* words.c */
bool postgres_words_make(struct postgres_link *l); /* false: out of memory */
enum words postgres_words_of_job(const struct sql_job *job);
extern const char *const postgres_words_names[WORDS];
extern const int postgres_words_parameters[WORDS];
#endif
