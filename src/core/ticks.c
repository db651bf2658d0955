/* ticks.c: see ticks.h. */
#include "core/ticks.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "core/date.h"

#define DAY_MS INT64_C(86400000)
#define IDENTITY_DIGITS 8
#define WINDOW_MS INT64_C(3600000) /* how far back ticks are counted first; then twice as far */

static const char note_begin[] = "tick 1 ";

enum stage { STARTED, CLAIMED, BEGUN, DONE, STAGES };
static const char *const stages[STAGES] = {"started", "claimed", "begun", "done"};

/* ---- texts --------------------------------------------------------------------------------- */

static void add_digits(struct text *t, int64_t value, int digits)
{
    int64_t scale = 1;
    for (int i = 1; i < digits; i++)
        scale *= 10;
    for (; scale > 0; scale /= 10)
        text_add_int(t, value / scale % 10);
}

void tick_write(char out[static TICK_TEXT_SIZE], int64_t tick)
{
    assert(tick >= 0);
    struct text t;
    struct date d = date_of_days(tick / DAY_MS);
    int64_t ms = tick % DAY_MS;
    assert(d.year <= DATE_YEAR_MAX);
    text_init(&t, out, TICK_TEXT_SIZE);
    add_digits(&t, d.year, 4);
    text_add(&t, "-");
    add_digits(&t, d.month, 2);
    text_add(&t, "-");
    add_digits(&t, d.day, 2);
    text_add(&t, "T");
    add_digits(&t, ms / 3600000, 2);
    text_add(&t, ":");
    add_digits(&t, ms / 60000 % 60, 2);
    text_add(&t, ":");
    add_digits(&t, ms / 1000 % 60, 2);
    if (ms % 1000 != 0) {
        text_add(&t, ".");
        add_digits(&t, ms % 1000, 3);
    }
    text_add(&t, "Z");
}

/* `form` has a 0 for each digit; other characters must be the same. */
static bool has_form(const char *text, const char *form)
{
    for (; *form != '\0'; text++, form++) {
        bool is_digit = *text >= '0' && *text <= '9';
        if (*form == '0' ? !is_digit : *text != *form)
            return false;
    }
    return true;
}

static int digits(const char *text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

bool tick_read(const char *text, size_t length, int64_t *tick)
{
    bool has_ms = length == sizeof "0000-00-00T00:00:00.000Z" - 1;
    if (!has_ms && length != sizeof "0000-00-00T00:00:00Z" - 1)
        return false;
    if (!has_form(text, has_ms ? "0000-00-00T00:00:00.000Z" : "0000-00-00T00:00:00Z"))
        return false;
    int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
    int hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > date_days_in_month(year, month) || hour > 23 || minute > 59 || second > 59)
        return false;
    *tick = date_to_days(year, month, day) * DAY_MS + hour * INT64_C(3600000) +
            minute * INT64_C(60000) + second * INT64_C(1000) + (has_ms ? digits(text + 20, 3) : 0);
    return true;
}

static void write_note(const struct ticks *t, int64_t tick, enum stage stage,
                       char out[static TICKS_NOTE_SIZE])
{
    char shown[TICK_TEXT_SIZE];
    struct text text;
    tick_write(shown, tick);
    text_init(&text, out, TICKS_NOTE_SIZE);
    text_add(&text, note_begin);
    text_add(&text, shown);
    text_add(&text, " ");
    text_add(&text, stages[stage]);
    text_add(&text, " ");
    text_add_hex(&text, t->identity, IDENTITY_DIGITS);
}

static bool read_identity(const char *text, uint32_t *identity)
{
    size_t digits = 0;
    for (*identity = 0; text_hex_value(text[digits]) >= 0; digits++)
        *identity = *identity << 4 | (uint32_t)text_hex_value(text[digits]);
    return digits == IDENTITY_DIGITS && text[digits] == '\0';
}

static bool read_note(const char *note, int64_t *tick, enum stage *stage, uint32_t *identity)
{
    size_t begin = sizeof note_begin - 1;
    if (strncmp(note, note_begin, begin) != 0)
        return false;
    size_t length = strcspn(note + begin, " ");
    if (note[begin + length] == '\0' || !tick_read(note + begin, length, tick))
        return false;
    const char *at = note + begin + length + 1;
    for (*stage = STARTED; *stage < STAGES; (*stage)++) {
        length = strlen(stages[*stage]);
        if (strncmp(at, stages[*stage], length) == 0 && at[length] == ' ')
            return read_identity(at + length + 1, identity);
    }
    return false;
}

static bool is_of_other_version(const char *note)
{
    const char *version = note + sizeof "tick " - 1;
    if (strncmp(note, "tick ", sizeof "tick " - 1) != 0)
        return false;
    size_t length = strspn(version, "0123456789");
    return length > 0 && version[length] == ' ' && strncmp(version, "1 ", 2) != 0;
}

static void add_to_identity(uint32_t *identity, uint64_t value)
{
    for (int i = 0; i < 8; i++) /* FNV-1a */
        *identity = (*identity ^ (uint32_t)(value >> 8 * i & 0xFF)) * 16777619U;
}

uint32_t ticks_identity(const struct ticks *t, const char *zone)
{
    uint32_t identity = 2166136261U;
    const struct cron *c = t->cron;
    if (c == NULL) {
        add_to_identity(&identity, (uint64_t)t->period);
        return identity;
    }
    add_to_identity(&identity, c->minutes);
    add_to_identity(&identity, (uint64_t)c->hours << 32 | c->days);
    add_to_identity(&identity, (uint64_t)c->months << 32 | c->weekdays);
    add_to_identity(&identity, (uint64_t)(c->any_day | c->any_weekday << 1 | c->any_minute << 2 |
                                          c->any_hour << 3));
    for (zone = zone != NULL ? zone : "UTC"; *zone != '\0'; zone++)
        add_to_identity(&identity, (unsigned char)*zone);
    return identity;
}

