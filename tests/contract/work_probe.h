/* work_probe.h: a scheduler that writes down and checks its runs. */
#ifndef CONTRACT_WORK_PROBE_H
#define CONTRACT_WORK_PROBE_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WORK_PROBE_TIMES 12

struct work_probe;
typedef int work_probe_fn(struct work_probe *d, const simba_run *run);

/* What is checked of every scheduler in every test: runs never overlap, and come between
 * on_acquired and on_released of their tenure, on a thread named simba-work; tokens rise;
 * nothing comes after on_closed. */
struct work_probe {
    /* set before the start; zero the rest */
    work_probe_fn *in_work; /* NULL: does nothing */
    enum simba_pace pace;
    int64_t period, initial_delay, at_least, first_takes;
    atomic_int *busy; /* shared by all on one mutex; NULL: its own */

    simba_client *s;
    const char *mutex;
    simba_scheduler *x;
    simba_contender *c;
    atomic_bool gate, saw_stop; /* for work_probe_block */
    atomic_int runs;            /* begun */
    atomic_int inside;
    atomic_int acquired, released, closed;
    _Atomic uint64_t token;
    _Atomic int64_t acquired_at; /* when on_acquired returned */
    _Atomic int64_t began[WORK_PROBE_TIMES], ended[WORK_PROBE_TIMES];
};

void work_probe_create(struct work_probe *d, simba_client *s, const char *mutex,
                       const struct simba_handle_options *like);
void work_probe_start(struct work_probe *d, simba_client *s, const char *mutex,
                      const struct simba_handle_options *like);
void work_probe_stop(struct work_probe *d);  /* and waits until INITIAL */
void work_probe_leave(struct work_probe *d); /* by a work that will not return */

/* A work: until the gate is open, even if it should stop, of which it leaves a note in told. */
int work_probe_block(struct work_probe *d, const simba_run *run);

#endif
