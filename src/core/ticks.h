/* ticks.h: which tick of a schedule is run next, and what the mutex's note says of it.
 *
 * A tick is named by its nominal time: milliseconds since 1970 UTC. The leader writes it into the
 * note of the mutex, and the next leader goes on after it:
 *
 *   tick 1 2026-11-15T03:00:00Z claimed 3f9a2c7e     at most once: before the run
 *   tick 1 2026-11-15T03:00:00Z begun 3f9a2c7e       at least once: before the run …
 *   tick 1 2026-11-15T03:00:00Z done 3f9a2c7e        … and after it
 *   tick 1 2026-11-15T02:17:04.310Z started 3f9a2c7e of cron: no tick is claimed yet, but those
 *                                                    since then count
 *
 * 1 is the version of this form, the last word tells one schedule from another: the ticks of a
 * schedule that was changed count from the change on. Notes only rise, so a leader whose clock is
 * behind waits until its clock has passed what is claimed. A tick that was begun and not done is
 * run again, whatever is to become of those that were missed.
 *
 * No clock in here: `now` is what the wall clock of this leader shows, or that of the store
 * (ticks_clock); it may step, and is another machine's at the next tenure. Of a schedule without cron the ticks are whole periods after the
 * one that is claimed; so the phase stays. */
#ifndef CORE_TICKS_H
#define CORE_TICKS_H

#include <simba.h>

#include "core/calendar.h"

#define TICKS_MADE_UP_MAX 1000 /* of SIMBA_MISSED_ALL: older ones are dropped */
#define TICKS_APART_MS 120000  /* of clocks that are further apart one is wrong */
#define TICKS_NOTE_SIZE 64     /* room for the text of a note */
#define TICK_TEXT_SIZE 32      /* room for a tick as people read it */

struct ticks {
    const struct cron *cron; /* borrowed; NULL: every period */
    const struct zone *zone; /* likewise; of cron */
    int64_t period;          /* ms */
    int64_t grace;           /* ms: so late a new leader may be, and no tick is missed */
    uint32_t identity;       /* of the schedule, see ticks_identity */
    enum simba_missed missed;
    bool at_least_once;

    /* of the tenure */
    int64_t claimed;   /* the note's; 0: it has none */
    int64_t planned;   /* is waited for, or run; 0: none */
    bool is_first;     /* nothing was planned yet */
    bool is_changed;   /* the note is of another schedule */
    bool is_to_repeat; /* `claimed` was begun, and its end is not recorded */
};

/* The clock that ticks go by: that of this machine; or, if the two are too far apart, that of the store
 * (0: it is not known), which is the same for all. So one machine whose clock is wrong neither claims ticks
 * of the future, for which all others would wait, nor waits for what has come. */
int64_t ticks_clock(int64_t own, int64_t store);

/* Nothing is run for long: what is claimed lies so far ahead that a clock was wrong when it was. */
bool ticks_is_blocked(const struct ticks *t, int64_t now);

/* Of the schedule in `t`; zone: its name, NULL: UTC. */
uint32_t ticks_identity(const struct ticks *t, const char *zone);

/* A tenure begins; note: what the note says, read in this tenure; "": nothing. Nothing is planned,
 * if it is not understood. SIMBA_ESCHEMA: it is not a schedule's; SIMBA_EUNSUPPORTED: it has
 * another version. */
int ticks_begin(struct ticks *t, const char *note);

/* Before the first plan. True: `out` has to be written into the note first, so that a later leader
 * knows from when on ticks count. */
bool ticks_start(struct ticks *t, int64_t now, char out[static TICKS_NOTE_SIZE]);

/* Plans the tick after what is claimed. True: there were more to make up than TICKS_MADE_UP_MAX,
 * and those before the planned one are dropped. */
bool ticks_plan(struct ticks *t, int64_t now);

/* Is it time for the planned tick? Of several that have come meanwhile the last is planned then,
 * unless all are to be run. */
bool ticks_is_due(struct ticks *t, int64_t now);

/* What has to be written into the note before the planned tick is run, and after that. False:
 * nothing. */
bool ticks_note(const struct ticks *t, bool has_run, char out[static TICKS_NOTE_SIZE]);

/* The store has taken the note of the planned tick. */
void ticks_claimed(struct ticks *t);

/* The first tick after `after`, as if that were claimed. CALENDAR_NEVER: none. */
int64_t ticks_after(const struct ticks *t, int64_t after);

/* 2026-11-15T03:00:00Z, with the milliseconds if there are any. */
void tick_write(char out[static TICK_TEXT_SIZE], int64_t tick);
bool tick_read(const char *text, size_t length, int64_t *tick);
#endif