/* ---- clocks -------------------------------------------------------------------------------- */

int64_t ticks_clock(int64_t own, int64_t store)
{
    bool is_apart = own - store > TICKS_APART_MS || store - own > TICKS_APART_MS;
    return store == 0 || !is_apart ? own : store;
}

bool ticks_is_blocked(const struct ticks *t, int64_t now)
{
    return t->claimed > now + TICKS_APART_MS;
}

/* ---- which is next ------------------------------------------------------------------------- */

int64_t ticks_after(const struct ticks *t, int64_t after)
{
    if (t->cron != NULL)
        return calendar_next(t->cron, t->zone, after);
    return after > CALENDAR_NEVER - t->period ? CALENDAR_NEVER : after + t->period;
}

/* The last one from `claimed` on that has come by now; something has. */
static int64_t last_until(const struct ticks *t, int64_t claimed, int64_t now)
{
    if (t->cron != NULL)
        return calendar_last(t->cron, t->zone, claimed, now);
    return claimed + (now - claimed) / t->period * t->period;
}

static int64_t count(const struct ticks *t, int64_t after, int64_t until)
{
    int64_t n = 0;
    for (int64_t tick = ticks_after(t, after); tick <= until; tick = ticks_after(t, tick))
        n++;
    return n;
}

/* From where on at most TICKS_MADE_UP_MAX ticks have come by now: those before it are dropped. */
static int64_t make_up_from(const struct ticks *t, int64_t now)
{
    if (t->cron == NULL) {
        int64_t most = t->period * TICKS_MADE_UP_MAX, last = last_until(t, t->claimed, now);
        return last - t->claimed > most ? last - most : t->claimed;
    }
    for (int64_t window = WINDOW_MS;; window *= 2) {
        int64_t begin = now - t->claimed > window ? now - window : t->claimed;
        int64_t more = count(t, begin, now) - TICKS_MADE_UP_MAX;
        if (more < 0 && begin > t->claimed)
            continue;
        for (; more > 0; more--)
            begin = ticks_after(t, begin);
        return begin;
    }
}

int ticks_begin(struct ticks *t, const char *note)
{
    enum stage stage;
    uint32_t identity;
    t->claimed = t->planned = 0;
    t->is_first = true;
    t->is_changed = t->is_to_repeat = false;
    if (note[0] == '\0')
        return 0;
    if (!read_note(note, &t->claimed, &stage, &identity))
        return is_of_other_version(note) ? SIMBA_EUNSUPPORTED : SIMBA_ESCHEMA;
    t->is_changed = identity != t->identity;
    t->is_to_repeat = stage == BEGUN && t->at_least_once;
    return 0;
}

bool ticks_start(struct ticks *t, int64_t now, char out[static TICKS_NOTE_SIZE])
{
    if (t->cron == NULL || t->is_to_repeat || (t->claimed != 0 && !t->is_changed))
        return false;
    t->claimed = now > t->claimed ? now : t->claimed;
    t->is_changed = false;
    write_note(t, t->claimed, STARTED, out);
    return true;
}

static int64_t plan_missed(const struct ticks *t, int64_t now)
{
    int64_t last = last_until(t, t->claimed, now);
    bool is_late = t->is_first && now - last <= t->grace; /* not missed */
    switch (t->missed) {
    case SIMBA_MISSED_ONCE:
        return last;
    case SIMBA_MISSED_ALL:
        return ticks_after(t, make_up_from(t, now));
    default:
        return is_late ? last : ticks_after(t, last);
    }
}

/* The first of all: of a period now, and claimed at once. */
static int64_t plan_anew(const struct ticks *t, int64_t now)
{
    if (t->cron != NULL)
        return ticks_after(t, now > t->claimed ? now : t->claimed);
    return now > t->claimed ? now : t->claimed + 1;
}

bool ticks_plan(struct ticks *t, int64_t now)
{
    assert(now >= 0);
    bool dropped = false;
    if (t->is_to_repeat) {
        t->planned = t->claimed;
        return false;
    }
    if (t->claimed == 0 || t->is_changed) {
        t->planned = plan_anew(t, now);
    } else {
        int64_t next = ticks_after(t, t->claimed);
        t->planned = next > now ? next : plan_missed(t, now);
        dropped = t->missed == SIMBA_MISSED_ALL && t->planned != next;
    }
    t->is_first = t->is_changed = false;
    return dropped;
}

bool ticks_is_due(struct ticks *t, int64_t now)
{
    assert(t->planned != 0);
    if (now < t->planned)
        return false;
    if (t->missed != SIMBA_MISSED_ALL && !t->is_to_repeat && ticks_after(t, t->planned) <= now)
        t->planned = last_until(t, t->planned, now);
    return true;
}

/* ---- claims -------------------------------------------------------------------------------- */

bool ticks_note(const struct ticks *t, bool has_run, char out[static TICKS_NOTE_SIZE])
{
    if (!t->at_least_once && has_run)
        return false;
    write_note(t, t->planned, !t->at_least_once ? CLAIMED : has_run ? DONE : BEGUN, out);
    return true;
}

void ticks_claimed(struct ticks *t)
{
    assert(t->planned >= t->claimed);
    t->claimed = t->planned;
    t->is_to_repeat = false;
}
