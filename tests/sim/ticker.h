/* ticker.h: schedules with ticks in the simulated world: what src/runtime does with the machine of
 * core/ticks.h. In some worlds all contenders have one; their wall clocks differ, and step. */
#ifndef SIM_TICKER_H
#define SIM_TICKER_H

#include "core/ticks.h"

#define TICK_RECORD_MAX 8192

struct world;
struct node;
struct event;

/* What a contender does about its ticks. */
struct ticker {
    struct ticks ticks;
    enum { TICKER_OFF, TICKER_READS, TICKER_WAITS, TICKER_CLAIMS, TICKER_RUNS } phase;
    uint64_t token;  /* of its tenure */
    uint64_t number; /* of its last request or alarm: others are of before */
    int64_t ahead;   /* ms: its wall clock */
    bool has_run;    /* the planned tick */
};

/* The note of a mutex, and all runs. */
struct tick_record {
    bool is_void; /* the store has forgotten: nothing is promised any more */
    char note[TICKS_NOTE_SIZE];
    uint64_t token, serial; /* of who wrote it */
    int64_t first, claimed;
    bool is_begun;                 /* `claimed`, and not done */
    uint8_t runs[TICK_RECORD_MAX]; /* from the first tick on */
};

struct tick_world {
    bool has_ticks, at_least_once;
    enum simba_missed missed;
    int64_t period; /* ms */
    uint64_t serial;
    struct tick_record record[2];
};

void ticker_draw(struct world *w);
void ticker_reset(struct node *n);
void ticker_begin(struct world *w, struct node *n, uint64_t token); /* on_acquired has returned */
void ticker_event(struct world *w, struct node *n, const struct event *e);
void ticker_at_store(struct world *w, struct event *e);
void ticker_forget(struct world *w);
#endif
