/* suite.h: what the contract tests share.
 *
 * A test is a function without arguments that runs in a process of its own. It opens clients on
 * suite_url(); several clients in one process stand for several processes. It fails by CHECK, which
 * ends the process from whatever thread, and passes by returning.
 *
 * Nothing here sleeps "to make it likely": AWAIT waits for a condition and fails after PATIENCE_MS,
 * and what is checked is an order or an invariant, never how fast something was. nap() is for tests
 * whose subject is time itself. */
#ifndef CONTRACT_SUITE_H
#define CONTRACT_SUITE_H

#include <pthread.h>
#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PUSH_MS 10000     /* a hint that comes later is none */
#define PATIENCE_MS 20000 /* below the watchdog, so that the line that waited is named */
#define SERVER_MS 45000   /* for a server that a test starts; on a busy machine a JVM takes long */

enum needs {
    ANY_STORE,
    PUSHES,            /* one that hints: else who waits asks when the lease ends, a minute later */
    MEMORY_FAULTS,     /* the switches of simba/backend.h */
    SEVERAL_PROCESSES, /* all but memory: */
    PROCESSES_PUSH,    /* both */
    SQLITE_ONLY,
    REDIS_ONLY,     /* redis://, once: these have servers of their own */
    SQL_ONLY,       /* mysql:, mariadb:, postgresql: on a server of tests/servers/ */
    ZOOKEEPER_ONLY, /* one server, likewise */
    ZOOKEEPER_ALL   /* one server, or an ensemble, likewise */
};

struct test {
    const char *name;
    void (*run)(void);
    enum needs needs;
    int extra_s; /* on top of the watchdog's limit with --long */
};

/* One table per file, ended by a test without a name. */
extern const struct test jvm_kit_tests[], token_tests[], callback_tests[], handover_tests[],
    executor_tests[], status_tests[], stop_tests[], close_tests[], exclusion_tests[], fault_tests[],
    locker_tests[], locker_fault_tests[], read_tests[], fork_tests[], name_tests[], option_tests[],
    process_tests[], observer_tests[], list_tests[], embed_tests[], metrics_tests[], trace_tests[],
    progress_tests[], at_least_tests[], scheduler_tests[], scheduler_work_tests[],
    thread_end_tests[], sqlite_fault_tests[], sqlite_refused_path_tests[], sqlite_file_tests[],
    sqlite_damage_tests[], sqlite_unreadable_tests[], redis_fault_tests[], redis_forget_tests[],
    redis_fact_tests[], redis_sentinel_tests[], redis_queue_tests[], redis_reserved_tests[],
    redis_module_tests[], redis_rights_tests[], sqlite_waking_tests[], sql_tests[],
    sql_table_tests[], sql_clock_tests[], sql_push_tests[], sql_module_tests[], sql_safety_tests[],
    sql_job_tests[], zookeeper_fault_tests[], zookeeper_ensemble_tests[], zookeeper_doctor_tests[],
    zookeeper_absurd_tests[], locker_async_tests[], locker_async_order_tests[],
    scheduler_thread_tests[], sql_queue_tests[], sql_pass_tests[], note_tests[], sql_note_tests[],
    scheduler_ticks_tests[];

/* ---- what the runner tells the tests ------------------------------------------------------- */

const char *suite_url(void);
bool suite_is_long(void);
bool suite_pushes(void);    /* finds out: in a process of its own, since it starts threads */
bool suite_is_memory(void); /* the store lives in this process and has fault switches */
bool suite_is_sqlite(void);
bool suite_is_redis(void); /* redis:// and its relatives */
void suite_set(const char *url, bool is_long);

/* ---- checks -------------------------------------------------------------------------------- */

#define CHECK(cond) ((cond) ? (void)0 : suite_fail(__FILE__, __LINE__, #cond))

/* A call whose result is 0 or an error; names both codes and the error's text if it differs. */
#define CHECK_CODE(call, want) suite_check_code(__FILE__, __LINE__, #call, (call), (want))
#define CHECK_OK(call) CHECK_CODE(call, 0)

