/* cmd_watch.c: see cmd_watch.h. */
#include "cli/run/cmd_watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/messages.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

bool cmd_watch_open(struct cmd_watch *w, const struct run_options *opts)
{
    w->opts = w->check.opts = opts;
    return progress_open(&w->progress, opts);
}

void cmd_watch_begin(struct cmd_watch *w, const struct cmd_tenure *t, int live)
{
    w->tenure = *t;
    w->live = live;
    progress_begin(&w->progress);
    check_begin(&w->check);
}

void cmd_watch_end(struct cmd_watch *w)
{
    progress_end(&w->progress);
    check_end(&w->check);
}

int64_t cmd_watch_due_at(const struct cmd_watch *w)
{
    int64_t at = progress_due_at(&w->progress), next = w->check.next_at;
    return next != 0 && next < at ? next : at;
}

/* The first failure says what is coming. */
static void report_failure(const struct cmd_watch *w)
{
    char why[CHECK_TEXT_MAX], left[24];
    int64_t ms = (progress_due_at(&w->progress) - clock_now()) / NS_PER_MS;
    if (w->check.failures == 1 && ms > 0)
        print_note(w->opts->c, "mutex '%s' on %s: %s; it has to succeed within %s", w->opts->mutex,
                   w->tenure.store, check_explain(&w->check, why), show_duration(ms, left));
}

/* A success shows what was the case when the check began. */
void cmd_watch_reap(struct cmd_watch *w)
{
    enum check_result result = check_reap(&w->check);
    if (result == CHECK_PASSED)
        progress_report(&w->progress, w->check.began);
    else if (result == CHECK_FAILED)
        report_failure(w);
}

/* What was sent meanwhile comes first: we may have stood still. */
bool cmd_watch_tick(struct cmd_watch *w)
{
    progress_read(&w->progress);
    cmd_watch_reap(w);
    int64_t now = clock_now(), due = progress_due_at(&w->progress), next = w->check.next_at;
    if (due != 0 && now >= due)
        return false;
    if (next != 0 && now >= next && !check_tick(&w->check, &w->tenure, w->live))
        report_failure(w);
    return true;
}

const char *cmd_watch_explain(const struct cmd_watch *w, char out[CMD_WATCH_TEXT_MAX])
{
    char last[CHECK_TEXT_MAX], since[24];
    if (w->opts->check == NULL)
        return progress_explain(&w->progress, out);
    snprintf(out, CMD_WATCH_TEXT_MAX, "no success for %s: %s",
             show_duration((clock_now() - w->progress.since) / NS_PER_MS, since),
             check_explain(&w->check, last));
    return out;
}
