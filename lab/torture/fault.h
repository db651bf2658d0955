/* fault.h: what simba torture does to workers, connections and servers, by name. */
#ifndef LAB_TORTURE_FAULT_H
#define LAB_TORTURE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Group, name on the command line, what was done (for the page and the table). LIMIT: the documents
 * exclude it, so it happens only on request, and what it breaks is counted apart. */
#define FAULTS(X)                                                                      \
    X(KILL, PROCESS, "kill", "killed")                                                 \
    X(FREEZE, PROCESS, "freeze", "stopped and continued")                              \
    X(RESTART, PROCESS, "restart", "ended in order and restarted")                     \
    X(STOP, API, "stop", "contender stopped and started")                              \
    X(RESIGN, API, "resign", "resigned or released early")                             \
    X(CLOSE, API, "close", "client closed and opened")                                 \
    X(EVICT, API, "evict", "owner evicted")                                            \
    X(DELAY, NETWORK, "delay", "bytes delayed")                                        \
    X(STALL, NETWORK, "stall", "connections stalled")                                  \
    X(SWALLOW, NETWORK, "swallow", "answers dropped")                                  \
    X(CUT, NETWORK, "cut", "cut in the middle of an answer")                           \
    X(TRICKLE, NETWORK, "trickle", "one byte at a time")                               \
    X(REFUSE, NETWORK, "refuse", "connections refused")                                \
    X(RESET, NETWORK, "reset", "connections reset")                                    \
    X(DUPLICATE, NETWORK, "duplicate", "requests sent twice")                          \
    X(SERVER_FREEZE, SERVER, "server-freeze", "server stopped and continued")          \
    X(SERVER_KILL, SERVER, "server-kill", "server killed and restarted")               \
    X(FORGET, SERVER, "forget", "server restarted without its memory")                 \
    X(EMPTY, SERVER, "empty", "server emptied while it ran")                           \
    X(SWAP, SERVER, "swap", "another database came in its place, and went")            \
    X(FAILOVER, SERVER, "failover", "another server took over")                        \
    X(PARTITION, SERVER, "partition", "servers cut off from each other")               \
    X(READ_ONLY, SERVER, "read-only", "server took no writes")                         \
    X(FULL, SERVER, "full", "server had no room")                                      \
    X(CONNECTION_LIMIT, SERVER, "connection-limit", "server took no more connections") \
    X(DISCONNECT, SERVER, "disconnect", "server ended all connections")                \
    X(CLOCK, SERVER, "clock", "server's clock stepped")                                \
    X(EVICT_FORCED, LIMIT, "evict-forced", "owner evicted by force")

enum fault {
#define X(name, group, word, done) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_KINDS
};

enum fault_group {
    GROUP_PROCESS,
    GROUP_API,
    GROUP_NETWORK,
    GROUP_SERVER,
    GROUP_LIMIT,
    FAULT_GROUPS
};

typedef uint32_t fault_set; /* a bit for each */
#define FAULT_BIT(fault) (UINT32_C(1) << (fault))

extern const char *const fault_names[FAULT_KINDS]; /* "kill" */
extern const char *const fault_done[FAULT_KINDS];  /* "killed" */
enum fault_group fault_group_of(enum fault fault);
fault_set faults_of(enum fault_group group);
bool fault_is_limit(enum fault fault); /* the guarantees exclude it */

/* A list with commas: names, groups, none, all (but limits); one with a minus before it is taken
 * away. False: `unknown` is not one of them. */
bool faults_parse(const char *list, fault_set *out, char *unknown, size_t size);

/* All that such a list may name, to suggest one. */
#define FAULT_CHOICES (FAULT_KINDS + FAULT_GROUPS + 2)
void fault_choices(const char *out[FAULT_CHOICES]);
#endif
