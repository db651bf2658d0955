/* follow.h: who owns what, as observers tell it, put together to tenures that begin and end.
 *
 * Threads: observers call follow_take() from several. One lock, that of the struct follow, is held
 * while the sink is called, so that it hears of all changes in one order. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <pthread.h>
#include <simba.h>
#include <stdbool.h>

#include "base/hash_table.h"

#define FOLLOWED_MAX 1000000 /* mutexes; of more, what is new is not followed */

enum tenure_state {
    TENURE_ON,
    TENURE_ENDED, /* for a reason that was seen */
    TENURE_UNSEEN /* it is over, but nobody saw when and why */
};

/* A tenure, seen from outside. Times are milliseconds since 1970. */
struct seen_tenure {
    uint64_t token;     /* 0: unknown */
    int64_t began_ms;   /* if !began_known: it was on then, and may have begun earlier */
    int64_t ended_ms;   /* UNSEEN: when it was last known to be on */
    int64_t over_by_ms; /* UNSEEN: when it was known to be over; 0: nobody knows */
    int64_t row;        /* of the history file; 0: none */
    char *note;         /* NULL: none; of struct followed, else whose tenure it is */
    enum tenure_state state;
    enum simba_reason reason; /* of one that has ended */
    bool began_known;
    char mutex[SIMBA_MUTEX_MAX + 1];
    char id[SIMBA_ID_MAX + 8];
};

/* A mutex. */
struct followed {
    struct hash_node node;     /* its name is that of the tenure */
    struct seen_tenure tenure; /* the one that is on, if is_on */
    bool is_on;
    bool is_confirmed; /* an observer of this process has told of it */
    bool evicted;      /* an operator ends it */
    int64_t until;     /* simba_now() at which its lease ends, as it was last heard */
    int64_t waiters;   /* -1: unknown */
    uint64_t listed;   /* the last list that had it */
    uint64_t change;   /* of serve/model.c: the number of its last change … */
    bool is_pending;   /* … which is to be told yet */
};

/* What the sink is told of: a tenure began, something else changed, a tenure is over. The tenure may be
 * changed: its row. After ENDED the mutex may go; what is needed of it is copied. */
enum follow_event { FOLLOW_BEGAN, FOLLOW_CHANGED, FOLLOW_ENDED, FOLLOW_GONE };
typedef void follow_sink(void *data, enum follow_event what, struct followed *m,
                         struct seen_tenure *tenure);

struct follow {
    pthread_mutex_t lock;
    struct hash_table by_name;
    follow_sink *sink;
    void *data;
    simba_client *client; /* of follow_begin() */
    bool is_age_asked;    /* an owner was read, so that it is known … */
    bool knows_age;       /* … whether the store says when a tenure began */
    size_t on;            /* tenures that are on */
    uint64_t lists;       /* how often it was listed */
    bool is_full;         /* FOLLOWED_MAX, or no memory: something is not followed */
};

int follow_init(struct follow *f, follow_sink *sink, void *data); /* 0, SIMBA_ELIMIT */

/* Before all else: a tenure of an earlier recording that had not ended then; copied. */
void follow_resume(struct follow *f, const struct seen_tenure *t);

/* Asks the store who owns what, before observers are created: so it is known of which tenures the
 * store does not say when they began, and which of those to resume are over. Names: only these; those
 * to resume of other names are over for us. 0, or an error as of simba_list(). [blocks] */
int follow_begin(struct follow *f, simba_client *client, char *const *names, size_t count);

/* What on_changed of an observer was told. */
void follow_take(struct follow *f, const char *mutex, const struct simba_state *s);

/* Was it on before it was followed, on a store that does not say since when? Before follow_take(). */
bool follow_was_on(struct follow *f, const char *mutex, const struct simba_owner *o);
/* Does the store say since when a mutex is held? After follow_take() of one that is. */
bool follow_knows_age(struct follow *f);

/* Lists again: who waits, until when leases last; and what is to be resumed and that neither an observer
 * nor the store knows is over. 0, or an error. [blocks] */
int follow_list(struct follow *f, simba_client *client);

/* Is there a tenure to resume of which no observer has told yet? Then list again, later. */
bool follow_is_unconfirmed(struct follow *f);

/* "held", "evicted" or "free", as simba status says. */
const char *followed_state(const struct followed *m);
#endif
