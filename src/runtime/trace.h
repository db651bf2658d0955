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
    uint64_t kinds;    /* that it wants: SIMBA_EVENT_BIT of each */
    uint64_t dropped;  /* since the last event that fitted; under the lock of the delivery */
    int64_t opened_at; /* the client; 0: the store has answered since, whoever has the baton */
};

/* kinds 0: all. */
int trace_init(struct trace *trace, struct simba_client *client, struct executor *executor,
               void (*write)(void *, const struct simba_event *), void *data, uint64_t kinds);
void trace_free(struct trace *trace); /* after the executor has stopped */

struct actor;
struct request;

/* Whoever has the baton. */
void trace_exchange(const struct request *r); /* it is answered */
void trace_tenure(struct actor *a, int64_t now);
void trace_tenure_end(struct actor *a, int64_t now, enum simba_reason reason, uint64_t token);

/* Facts, beside lines of the log. Likewise. */
void trace_failing(struct actor *a, int code, const char *text);
void trace_works(struct actor *a, int64_t since);
void trace_not_yet(struct actor *a, int64_t until, const char *text); /* text NULL: none */
void trace_note_failed(struct actor *a, int code, const char *text);
void trace_note_published(struct actor *a);

/* Any thread that has no lock. */
void trace_callback(struct actor *a, const char *name, uint64_t token, int64_t submitted,
                    int64_t began);
void trace_run(struct actor *a, uint64_t token, int64_t began, int code); /* of scheduled work */
#endif