/* An error with a text that names the part (NULL: any text will do). */
#define CHECK_REFUSED(call, want, part) \
    suite_check_refused(__FILE__, __LINE__, #call, (call), (want), (part))

/* simba_close is refused with SIMBA_ETIMEOUT and says so; it is asked again until its loop has run. */
void check_close_refused(simba_client *s, const char *part);

/* Acquires again for as long as the store has neither answered nor failed: "not in time". */
int acquire_until_refused(simba_locker *l, int64_t timeout_ms);

/* Ends the test: it cannot be run here, and neither passed nor failed. */
#define EXIT_SKIP 77
_Noreturn void suite_skip(const char *reason);

#define AWAIT(cond) AWAIT_FOR(PATIENCE_MS, cond)
#define AWAIT_FOR(ms, cond)                                        \
    do {                                                           \
        int64_t await_until_ = simba_now() + (ms);                 \
        while (!(cond)) {                                          \
            if (simba_now() > await_until_)                        \
                suite_fail(__FILE__, __LINE__, "in time: " #cond); \
            nap(1);                                                \
        }                                                          \
    } while (0)

_Noreturn void suite_fail(const char *file, int line, const char *what);
void suite_check_code(const char *file, int line, const char *call, int got, int want);
void suite_check_refused(const char *file, int line, const char *call, int got, int want,
                         const char *part);

/* ---- small helpers ------------------------------------------------------------------------- */

void nap(int64_t ms);

/* A name that no other test, run or process uses; valid for the rest of the process. */
const char *fresh(const char *tag);

/* Options with these durations, renewals many times per ttl, generated id, no callbacks. */
struct simba_handle_options lease(int64_t ttl_ms, int64_t transition_ms);

/* A minute: whatever passes to another within the watchdog's limit was handed over, not expired. */
struct simba_handle_options lease_long(void);

/* Three seconds: short enough to wait for its end, so not for tests in which it must not be lost. */
struct simba_handle_options lease_short(void);

/* A short ttl, so that renewals are many, in a lease that outlives the stalls of a busy machine. */
struct simba_handle_options lease_steady(void);

/* 600 ms: for tests in which it may be lost at any moment. */
struct simba_handle_options lease_tiny(void);

/* A server on a machine that stands still for a second or two is not one that fails: it is given
 * longer to answer than usual. */
struct simba_options suite_options(void);

simba_client *client_open(void);
simba_client *client_open_quick(int64_t command_timeout_ms);
void client_close(simba_client *s);
void client_poll(
    simba_client *s); /* one that is polled: as soon as there is something, or in 1 s */

/* What a client's trace tells of the answers to those who contend. */
struct heard {
    _Atomic int64_t since_us, any_us,
        held_us; /* the first, and the first that refuses; 0: none yet */
};
void hear(void *heard, const struct simba_event *event); /* a trace function */
simba_client *client_open_hearing(struct heard *heard);
void hear_anew(struct heard *heard); /* from now on, before the wait begins */

/* How a wait of timeout_ms ends for what another holds: with SIMBA_ETIMEOUT if the store has said so in that time,
 * else with SIMBA_ESTORE. A store that refuses in the first half of it has done so in time, however late the loop takes
 * up its answer. polled: the client if this thread polls it, else NULL. */
void check_in_vain(struct heard *heard, int code, int64_t timeout_ms, simba_client *polled);

/* A port of 127.0.0.1 for a server that the test starts, kills and starts again: none that the
 * system gives to somebody's connection meanwhile, nor that another test has drawn and still may
 * use. */
int port_draw(void);

/* Of this process, with that name; NULL: all. */
int count_threads(const char *name);

pthread_t spawn(void *(*run)(void *), void *arg);
void join(pthread_t thread);

/* ---- a contender that writes down and checks its callbacks --------------------------------- */

struct probe;
typedef void probe_fn(struct probe *p);

/* The callbacks check what holds for every contender in every test (C2, C3, C4): they alternate,
 * never overlap, never come after on_closed, tokens rise, is_owner is false in on_released. Set
 * the hooks before the start; zero the rest. */
struct probe {
    simba_contender *c;
    probe_fn *in_acquired, *in_released; /* run inside the callbacks */
    void *data;                          /* for those */
    atomic_bool gate;                    /* for those: probe_block waits for it */

    atomic_int acquired, released, closed; /* how many callbacks have begun */
    atomic_int returned;                   /* how many of the first two have returned */
    atomic_int inside;
    atomic_int reason;             /* of the last one */
    _Atomic uint64_t token;        /* of the last tenure */
    atomic_int began_at, ended_at; /* of the last callback: its place among all of this process */
    atomic_int first_began_at;     /* of the first on_acquired */
};

void probe_create(struct probe *p, simba_client *s, const char *mutex,
                  const struct simba_handle_options *like);
void probe_start(struct probe *p, simba_client *s, const char *mutex,
                 const struct simba_handle_options *like);
void probe_block(struct probe *p); /* a hook: returns when the gate is open */

/* Owner, and on_acquired has begun. */
bool probe_leads(const struct probe *p);

/* No callback runs and none is due. */
bool probe_is_idle(const struct probe *p);

/* Stops, waits until INITIAL and checks that the callbacks are balanced. */
void probe_stop(struct probe *p);

/* ---- a referee: never two owners at once --------------------------------------------------- */

#define REFEREE_MAX 12

struct referee {
    struct probe *probe[REFEREE_MAX];
    int probes;
    atomic_bool stop;
    pthread_t thread;
};

/* Samples the probes pairwise until the end. "A owns T, B is owner, A still owns T" is two owners
 * at once, since a tenure has no holes. */
void referee_begin(struct referee *r);
void referee_end(struct referee *r);

/* ---- the fault switches of memory: --------------------------------------------------------- */

enum fault { HEALTHY, HANG, FAIL, LOSE_ANSWER, LOSE_HINT, DUPLICATE };
void store_set(enum fault fault);
void store_delay(int64_t ms);
void store_evict(const char *mutex, bool forced);

#endif
