/* worker.h: what the kinds of workers share. */
#ifndef LAB_TORTURE_WORKER_H
#define LAB_TORTURE_WORKER_H

#include <pthread.h>
#include <simba.h>

#include "base/clock.h"
#include "lab/torture/record.h"
#include "lab/torture/torture.h"

struct torture_worker {
    const struct torture *t;
    unsigned number, life;
    enum worker_kind kind;
    struct worker_record *record;
    uint64_t random; /* of the main thread */
    simba_client *client;
    uint64_t order;  /* the last that was taken */
    int64_t handles; /* so many were made */
    int64_t threads; /* that it had at its beginning */
    pthread_t pulse;
    _Atomic bool is_over;
};

void worker_add(struct torture_worker *w, struct entry e); /* fills in who writes it */
bool worker_must_end(const struct torture_worker *w);

/* A new order, if there is one. */
bool worker_take_order(struct torture_worker *w, enum fault *fault, unsigned *mutex);

void worker_sleep(int64_t ns);

/* Asks with the clock around it; true, and written down: the tenure is on. */
bool worker_says_yes(struct torture_worker *w, unsigned mutex, uint64_t token,
                     bool (*owns)(void *, uint64_t), void *handle);
void worker_began(struct torture_worker *w, unsigned mutex); /* a tenure was found */
void worker_wants(struct torture_worker *w, unsigned mutex, bool wants);

/* How long to keep what was acquired: mostly short, so that it changes hands often. */
int64_t worker_draw_hold(struct torture_worker *w);
int64_t draw_callback(const struct torture_worker *w, uint64_t *random); /* how long one runs */

void worker_open(struct torture_worker *w);  /* exits if it cannot */
void worker_close(struct torture_worker *w); /* until it has returned 0 */
void worker_options(const struct torture_worker *w, struct simba_handle_options *o);

/* A callback that took from `before` until now. */
void worker_add_callback(struct torture_worker *w, unsigned mutex, int64_t handle,
                         enum callback_kind kind, const struct simba_state *state, int64_t before);

#define STEP (NS_PER_MS) /* between two questions */

/* Each until worker_must_end(). */
void contenders_run(struct torture_worker *w);
void lockers_run(struct torture_worker *w);
void async_lockers_run(struct torture_worker *w);
#endif
