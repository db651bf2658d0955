/* ticks.h: which tick of a schedule is run next, and what the mutex's note says of it.
 *
 * A tick is named by its nominal time: milliseconds since 1970 UTC. A leader claims it in the note
 * before it runs it (at most once), or after that (at least once):
 *
 *   tick 1 2026-11-15T03:00:00Z claimed        tick 1 2026-11-15T03:00:00Z done
 *
 * 1 is the version of this form. Either way the next leader goes on after that tick. Claims only
 * rise, so a leader whose clock is behind waits until its clock has passed what is claimed.
 * No clock in here: `now` is what the wall clock of this leader shows; it may step, and is another
 * machine's at the next tenure. Of a schedule without cron the ticks are whole periods after the
 * one that is claimed; so the phase stays. */
#ifndef CORE_TICKS_H
#define CORE_TICKS_H

#include <simba.h>

#include "core/calendar.h"

#define TICKS_MADE_UP_MAX 1000 /* of SIMBA_MISSED_ALL: older ones are dropped */
#define TICKS_NOTE_SIZE 64     /* room for the text of a note */
#define TICK_TEXT_SIZE 32      /* room for a tick as people read it */

struct ticks {
    const struct cron *cron; /* borrowed; NULL: every period */
    const struct zone *zone; /* likewise; of cron */
    int64_t period;          /* ms */
    enum simba_missed missed;
    bool at_least_once;

    /* of the tenure */
    int64_t claimed; /* 0: none was ever */
    int64_t planned; /* is waited for, or run; 0: none */
};

/* A tenure begins; note: what the note says, read in this tenure; "": nothing. SIMBA_ESCHEMA: it
 * is not a tick's, so nothing is planned. */
int ticks_begin(struct ticks *t, const char *note);

/* Plans the tick after what is claimed. True: there were more to make up than TICKS_MADE_UP_MAX,
 * and those before the planned one are dropped. */
bool ticks_plan(struct ticks *t, int64_t now);

/* Is it time for the planned tick? Of several that have come meanwhile the last is planned then,
 * unless all are to be run. */
bool ticks_is_due(struct ticks *t, int64_t now);

bool ticks_claims_first(const struct ticks *t); /* else after the run */
void ticks_write_note(const struct ticks *t, char out[static TICKS_NOTE_SIZE]);

/* The store has taken the note of the planned tick. */
void ticks_claimed(struct ticks *t);

/* The first tick after `after`, as if that were claimed. CALENDAR_NEVER: none. */
int64_t ticks_after(const struct ticks *t, int64_t after);

/* 2026-11-15T03:00:00Z, with the milliseconds if there are any. */
void tick_write(char out[static TICK_TEXT_SIZE], int64_t tick);
bool tick_read(const char *text, size_t length, int64_t *tick);
#endif
