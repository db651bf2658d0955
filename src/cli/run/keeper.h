/* keeper.h: the process that holds the mutex while commands run.
 *
 * The main thread runs it: it has the channel to the guard, the signals and the time. A command,
 * of which there is one at a time, comes from the main thread itself (lock) or from a thread of
 * the library's (elect and schedule: candidate.h). */
#ifndef CLI_RUN_KEEPER_H
#define CLI_RUN_KEEPER_H

#include <pthread.h>
#include <simba.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/channel.h"
#include "cli/step.h"

struct run_options;

/* What became of a command. */
struct outcome {
    bool is_run;      /* else the tenure had ended before */
    bool is_lost;     /* it was asked to end, because the tenure ended */
    bool is_signaled; /* a signal that ends us went to it, too */
    int error;        /* of exec */
    int code;         /* as lock would exit */
    const char *why;  /* of is_lost, to show: ", because …"; else "" */
};

struct keeper {
    const struct run_options *opts;

    /* Set before keeper_run(). The main thread calls these, under the lock: */
    void *data;
    const char *id;                                      /* the contender's */
    int64_t (*remaining_ms)(void *data, uint64_t token); /* of that tenure; 0: it is over */
    /* Each turn: the next is in so long at most. False: it is over. */
    bool (*on_turn)(void *data, int *pause_ms);
    void (*on_outcome)(void *data, const struct outcome *o); /* of a command nobody waits for */

    /* The main thread's: */
    int channel;          /* -1: there are no commands to be run, or the guard is dead */
    pid_t guard;          /* 0: none, or it is dead */
    pid_t guard_was;      /* its number, to say it */
    int wake;             /* eventfd: a turn is wanted */
    int64_t hold_until;   /* the right to act ends then, as far as the keeper has heard */
    int64_t right;        /* how long a renewal lets us act, as far as that was seen */
    uint64_t tenure;      /* whose CMD was sent to the guard … */
    bool on_released_due; /* … and whose on_released was not */
    bool is_stopping;     /* by keeper_stop(): that is no loss */
    bool has_ending_signal;

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t changed;
    struct {
        enum job kind;
        uint64_t token;
        int64_t tick; /* of CMD; 0: none */
        bool is_wanted, is_sent, is_over;
        bool is_only;             /* none follows */
        bool term_sent;           /* because the tenure ends */
        bool is_detached;         /* nobody waits for its end: on_outcome() is called */
        enum simba_reason reason; /* why the tenure is over; of on_released, or while CMD runs */
        int64_t until;            /* of on_released: the guard has ended it by then */
        int status, error;
        bool is_denied;  /* nobody is left but who may not be signalled: the guard waits for them */
        int left_behind; /* so many processes, since: */
        int64_t left_since;
    } job;
    uint64_t on_released_done;      /* of this tenure it has been run */
    uint64_t ended_by_guard;        /* the tenure that it has ended, because … */
    enum simba_reason ended_reason; /* … the lease could not be kept, or CMD hangs */
    uint64_t loss_reported;         /* of this tenure it was said that it is lost */
    bool is_guard_dead;
};

/* Takes the signals, forks the guard if there is anything to run, and opens the store; before
 * any thread. guard_end() is the caller's. */
struct step keeper_begin(struct keeper *k, const struct run_options *opts);

/* Runs commands until on_turn() says that it is over. What became of the last one. */
struct outcome keeper_run(struct keeper *k);
void keeper_wake(struct keeper *k); /* any thread: a turn is wanted */
/* In on_turn(): the tenure ends because we want it. CMD is told, unless a signal that ends us went
 * to it. */
void keeper_stop(struct keeper *k);

/* Before keeper_run(): CMD, and nothing after it. */
void keeper_start_only(struct keeper *k, uint64_t token);

/* From a thread of the library's, while the main thread is in keeper_run(): */
struct outcome keeper_perform(struct keeper *k, enum job kind, uint64_t token,
                              enum simba_reason reason);
struct outcome keeper_perform_tick(struct keeper *k, uint64_t token, int64_t tick); /* CMD */
void keeper_launch(struct keeper *k, uint64_t token); /* CMD: returns when the guard has it … */
void keeper_await(struct keeper *k, uint64_t token, enum simba_reason reason); /* … until its end */

/* Says that a tenure was lost, and why, unless that was said, or will be because a command runs. */
void keeper_report_loss(struct keeper *k, uint64_t token, enum simba_reason reason);

/* Why a tenure is over, where the library says `reason`: it does not know why we have stopped it. */
enum simba_reason keeper_reason(struct keeper *k, uint64_t token, enum simba_reason reason);
#endif
