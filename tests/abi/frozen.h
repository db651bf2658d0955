/* frozen.h: the structs of simba.h as programs of 1.0 were compiled with. Never change one: what
 * is written here is in programs that nobody compiles again. Later fields of a struct that may grow
 * are not added here. */
#ifndef ABI_FROZEN_H
#define ABI_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- values: the layout never changes ------------------------------------------------------ */

struct frozen_owner {
    char id[136];
    uint64_t token;
    int64_t acquired_at, ttl_at, transition_at;
    uint32_t flags, reserved32;
    uint64_t reserved[3];
};

struct frozen_state {
    struct frozen_owner before, after;
    int reason;
    uint32_t reserved[7];
};

struct frozen_executor {
    void *data;
    int (*submit)(void *data, void (*run)(void *arg), void *arg);
};

struct frozen_entry {
    const char *mutex;
    struct frozen_owner owner;
    int64_t waiters;
    uint64_t reserved[4];
};

struct frozen_histogram {
    uint64_t count, sum_us, max_us;
    uint64_t bucket[32];
};

struct frozen_handle_metrics {
    const char *mutex, *id;
    int status;
    uint32_t reserved32;
    uint64_t token;
    uint64_t attempts, acquisitions, renewals, failures, expired, evicted, stalled;
    uint64_t reserved[8];
};

struct frozen_event {
    int kind;
    int32_t code;
    int reason;
    uint32_t reserved32;
    const char *name, *mutex, *id;
    uint64_t token;
    int64_t began_us, duration_us;
    uint64_t dropped;
    uint64_t reserved[4];
};

/* ---- with a size in front: they grow at the end -------------------------------------------- */

struct frozen_options {
    size_t size;
    int64_t ttl_ms, transition_ms, connect_timeout_ms, command_timeout_ms, drift_ppm;
    const struct frozen_executor *executor;
    void (*log)(void *data, int level, const char *line);
    void *log_data;
    uint32_t flags, reserved32; /* 0.1 ended here */
    void (*trace)(void *data, const struct frozen_event *event);
    void *trace_data;
    const char *labels;
};

typedef void frozen_state_fn(void *data, const char *mutex, const struct frozen_state *state);

struct frozen_handle_options {
    size_t size;
    const char *id;
    int64_t ttl_ms, transition_ms, initial_delay_ms, renew_ms, drain_ms;
    int64_t jitter_early_ms, jitter_late_ms;
    frozen_state_fn *on_acquired, *on_released, *on_changed;
    void (*on_closed)(void *data);
    void *data; /* 0.1 ended here */
    int64_t progress_ms, at_least_ms;
    void (*on_endangered)(void *data, const char *mutex, int64_t left_ms);
    void (*on_stopped)(void *data);
    frozen_state_fn *on_lost;
};

struct frozen_schedule {
    size_t size;
    int pace;
    int64_t period_ms, initial_delay_ms;
};

struct frozen_metrics {
    size_t size;
    uint64_t handles, owned, attempts, acquisitions, renewals, failures, expired, evicted;
    uint64_t reconnects;
    struct frozen_histogram operation, handoff, callback_delay, callback; /* 0.1 ended here */
    uint64_t stalled, runs, runs_failed, events_dropped;
    struct frozen_histogram wait, hold, run;
    uint64_t schedules_blocked, schedules_apart;
};
#endif
