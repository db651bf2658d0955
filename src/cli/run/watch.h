/* watch.h: whether CMD gets on with its work, as it reports itself or as a check shows: what the
 * guard knows of it. */
#ifndef CLI_RUN_WATCH_H
#define CLI_RUN_WATCH_H

#include "cli/run/check.h"
#include "cli/run/progress.h"
#include "cli/run/spawn.h"

struct watch {
    const struct plan *p;
    struct tenure tenure; /* for the checks */
    int live;             /* the same */
    struct progress progress;
    struct check check;
};

bool watch_open(struct watch *w, const struct plan *p); /* before any CMD; false: see errno */
void watch_begin(struct watch *w, const struct tenure *t, int live); /* t: borrowed until the end */
void watch_end(struct watch *w);

int64_t watch_due_at(const struct watch *w); /* watch_tick() is due; 0: never */
bool watch_tick(struct watch *w);            /* false: there is no progress */
void watch_reap(struct watch *w);            /* after SIGCHLD, before others are waited for */

/* Why there is none. */
#define WATCH_TEXT_MAX (CHECK_TEXT_MAX + PROGRESS_TEXT_MAX)
const char *watch_explain(const struct watch *w, char out[WATCH_TEXT_MAX]);
#endif
