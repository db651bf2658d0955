/* trace.h: what happens in a client, one function per happening. It counts, fills histograms and
 * tells the user's trace function, so that metrics and trace cannot differ. */
#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include <simba.h>

#include "runtime/delivery.h"

#define TRACE_EVENTS_MAX 1024

struct trace {
    struct delivery delivery;                                   /* first */
    void (*write)(void *data, const struct simba_event *event); /* NULL: none */
    void *data;
    uint64_t dropped; /* since the last event that fitted; under the lock of the delivery */
};

int trace_init(struct trace *trace, struct simba_client *client, struct executor *executor,
               void (*write)(void *, const struct simba_event *), void *data);
void trace_free(struct trace *trace); /* after the executor has stopped */

struct actor;
struct request;

/* Whoever has the baton. */
void trace_exchange(const struct request *r); /* it is answered */
void trace_tenure(struct actor *a, int64_t now);
void trace_tenure_end(struct actor *a, int64_t now, enum simba_reason reason, uint64_t token);

/* Any thread that has no lock. */
void trace_callback(struct actor *a, const char *name, uint64_t token, int64_t submitted,
                    int64_t began);
void trace_run(struct actor *a, uint64_t token, int64_t began, int code); /* of scheduled work */
#endif
