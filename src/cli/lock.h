/* lock.h: the processes behind `simba lock NAME CMD`, and behind elect and schedule.
 *
 *     keeper   the process that was started: holds the lock and renews it      keeper.c
 *       guard  its child, forked before any thread exists: does no I/O on      guard.c
 *              the store, only watches a clock that the keeper feeds
 *         CMD  and whatever it starts: the tree                               tree.c
 *
 * If the keeper dies or is stopped, the guard ends the tree before the mutex can be another's; if
 * the guard dies, the keeper does. Both are subreapers, so that no process gets out of the tree by
 * losing its parent, and the guard has a process group of its own, so that what stops the job does
 * not stop it. Nobody but these is below the keeper (relay.c). All times are nanoseconds on CLOCK_BOOTTIME.
 *
 * `lock` runs one CMD (keeper.c). `elect` and `schedule` run many, one after the other, by the same
 * guard (series.c); a plan may have a second command, `last`, which follows CMD when the tenure ends,
 * however it ends: if the keeper cannot say so any more, the guard runs it by itself. */
#ifndef CLI_LOCK_H
#define CLI_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "cli.h"

#define NS_PER_MS INT64_C(1000000)

enum rest_policy { REST_HOLD, REST_KILL, REST_LEAVE };

/* What is to be done, known before anything is forked. */
struct plan {
    struct cli *c;
    const char *mutex;
    char **argv; /* CMD; NULL: hold until a signal */
    char **last; /* a series: at the end of the tenure; NULL: nothing */
    bool is_series;
    bool to_stderr; /* a series: what it prints is no data */
    bool fail_fast; /* a series: the store must answer at the start */
    int64_t wait_ms;
    int conflict_code;
    const char *kill_after_given; /* as the option has it; NULL: default */
    int64_t kill_after;           /* from telling CMD to killing it */
    int signal;                   /* how CMD is told */
    bool close_live;              /* CMD does not inherit the liveness descriptor */
    enum rest_policy rest;

    sigset_t mask;         /* as it was when we were started, for CMD */
    bool ignores_children; /* SIGCHLD was ignored, likewise */
    int signals;           /* signalfd of what we forward */

    /* The lease holds until then. In memory that keeper and guard share: the keeper writes, the guard reads,
     * so a guard that was stopped knows the latest when it goes on. Set by guard_fork(). */
    _Atomic int64_t *deadline;
};

int64_t now_ns(void);

/* ---- signals.c ------------------------------------------------------------------------------- */

/* From here on signals are read from p->signals, those that were ignored stay so. */
bool signals_take(struct plan *p);
void signals_give_back(const struct plan *p); /* in CMD, before exec */
bool signal_ends(int signal);                 /* TERM INT HUP QUIT */
struct signalfd_siginfo;
bool signal_is_from_terminal(
    const struct signalfd_siginfo *info); /* to its whole foreground group */
_Noreturn void die_of(int signal);
int signal_by_name(const char *name); /* TERM, SIGTERM, 15; -1: none */

/* ---- acquire.c ------------------------------------------------------------------------------- */

/* Waits for the lock. ACQUIRED, or an exit code after saying why; *signal: what ended the wait. */
enum { ACQUIRED = -1 };
int acquire(struct plan *p, simba_locker *l, int *signal);

/* ---- tree.c ---------------------------------------------------------------------------------- */

/* Sends a signal to every process below this one but `spare` (0: none); 0: only counts. Returns how
 * many there are; -1: /proc cannot be read. */
int tree_signal(int signal, pid_t spare);

/* In the guard's place: kills it (0: it is dead already) and everything below, until none is left. */
void tree_end(pid_t guard);
void reap_all(pid_t *guard); /* whoever has ended; *guard is 0 then, if it was among them */

/* ---- link: between keeper and guard ---------------------------------------------------------- */

enum link_kind {
    LINK_START,   /* to the guard: run CMD; with the liveness descriptor if there is one */
    LINK_LOST,    /* the tenure is over: end the tree; number: the reason */
    LINK_SIGNAL,  /* pass on */
    LINK_STARTED, /* to the keeper: CMD runs */
    LINK_FAILED,  /* exec failed: errno */
    LINK_ENDED,   /* CMD has ended, others of the tree have not: how many */
    LINK_TOLD,    /* CMD was told to end, because the lease ends */
    LINK_EMPTY    /* the tree is gone: CMD's wait status */
};

