/* torture.h: what the torturer and its workers know of a run, and the page through which it asks
 * them for something.
 *
 * The torturer has no thread and no client: it forks workers for as long as it runs, and neither
 * survives a fork. So each worker opens a client of its own, and what an operator does (evict) is
 * done by a process of its own, too. */
#ifndef LAB_TORTURE_TORTURE_H
#define LAB_TORTURE_TORTURE_H

#include <limits.h>
#include <stdatomic.h>

#include "cli/cli.h"
#include "core/period.h"
#include "lab/torture/endpoint.h"
#include "lab/torture/fault.h"
#include "lab/torture/history.h"
#include "lab/torture/plan.h"
#include "lab/torture/server.h"

#define WORKERS_MAX 64
#define MUTEXES_MAX 32

/* Mapped into all processes of a run. An order is a number that grows, a fault and a mutex. */
struct control {
    struct {
        _Atomic uint64_t order;
        _Atomic uint32_t last_life; /* lives below this end in order */
    } worker[WORKERS_MAX + 1];
    struct {
        _Atomic uint64_t tenures;
        _Atomic int64_t owned_at; /* when somebody last found that it owns it */
    } mutex[MUTEXES_MAX];
    /* Of the process that has tried the store. */
    int64_t lease_ms;
    char store[URL_MAX];
};

/* A proxy for each server, with a route for each worker. */
struct torture_network {
    struct endpoints servers;
    struct proxy *proxies[ENDPOINTS_MAX];
    size_t count; /* 0: workers reach the store directly */
};

struct torture {
    struct cli *c;
    size_t workers, mutexes;
    int64_t length; /* of the faults */
    uint64_t seed;
    fault_set faults;
    const char *faults_text; /* as they were chosen; NULL: all that can be done here */
    bool is_same_id, is_strict, has_limits;
    bool is_lying;    /* worker 0 claims to own what it does not: the judge must find it */
    const char *html; /* NULL: no page is written */

    struct period period;
    int64_t lease;         /* as the store keeps it */
    size_t record_entries; /* room for so many in each record */
    char folder[64];       /* of the records */
    char prefix[40];       /* of the mutexes */
    struct control *control;
    struct torture_network network;
    struct torture_server *server; /* NULL: its owner allows for no faults */
};

/* The name of a mutex; out holds SIMBA_MUTEX_MAX + 1 bytes. */
const char *torture_mutex(const struct torture *t, unsigned mutex, char *out);
void torture_record_path(const struct torture *t, unsigned worker, unsigned life, char *out,
                         size_t size);
struct plan_options torture_plan(const struct torture *t);
enum worker_kind torture_kind(const struct torture *t, unsigned worker);

/* In a forked child: never returns. Number t->workers is the operator. */
_Noreturn void worker_main(const struct torture *t, unsigned worker, unsigned life);

/* Runs it all. The history is the caller's to free. */
struct step torture_run(struct torture *t, struct run_history *h, int *signal);
#endif
