/* hindrance.c: see hindrance.h. */
#include "cli/run/hindrance.h"

#include <stdio.h>

#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define AFTER_MS 1000   /* so long it may last before it is worth a word */
#define ABSENT_MS 5000  /* where nothing is there it is known at once: perhaps it is restarted */
#define SILENT_MS 60000 /* a crowd of a thousand may keep a server busy for half of it */

bool hindrance_is_away(const struct simba_trouble *t)
{
    return t->code != 0 && t->code != SIMBA_ENOTYET;
}

const char *hindrance_shut_text(const struct simba_trouble *t, char *out, size_t size)
{
    char left[24];
    int64_t left_ms = t->until - simba_now();
    out[0] = '\0';
    if (t->code == SIMBA_ENOTYET && left_ms > 0)
        snprintf(out, size, "nobody may own it for another %s%s%s", show_duration(left_ms, left),
                 t->text[0] != '\0' ? ": " : "", t->text);
    else if (t->code == SIMBA_ENOTYET && t->text[0] != '\0')
        snprintf(out, size, "nobody owns it, and the store does not grant it: %s", t->text);
    return out;
}

bool hindrance_is_absent(const struct simba_trouble *t)
{
    return hindrance_is_away(t) && t->code != SIMBA_ETIMEOUT && t->code != SIMBA_ESTATE;
}

struct patience hindrance_patience(void)
{
    int64_t now = simba_now();
    return (struct patience){.began = now, .absent_since = now};
}

int64_t hindrance_left_ms(struct patience *p, const struct simba_trouble *t)
{
    int64_t now = simba_now(), left = p->began + SILENT_MS - now;
    bool is_absent = hindrance_is_absent(t);
    if (is_absent && p->absent_since == 0)
        p->absent_since = now;
    else if (!is_absent && hindrance_is_away(t))
        p->absent_since = 0;
    if (is_absent && p->absent_since + ABSENT_MS - now < left)
        left = p->absent_since + ABSENT_MS - now;
    return left > 0 ? left : 0;
}

static void tell_away(struct hindrance *h, const struct run_options *opts,
                      const struct simba_trouble *t, int64_t left_ms)
{
    char left[24];
    if (h->is_away_said || simba_now() - t->since < AFTER_MS)
        return;
    if (left_ms != SIMBA_FOREVER)
        print_note(opts->c, "waiting for '%s' on %s: %s; trying again for another %s", opts->mutex,
                   opts->c->store, t->text, show_duration(left_ms, left));
    else
        print_note(opts->c, "waiting for '%s' on %s: %s; trying again", opts->mutex, opts->c->store,
                   t->text);
    h->is_away_said = true;
    h->away_since = t->since;
}

static void tell_back(struct hindrance *h, const struct run_options *opts)
{
    char away[24];
    if (h->is_away_said)
        print_note(opts->c, "mutex '%s' on %s: the store answers again after %s", opts->mutex,
                   opts->c->store, show_duration(simba_now() - h->away_since, away));
    h->is_away_said = false;
}

/* A reservation is over before anybody has read that there was one. */
static void tell_shut(struct hindrance *h, const struct run_options *opts,
                      const struct simba_trouble *t)
{
    char text[sizeof t->text + 64];
    int64_t now = simba_now();
    if (h->is_shut_said || (t->until - now < AFTER_MS && now - t->since < AFTER_MS))
        return;
    if (hindrance_shut_text(t, text, sizeof text)[0] == '\0')
        return; /* it is over, and the next answer is on its way */
    print_note(opts->c, "waiting for '%s' on %s: %s", opts->mutex, opts->c->store, text);
    h->is_shut_said = true;
}

void hindrance_tell(struct hindrance *h, const struct run_options *opts,
                    const struct simba_trouble *t, int64_t left_ms)
{
    if (hindrance_is_away(t)) {
        tell_away(h, opts, t, left_ms);
        return;
    }
    tell_back(h, opts);
    if (t->code == SIMBA_ENOTYET)
        tell_shut(h, opts, t);
    else
        h->is_shut_said = false;
}
