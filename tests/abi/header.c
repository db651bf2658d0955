/* header.c: today's simba.h still has the layout that programs of 1.0 were compiled with. It only
 * has to compile. */
#include <simba.h>

#include "frozen.h"

#if UINTPTR_MAX == UINT64_MAX

#define SAME(type, field)                                                 \
    _Static_assert(offsetof(struct simba_##type, field) ==                \
                           offsetof(struct frozen_##type, field) &&       \
                       sizeof(((struct simba_##type *)NULL)->field) ==    \
                           sizeof(((struct frozen_##type *)NULL)->field), \
                   "struct simba_" #type "." #field " has moved")
#define FROZEN(type, bytes)                                     \
    _Static_assert(sizeof(struct simba_##type) == (bytes) &&    \
                       sizeof(struct frozen_##type) == (bytes), \
                   "struct simba_" #type " has another size")
#define GROWS(type, bytes)                                                                       \
    _Static_assert(                                                                              \
        sizeof(struct simba_##type) >= (bytes) && sizeof(struct simba_##type) % 8 == 0 &&        \
            sizeof(struct frozen_##type) == (bytes) && offsetof(struct simba_##type, size) == 0, \
        "struct simba_" #type " has shrunk")
#define VALUE(name, number) _Static_assert((name) == (number), #name " has another value")

FROZEN(owner, 200);
SAME(owner, id);
SAME(owner, token);
SAME(owner, acquired_at);
SAME(owner, ttl_at);
SAME(owner, transition_at);
SAME(owner, flags);
SAME(owner, reserved32);
SAME(owner, reserved);

FROZEN(state, 432);
SAME(state, before);
SAME(state, after);
SAME(state, reason);
SAME(state, reserved);

FROZEN(executor, 16);
SAME(executor, data);
SAME(executor, submit);

FROZEN(entry, 248);
SAME(entry, mutex);
SAME(entry, owner);
SAME(entry, waiters);
_Static_assert(offsetof(struct simba_entry, note) == offsetof(struct frozen_entry, reserved),
               "struct simba_entry.note is not where bytes were reserved");

FROZEN(histogram, 280);
SAME(histogram, count);
SAME(histogram, sum_us);
SAME(histogram, max_us);
SAME(histogram, bucket);

FROZEN(handle_metrics, 152);
SAME(handle_metrics, mutex);
SAME(handle_metrics, id);
SAME(handle_metrics, status);
SAME(handle_metrics, reserved32);
SAME(handle_metrics, token);
SAME(handle_metrics, attempts);
SAME(handle_metrics, acquisitions);
SAME(handle_metrics, renewals);
SAME(handle_metrics, failures);
SAME(handle_metrics, expired);
SAME(handle_metrics, evicted);
SAME(handle_metrics, stalled);
SAME(handle_metrics, reserved);

FROZEN(event, 104);
SAME(event, kind);
SAME(event, code);
SAME(event, reason);
SAME(event, reserved32);
SAME(event, name);
SAME(event, mutex);
SAME(event, id);
SAME(event, token);
SAME(event, began_us);
SAME(event, duration_us);
SAME(event, dropped);
_Static_assert(offsetof(struct simba_event, text) == offsetof(struct frozen_event, reserved),
               "struct simba_event.text is not where bytes were reserved");

GROWS(options, 104);
SAME(options, ttl_ms);
SAME(options, transition_ms);
SAME(options, connect_timeout_ms);
SAME(options, command_timeout_ms);
SAME(options, drift_ppm);
SAME(options, executor);
SAME(options, log);
SAME(options, log_data);
SAME(options, flags);
SAME(options, reserved32);
SAME(options, trace);
SAME(options, trace_data);
SAME(options, labels);

GROWS(handle_options, 152);
SAME(handle_options, id);
SAME(handle_options, ttl_ms);
SAME(handle_options, transition_ms);
SAME(handle_options, initial_delay_ms);
SAME(handle_options, renew_ms);
SAME(handle_options, drain_ms);
SAME(handle_options, jitter_early_ms);
SAME(handle_options, jitter_late_ms);
SAME(handle_options, on_acquired);
SAME(handle_options, on_released);
SAME(handle_options, on_changed);
SAME(handle_options, on_closed);
SAME(handle_options, data);
SAME(handle_options, progress_ms);
SAME(handle_options, at_least_ms);
SAME(handle_options, on_endangered);
SAME(handle_options, on_stopped);
SAME(handle_options, on_lost);

GROWS(schedule, 32);
SAME(schedule, pace);
SAME(schedule, period_ms);
SAME(schedule, initial_delay_ms);

GROWS(metrics, 2088);
SAME(metrics, handles);
SAME(metrics, owned);
SAME(metrics, attempts);
SAME(metrics, acquisitions);
SAME(metrics, renewals);
SAME(metrics, failures);
SAME(metrics, expired);
SAME(metrics, evicted);
SAME(metrics, reconnects);
SAME(metrics, operation);
SAME(metrics, handoff);
SAME(metrics, callback_delay);
SAME(metrics, callback);
SAME(metrics, stalled);
SAME(metrics, runs);
SAME(metrics, runs_failed);
SAME(metrics, events_dropped);
SAME(metrics, wait);
SAME(metrics, hold);
SAME(metrics, run);
SAME(metrics, schedules_blocked);
SAME(metrics, schedules_apart);
/* What a program has compiled in as numbers. Others may follow. */
VALUE(SIMBA_EINVAL, -1);
VALUE(SIMBA_ESTATE, -2);
VALUE(SIMBA_ETIMEOUT, -3);
VALUE(SIMBA_EHELD, -4);
VALUE(SIMBA_ELOST, -5);
VALUE(SIMBA_ESTORE, -6);
VALUE(SIMBA_EDENIED, -7);
VALUE(SIMBA_ESCHEMA, -8);
VALUE(SIMBA_EMODULE, -9);
VALUE(SIMBA_EUNSUPPORTED, -10);
VALUE(SIMBA_ELIMIT, -11);
VALUE(SIMBA_EFORKED, -12);
VALUE(SIMBA_EDEADLOCK, -13);
VALUE(SIMBA_ECANCELED, -14);
VALUE(SIMBA_ENOTYET, -15);
VALUE(SIMBA_INITIAL, 0);
VALUE(SIMBA_STARTING, 1);
VALUE(SIMBA_RUNNING, 2);
VALUE(SIMBA_STOPPING, 3);
VALUE(SIMBA_LOG_ERROR, 0);
VALUE(SIMBA_LOG_WARN, 1);
VALUE(SIMBA_LOG_INFO, 2);
VALUE(SIMBA_LOG_DEBUG, 3);
VALUE(SIMBA_UNCHANGED, 0);
VALUE(SIMBA_ACQUIRED, 1);
VALUE(SIMBA_RELEASED, 2);
VALUE(SIMBA_EXPIRED, 3);
VALUE(SIMBA_EVICTED, 4);
VALUE(SIMBA_STALLED, 5);
VALUE(SIMBA_UNSEEN, 6);
VALUE(SIMBA_EVENT_EXCHANGE, 0);
VALUE(SIMBA_EVENT_ACQUIRED, 1);
VALUE(SIMBA_EVENT_ENDED, 2);
VALUE(SIMBA_EVENT_CALLBACK, 3);
VALUE(SIMBA_EVENT_RUN, 4);
VALUE(SIMBA_FIXED_RATE, 0);
VALUE(SIMBA_FIXED_DELAY, 1);
VALUE(SIMBA_OWNER_EVICTED, 1);
VALUE(SIMBA_NO_THREAD, 1);
VALUE(SIMBA_DEFAULT, -1);
VALUE(SIMBA_FOREVER, INT64_MAX);
VALUE(SIMBA_MUTEX_MAX, 66);
VALUE(SIMBA_ID_MAX, 128);
#endif
