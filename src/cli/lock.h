/* lock.h: the processes behind `simba lock NAME CMD`.
 *
 *     keeper   the process that was started: holds the lock and renews it      keeper.c
 *       guard  its child, forked before any thread exists: does no I/O on      guard.c
 *              the store, only watches a clock that the keeper feeds
 *         CMD  and whatever it starts: the tree                               tree.c
 *
 * If the keeper dies or is stopped, the guard ends the tree before the mutex can be another's; if
 * the guard dies, the keeper does. Both are subreapers, so that no process gets out of the tree by
 * losing its parent, and the guard has a process group of its own, so that what stops the job does
 * not stop it. All times are nanoseconds on CLOCK_BOOTTIME. */
#ifndef CLI_LOCK_H
#define CLI_LOCK_H

#include <signal.h>
#include <sys/types.h>

#include "cli.h"

#define NS_PER_MS INT64_C(1000000)

enum rest_policy { REST_HOLD, REST_KILL, REST_LEAVE };

/* What is to be done, known before anything is forked. */
struct plan {
    struct cli *c;
    const char *mutex;
    char **argv; /* CMD; NULL: hold until a signal */
    int64_t wait_ms;
    int conflict_code;
    int64_t kill_after; /* from telling CMD to killing it */
    int signal;         /* how CMD is told */
    bool close_live;    /* CMD does not inherit the liveness descriptor */
    enum rest_policy rest;

    sigset_t mask;         /* as it was when we were started, for CMD */
    bool ignores_children; /* SIGCHLD was ignored, likewise */
    int signals;           /* signalfd of what we forward */
};

int64_t now_ns(void);

/* ---- signals.c ------------------------------------------------------------------------------- */

/* From here on signals are read from p->signals, those that were ignored stay so. */
bool signals_take(struct plan *p);
void signals_give_back(const struct plan *p); /* in CMD, before exec */
bool signal_ends(int signal);                 /* TERM INT HUP QUIT */
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

/* ---- link: between keeper and guard ---------------------------------------------------------- */

enum link_kind {
    LINK_START,   /* to the guard: run CMD; with the liveness descriptor if there is one */
    LINK_HOLD,    /* the lease holds until then */
    LINK_LOST,    /* it cannot be kept: end the tree */
    LINK_SIGNAL,  /* pass on */
    LINK_STARTED, /* to the keeper: CMD runs */
    LINK_FAILED,  /* exec failed: errno */
    LINK_ENDED,   /* CMD has ended, others of the tree have not: how many */
    LINK_TOLD,    /* CMD was told to end, because the lease ends */
    LINK_EMPTY    /* the tree is gone: CMD's wait status */
};

struct link_message {
    enum link_kind kind;
    int number;         /* signal, errno, count or wait status */
    bool from_terminal; /* SIGNAL: sent to the whole foreground group */
    int64_t hold_until;
    uint64_t token; /* START … */
    char id[SIMBA_ID_MAX + 1];
    char store[URL_MAX];
};

bool link_send(int fd, const struct link_message *m, int pass); /* pass: a descriptor; -1: none */
/* 1: a message; 0: the other side is gone; -1: none there. *passed: -1, or a descriptor. */
int link_receive(int fd, struct link_message *m, int *passed);

/* ---- guard.c and keeper.c -------------------------------------------------------------------- */

pid_t guard_fork(const struct plan *p, int *link); /* -1: errno */
void guard_end(pid_t guard);                       /* when there is nothing left to guard */
void drop_stdio(void);                             /* stdin and stdout are CMD's alone */

/* Runs CMD under the lock, until nothing is left of it and the lock is released. The exit code. */
int keep(struct plan *p, simba_locker *l, int lost, int link, pid_t guard);
#endif
