/* channel.h: messages between keeper and guard. */
#ifndef CLI_RUN_CHANNEL_H
#define CLI_RUN_CHANNEL_H

#include <simba.h>
#include <stdbool.h>

#include "cli/config.h"

enum message_kind {
    MESSAGE_START,   /* to the guard: run a command; with the liveness descriptor if there is one */
    MESSAGE_LOST,    /* the tenure is over: end the tree; number: the reason */
    MESSAGE_SIGNAL,  /* pass on */
    MESSAGE_STARTED, /* to the keeper: the command runs */
    MESSAGE_FAILED,  /* exec failed: errno */
    MESSAGE_ENDED,   /* the command has ended, others of the tree have not: how many */
    MESSAGE_TERM_SENT, /* the command was asked to end, because the tenure does: the reason */
    MESSAGE_DENIED,    /* all that is left of the tree may not be signalled: how many */
    MESSAGE_EMPTY      /* the tree is gone: the command's wait status */
};

enum job { JOB_CMD, JOB_ON_RELEASED };

struct message {
    enum message_kind kind;
    enum job job;       /* which command; not of LOST, SIGNAL */
    int number;         /* signal, errno, count, wait status; START of on_released: the reason */
    bool is_only;       /* START of CMD: none follows, so the guard ends when the tree is gone */
    bool from_terminal; /* SIGNAL: sent to the whole foreground group */
    uint64_t token;     /* of the tenure; not of LOST, SIGNAL */
    int64_t tick;       /* START of CMD: for which it runs; 0: none */
    char id[SIMBA_ID_MAX + 1]; /* START of CMD: these two */
    char store[URL_MAX];
};

bool channel_send(int fd, const struct message *m, int pass); /* pass: a descriptor; -1: none */
/* 1: a message; 0: the other side is gone; -1: none there. *passed: -1, or a descriptor. */
int channel_receive(int fd, struct message *m, int *passed);
#endif
