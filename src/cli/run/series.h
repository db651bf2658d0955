/* series.h: the keeper of elect and schedule: commands one after the other. */
#ifndef CLI_RUN_SERIES_H
#define CLI_RUN_SERIES_H

#include <pthread.h>
#include <simba.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/channel.h"

struct plan;
struct outcome;

/* The keeper of a series. The main thread runs it; callbacks and work, on the library's threads, hand
 * their commands to it and wait. */
struct series {
    struct plan *p;
    simba_contender *contender; /* set before series_run, and so are, for series_launch: */
    void *data;
    bool (*judge)(void *data, const struct outcome *o); /* on the main thread; false: step down */

    int link; /* -1: there are no commands to be run */
    pid_t guard;
    int wake;
    int64_t hold_until;
    uint64_t tenure; /* whose CMD was sent to the guard … */
    bool is_led;     /* … and whose last was not */
    bool is_stopping;
    int64_t again_at; /* contend again then; 0: as usual */

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t done;
    struct {
        enum job kind;
        uint64_t token;
        bool is_wanted, is_sent, is_over, is_told;
        bool is_detached;         /* nobody waits for its end: judge() hears of it */
        enum simba_reason reason; /* why the tenure is over; of last, or while CMD runs */
        int64_t until;            /* for the guard to have it ended */
        int status, error;
    } job;
    uint64_t last_done;      /* of this tenure, last has been run */
    uint64_t ended_by_guard; /* the tenure whose lease could not be kept */
    bool is_dead;            /* the guard */
    enum {
        STAY,
        STEP_ASIDE,
        STEP_DOWN
    } step;      /* lead no more, and try again: at once, after a ttl */
    bool is_end; /* and with this exit code: */
    int code;
};

/* What became of a command. */
struct outcome {
    bool is_run;  /* else the tenure had ended before */
    bool is_lost; /* it was told to end */
    int error;    /* of exec */
    int code;     /* as lock would exit */
};

/* Takes the signals and forks the guard, if there is anything to run; before any thread. 0, or an
 * exit code after saying why. */
int series_begin(struct series *s, struct plan *p);

/* Contends until a signal, and hands over in order. The exit code. */
int series_run(struct series *s);

/* On a thread of the library's: */
struct outcome series_perform(struct series *s, enum job kind, uint64_t token,
                              enum simba_reason reason);
void series_launch(struct series *s, uint64_t token); /* CMD, without waiting for its end … */
void series_await(struct series *s, uint64_t token, enum simba_reason reason); /* … until here */
/* Why a tenure is over, where the library says `reason`: it does not know that we stopped it because the
 * lease could not be kept. */
enum simba_reason series_reason(struct series *s, uint64_t token, enum simba_reason reason);
void series_end(struct series *s, int code);
void series_flush(struct series *s); /* stdout; if nobody reads it, that is the end */
#endif