enum link_job { JOB_CMD, JOB_LAST };

struct link_message {
    enum link_kind kind;
    enum link_job job;  /* START, STARTED, FAILED, EMPTY of a series */
    int number;         /* signal, errno, count, wait status; START of last: the reason */
    bool from_terminal; /* SIGNAL: sent to the whole foreground group */
    uint64_t token;     /* START … */
    char id[SIMBA_ID_MAX + 1];
    char store[URL_MAX];
};

bool link_send(int fd, const struct link_message *m, int pass); /* pass: a descriptor; -1: none */
/* 1: a message; 0: the other side is gone; -1: none there. *passed: -1, or a descriptor. */
int link_receive(int fd, struct link_message *m, int *passed);

/* ---- relay.c --------------------------------------------------------------------------------- */

/* Before guard_fork(): makes sure that nobody but the guard and CMD's tree comes below this process. Where
 * there may be others it is a new process that returns, while the old one waits for its end and never
 * returns. false: errno. */
bool keeper_apart(struct cli *c);

/* ---- guard.c and keeper.c -------------------------------------------------------------------- */

pid_t guard_fork(struct plan *p, int *link); /* -1: errno */
void guard_end(pid_t guard);                 /* when there is nothing left to guard */
void drop_stdio(void);                       /* stdin and stdout are CMD's alone */

/* ---- plan.c: what lock, elect and schedule have in common -------------------------------------- */

/* Options, for their tables; plan_take() takes them. -1, or an exit code after saying why. */
enum {
    PLAN_KILL_AFTER = 500,
    PLAN_SIGNAL,
    PLAN_FAIL_FAST
}; /* beside a command's own, and the common ones */
#define PLAN_OPTIONS                                                                           \
    {"kill-after", 'k', PLAN_KILL_AFTER, "D",                                                  \
     "from the signal to the kill, if the lease is lost; default 3s or a fifth of the lease"}, \
    {                                                                                          \
        "signal", 0, PLAN_SIGNAL, "SIG", "that signal; default TERM"                           \
    }
#define SERIES_OPTIONS                                                \
    PLAN_OPTIONS,                                                     \
    {                                                                 \
        "fail-fast", 0, PLAN_FAIL_FAST, NULL,                         \
            "exit with 125 if the store does not answer at the start" \
    }
int plan_take(struct plan *p, int id, char *value);

char **shell_argv(char *argv[4], char *text); /* sh -c text; argv */

/* How long the tree is left from the signal to the kill. -1, or an exit code after saying why. */
int plan_kill_after(struct plan *p);

/* Fills in what the configuration says of a handle: 0, or an exit code after saying why. */
int plan_handle(const struct plan *p, struct simba_handle_options *o);
int plan_refused(const struct plan *p, int rc); /* says why there is no handle; the exit code */

int64_t default_kill_after_ms(const struct cli *c);

/* From hold_until to where another may own it. */
int64_t lease_margin(const struct cli *c);

int exit_code_of(int status); /* of waitpid() */

/* Runs CMD under the lock, until nothing is left of it and the lock is released. The exit code. */
int keep(struct plan *p, simba_locker *l, int lost, int link, pid_t guard);

/* ---- series.c: elect and schedule ------------------------------------------------------------- */

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
        enum link_job kind;
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
struct outcome series_perform(struct series *s, enum link_job kind, uint64_t token,
                              enum simba_reason reason);
void series_launch(struct series *s, uint64_t token); /* CMD, without waiting for its end … */
void series_await(struct series *s, uint64_t token, enum simba_reason reason); /* … until here */
/* Why a tenure is over, where the library says `reason`: it does not know that we stopped it because the
 * lease could not be kept. */
enum simba_reason series_reason(struct series *s, uint64_t token, enum simba_reason reason);
void series_step_down(struct series *s); /* let others lead; try again after a ttl */
void series_end(struct series *s, int code);
void series_flush(struct series *s); /* stdout; if nobody reads it, that is the end */
#endif
