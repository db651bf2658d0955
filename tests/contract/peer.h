/* peer.h: other processes for a test to play with.
 *
 * A peer is this program started anew, because SQLite must not be carried across a fork. It has
 * one client, and on one mutex a contender, a locker, a scheduler and a ledger. It gets a line
 * and answers with one line; nothing is ever sent unasked. It ends when its input does, and dies
 * with the test. */
#ifndef CONTRACT_PEER_H
#define CONTRACT_PEER_H

#include <simba.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_LINE_MAX 8192
#define PEER_FOREVER (-1)

struct peer {
    /* set before peer_start */
    const char *url, *mutex;
    struct simba_handle_options like; /* its lease */
    int64_t command_timeout_ms;       /* 0: the default */
    int64_t boottime_s;               /* not 0: in a time namespace with this offset */
    bool flaky;                       /* SQLite's files can be made to fail */
    const char *boot_id;              /* a file that it sees in place of the kernel's boot id */
    uid_t user;                       /* not 0: it runs as this user, without any group */

    pid_t pid;
    int to, from;
    bool is_ready; /* it has said that its client is open */
    char line[PEER_LINE_MAX];
};

void peer_start(struct peer *p); /* returns at once: several can start together */
void peer_end(struct peer *p);   /* in order; it must not have failed */
void peer_kill(struct peer *p);  /* -9, and it is gone when this returns */
void peer_stop(struct peer *p);  /* SIGSTOP, while it has no lock in files of the store */

/* Waits until it has begun, before anything is asked; false: it has ended. */
bool peer_is_up(struct peer *p);

/* Commands, and what is answered:
 *   start, stop            a code; the contender's
 *   wait                   a code; until the store has answered the contender
 *   token                  the contender's; 0: not owner
 *   owns TOKEN             0 or 1
 *   acquire MS, release    a code; the locker's
 *   held                   the locker's token; 0: not held
 *   read                   a code, a token, the milliseconds left; after a failure its text
 *   count N FILE           a code; counts to N more in the file, guarded by the locker
 *   ledger FILE            a code; see below
 *   work FILE, rest        a code; starts and stops a scheduler that writes a ledger of its works
 *   runs                   how many it has done
 *   fork                   the pid of a child that has all our descriptors and does nothing; it ends
 *                          when the test does
 *   now                    simba_now() there
 *   log                    all warnings and errors so far
 *   fail WHAT              0; from now on what SQLite does to its files fails: read, write, none */
void peer_send(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *peer_reply(struct peer *p, int64_t timeout_ms); /* PEER_FOREVER: the watchdog's */
const char *peer_ask(struct peer *p, const char *command);
long long peer_number(struct peer *p, const char *command); /* the answer's first word */

/* Asks, if no signal has killed it: else this one has, and it is gone. The answer is in p->line. */
bool peer_asked(struct peer *p, const char *command, int signal);

/* Waits until it owns the mutex, as contender; returns the token. */
uint64_t peer_await_owner(struct peer *p);

/* The peer's side: the arguments after --peer. */
int peer_main(int argc, char **argv);
void flaky_register(void);
bool flaky_set(const char *what);

/* ---- a private folder ---------------------------------------------------------------------- */

const char *folder_make(void);             /* of mode 0700; valid until folder_remove() */
const char *folder_path(const char *file); /* a file in it; a few are valid at a time */
void folder_remove(void); /* at the end of a test that passed; else it is left to look at */

/* ---- a ledger: who believed when to be the owner ------------------------------------------- */

#define LEDGER_MAX 4096

/* A tenure was held for certain from the end of the first question that said so to the beginning
 * of the last one. */
struct tenure {
    uint64_t token;
    _Atomic int64_t from, to;
};

/* In a file that all peers map, so that it outlives whoever is killed. */
struct ledger {
    _Atomic int tenures;
    struct tenure tenure[LEDGER_MAX];
};

struct ledger *ledger_map(const char *path); /* makes it if need be; NULL: failed */
void ledger_check(const struct ledger *l);   /* no two at once, and tokens rise with time */

#endif
