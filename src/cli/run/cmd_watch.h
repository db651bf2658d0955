/* cmd_watch.h: whether CMD gets on with its work, as it reports itself or as a check shows: what the
 * guard knows of it. */
#ifndef CLI_RUN_CMD_WATCH_H
#define CLI_RUN_CMD_WATCH_H

#include "cli/run/check.h"
#include "cli/run/progress.h"
#include "cli/run/spawn.h"

struct cmd_watch {
    const struct run_options *opts;
    struct cmd_tenure tenure; /* for the checks */
    int live;                 /* the same */
    struct progress progress;
    struct check check;
};

bool cmd_watch_open(struct cmd_watch *w,
                    const struct run_options *opts); /* before any CMD; false: see errno */
void cmd_watch_begin(struct cmd_watch *w, const struct cmd_tenure *t,
                     int live); /* t: borrowed until the end */
void cmd_watch_end(struct cmd_watch *w);

int64_t cmd_watch_due_at(const struct cmd_watch *w); /* cmd_watch_tick() is due; 0: never */
bool cmd_watch_tick(struct cmd_watch *w);            /* false: there is no progress */
void cmd_watch_reap(struct cmd_watch *w); /* after SIGCHLD, before others are waited for */

/* Why there is none. */
#define CMD_WATCH_TEXT_MAX (CHECK_TEXT_MAX + PROGRESS_TEXT_MAX)
const char *cmd_watch_explain(const struct cmd_watch *w, char out[CMD_WATCH_TEXT_MAX]);
#endif
