/* duty.h: a scheduler that writes down and checks its runs. */
#ifndef CONTRACT_DUTY_H
#define CONTRACT_DUTY_H

#include <simba.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DUTY_TIMES 12

struct duty;
typedef int duty_fn(struct duty *d, const simba_run *run);

/* What is checked of every scheduler in every test: runs never overlap, and come between on_acquired
 * and on_released of their tenure, on a thread named simba-work; tokens rise; nothing comes after
 * on_closed. */
struct duty {
    /* set before the start; zero the rest */
    duty_fn *in_work; /* NULL: does nothing */
    enum simba_pace pace;
    int64_t period, initial_delay, at_least, first_takes;
    atomic_int *busy; /* shared by all on one mutex; NULL: its own */

    simba *s;
    const char *mutex;
    simba_scheduler *x;
    simba_contender *c;
    atomic_bool gate, told; /* for duty_block */
    atomic_int runs;        /* begun */
    atomic_int inside;
    atomic_int acquired, released, closed;
    _Atomic uint64_t token;
    _Atomic int64_t acquired_at; /* when on_acquired returned */
    _Atomic int64_t began[DUTY_TIMES], ended[DUTY_TIMES];
};

void duty_create(struct duty *d, simba *s, const char *mutex,
                 const struct simba_handle_options *like);
void duty_start(struct duty *d, simba *s, const char *mutex,
                const struct simba_handle_options *like);
void duty_stop(struct duty *d);  /* and waits until INITIAL */
void duty_leave(struct duty *d); /* by a work that will not return */

/* A work: until the gate is open, even if it should stop, of which it leaves a note in told. */
int duty_block(struct duty *d, const simba_run *run);

#endif
