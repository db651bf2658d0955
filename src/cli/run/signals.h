/* signals.h: signals come through a descriptor. */
#ifndef CLI_RUN_SIGNALS_H
#define CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct signalfd_siginfo;

struct signals {
    int fd;                /* signalfd of what we forward */
    sigset_t mask;         /* as it was when we were started, for CMD */
    bool ignores_children; /* SIGCHLD was ignored, likewise */
};

/* From here on signals are read from s->fd, those that were ignored stay so. False: see errno. */
bool signals_take(struct signals *s);
/* While nothing is to be undone, those that end us do so at once: while yes, in this thread. */
void signals_let_end(const struct signals *s, bool yes);
void signals_give_back(const struct signals *s); /* in CMD, before exec */

bool signal_ends(int signal); /* TERM INT HUP QUIT */
bool signal_is_from_terminal(
    const struct signalfd_siginfo *info); /* to its whole foreground group */
const char *signal_name(int signal);      /* "TERM", or "signal 34" */
int signal_by_name(const char *name);     /* TERM, SIGTERM, 15; -1: none */
_Noreturn void die_of(int signal);
#endif
