/* watch.c: see watch.h. */
#include "cli/run/watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/messages.h"
#include "cli/run/plan.h"
#include "cli/shown.h"

bool watch_open(struct watch *w, const struct plan *p)
{
    w->p = w->check.p = p;
    return progress_open(&w->progress, p);
}

void watch_begin(struct watch *w, const struct tenure *t, int live)
{
    w->tenure = *t;
    w->live = live;
    progress_begin(&w->progress);
    check_begin(&w->check);
}

void watch_end(struct watch *w)
{
    progress_end(&w->progress);
    check_end(&w->check);
}

int64_t watch_due_at(const struct watch *w)
{
    int64_t at = progress_due_at(&w->progress), next = w->check.next_at;
    return next != 0 && next < at ? next : at;
}

/* The first failure says what is coming. */
static void report_failure(const struct watch *w)
{
    char why[CHECK_TEXT_MAX], left[24];
    int64_t ms = (progress_due_at(&w->progress) - clock_now()) / NS_PER_MS;
    if (w->check.failures == 1 && ms > 0)
        print_note(w->p->c, "mutex '%s' on %s: %s; it has to succeed within %s", w->p->mutex,
                   w->tenure.store, check_explain(&w->check, why), show_duration(ms, left));
}

/* A success shows what was the case when the check began. */
void watch_reap(struct watch *w)
{
    enum check_result result = check_reap(&w->check);
    if (result == CHECK_PASSED)
        progress_report(&w->progress, w->check.began);
    else if (result == CHECK_FAILED)
        report_failure(w);
}

/* What was sent meanwhile comes first: we may have stood still. */
bool watch_tick(struct watch *w)
{
    progress_read(&w->progress);
    watch_reap(w);
    int64_t now = clock_now(), due = progress_due_at(&w->progress), next = w->check.next_at;
    if (due != 0 && now >= due)
        return false;
    if (next != 0 && now >= next && !check_tick(&w->check, &w->tenure, w->live))
        report_failure(w);
    return true;
}

const char *watch_explain(const struct watch *w, char out[WATCH_TEXT_MAX])
{
    char last[CHECK_TEXT_MAX], since[24];
    if (w->p->check == NULL)
        return progress_explain(&w->progress, out);
    snprintf(out, WATCH_TEXT_MAX, "no success for %s: %s",
             show_duration((clock_now() - w->progress.since) / NS_PER_MS, since),
             check_explain(&w->check, last));
    return out;
}
