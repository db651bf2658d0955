/* watchdog.c: see watchdog.h. */
#include "core/watchdog.h"

void watchdog_begin(struct watchdog *w, int64_t now)
{
    w->began_at = now;
    w->ends_at = NEVER;
    w->check_at = w->limit > 0 ? now + w->limit / 2 : NEVER;
    w->is_half_over = false;
}

void watchdog_end(struct watchdog *w)
{
    w->began_at = w->check_at = NEVER;
    w->is_half_over = false;
}

enum watchdog_result watchdog_check(struct watchdog *w, int64_t now, int64_t reported_at)
{
    if (w->limit == 0 || w->began_at == NEVER)
        return WATCHDOG_FINE;
    int64_t last = reported_at > w->began_at ? reported_at : w->began_at;
    int64_t ends_at = last == NEVER ? NEVER : last + w->limit;
    bool was_half_over = w->is_half_over && ends_at == w->ends_at;
    w->ends_at = ends_at;
    w->is_half_over = ends_at != NEVER && now >= ends_at - w->limit / 2;
    if (now >= ends_at)
        return WATCHDOG_STALLED;
    if (w->is_half_over)
        w->check_at = ends_at;
    else if (ends_at == NEVER) /* a report from now on ends its first half after that */
        w->check_at = now + w->limit / 2;
    else
        w->check_at = ends_at - w->limit / 2;
    return w->is_half_over && !was_half_over ? WATCHDOG_HALF : WATCHDOG_FINE;
}
