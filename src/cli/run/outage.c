/* outage.c: see outage.h. */
#include "cli/run/outage.h"

#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "cli/shown.h"

struct outage *outage_new(void)
{
    void *at = mmap(NULL, sizeof(struct outage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

static void set_cause(struct outage *o, const char *text)
{
    unsigned next = 1 - o->current;
    snprintf(o->cause[next], sizeof o->cause[next], "%s", text);
    o->current = next;
}

bool outage_take(struct outage *o, const struct simba_event *event)
{
    bool is_tenure = event->until != 0; /* and no candidate's attempts */
    if (event->kind == SIMBA_EVENT_FAILING && is_tenure) {
        set_cause(o, event->text);
        if (atomic_exchange(&o->is_on, true))
            return false;
        o->failing_since = clock_now();
        return true;
    }
    bool works = event->kind == SIMBA_EVENT_WORKS && is_tenure;
    if (!works && event->kind != SIMBA_EVENT_ACQUIRED)
        return false;
    set_cause(o, "");
    return atomic_exchange(&o->is_on, false) && works;
}

const char *outage_why(struct outage *o, enum simba_reason reason, int keeper,
                       char out[OUTAGE_TEXT_MAX])
{
    if (reason == SIMBA_EVICTED)
        snprintf(out, OUTAGE_TEXT_MAX,
                 "the store has ended the tenure (by simba release, or its data were deleted)");
    else if (reason == SIMBA_STALLED)
        snprintf(out, OUTAGE_TEXT_MAX, "no progress was reported in time");
    else
        outage_explain(o, keeper, out);
    return out;
}

const char *outage_explain(struct outage *o, int keeper, char out[OUTAGE_TEXT_MAX])
{
    char cause[OUTAGE_CAUSE_MAX], since[24] = "a whole lease";
    int64_t renewed = o->renewed_at, failing = o->failing_since;
    snprintf(cause, sizeof cause, "%s", o->cause[o->current]);
    if (renewed != 0)
        show_duration((clock_now() - renewed) / NS_PER_MS, since);
    if (cause[0] == '\0')
        snprintf(out, OUTAGE_TEXT_MAX,
                 "no renewal for %s (process %d, which renews, did not run: was it stopped?)",
                 since, keeper);
    else if (renewed != 0)
        snprintf(out, OUTAGE_TEXT_MAX, "no renewal for %s (%s)", since, cause);
    else
        snprintf(out, OUTAGE_TEXT_MAX, "renewals failed for %s (%s)",
                 show_duration((clock_now() - failing) / NS_PER_MS, since), cause);
    return out;
}
