/* signals.c: signals come through a descriptor, so that nothing runs in handlers. What was ignored
 * when we were started (nohup) stays ignored, for us and for CMD. */
#include "cli/run/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int handled[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGCONT, SIGCHLD};

bool signals_take(struct signals *s)
{
    struct sigaction before;
    sigset_t read_here, block;
    sigemptyset(&read_here);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        sigaction(handled[i], NULL, &before);
        if (handled[i] == SIGCHLD && before.sa_handler == SIG_IGN) {
            /* Ignored, it would let the kernel throw CMD's status away. */
            s->ignores_children = true;
            before = (struct sigaction){.sa_handler = SIG_DFL};
            sigaction(SIGCHLD, &before, NULL);
        }
        if (before.sa_handler != SIG_IGN)
            sigaddset(&read_here, handled[i]);
    }
    block = read_here;
    sigaddset(&block, SIGPIPE); /* a message that nobody reads is no reason to die … */
    sigaddset(&block, SIGTTOU); /* … and one from the background none to stop */
    if (sigprocmask(SIG_BLOCK, &block, &s->mask) != 0)
        return false;
    s->fd = signalfd(-1, &read_here, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->fd >= 0;
}

void signals_let_end(const struct signals *s, bool yes)
{
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        if (signal_ends(handled[i]) && sigismember(&s->mask, handled[i]) == 0)
            sigaddset(&ending, handled[i]);
    }
    sigprocmask(yes ? SIG_UNBLOCK : SIG_BLOCK, &ending, NULL);
}

void signals_give_back(const struct signals *s)
{
    if (s->ignores_children)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

bool signal_ends(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/* A hang-up goes to the leader of the session alone. */
bool signal_is_from_terminal(const struct signalfd_siginfo *info)
{
    return info->ssi_code == SI_KERNEL && info->ssi_signo != SIGHUP;
}

/* So that whoever started us sees what happened. As PID 1 that has no effect, hence the rest. */
_Noreturn void die_of(int number)
{
    sigset_t set;
    fflush(stdout);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    _exit(128 + number);
}

const char *signal_name(int number)
{
    static char text[24]; /* of one signal, that of --signal */
    const char *known = sigabbrev_np(number);
    if (known != NULL)
        return known;
    snprintf(text, sizeof text, "signal %d", number);
    return text;
}

int signal_by_name(const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);
    if (*name != '\0' && *end == '\0')
        return number > 0 && number < NSIG ? (int)number : -1;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && strcasecmp(known, name) == 0)
            return i;
    }
    return -1;
}
