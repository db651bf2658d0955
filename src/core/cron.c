/* cron.c: parses cron expressions, strictly: what cron programs read in different ways is refused.
 *
 *   expression   five fields, separated by blanks | @hourly @daily @midnight @weekly @monthly
 *                @yearly @annually
 *   field        item[,item…]
 *   item         * | value | value-value, each but the value with an optional /step
 *   value        a number; a month or a weekday may be the first three letters of its name
 *
 * Sunday is 0 and 7. "5/15" means two things in two crons, "*" + "/90" not every 90 minutes in any:
 * both are refused. */
#include "core/cron.h"

#include <assert.h>
#include <simba.h>
#include <string.h>

#include "base/text.h"
#include "core/date.h"

struct field {
    const char *name;
    const char *names; /* three letters each, the first for `names_from`; NULL: none */
    unsigned least, most, names_from;
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct field fields[FIELDS] = {
    [MINUTE] = {"minute", NULL, 0, 59, 0},
    [HOUR] = {"hour", NULL, 0, 23, 0},
    [DAY] = {"day of the month", NULL, 1, 31, 0},
    [MONTH] = {"month", "janfebmaraprmayjunjulaugsepoctnovdec", 1, 12, 1},
    [WEEKDAY] = {"day of the week", "sunmontuewedthufrisat", 0, 7, 0},
};

struct parser {
    const char *at;
    const struct field *field;
    struct text why;
};

static bool fail(struct parser *p, const char *what)
{
    text_add(&p->why, p->field->name);
    text_add(&p->why, ": ");
    text_add(&p->why, what);
    return false;
}

static bool fail_at(struct parser *p, const char *at, size_t length, const char *what)
{
    char shown[24];
    struct text t;
    text_init(&t, shown, sizeof shown);
    text_add_bytes(&t, at, length);
    text_add(&p->why, p->field->name);
    text_add(&p->why, ": '");
    text_add_escaped(&p->why, shown);
    text_add(&p->why, "' ");
    text_add(&p->why, what);
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t item_length(const char *at)
{
    return strcspn(at, " \t,-/");
}

/* A name of a month or a weekday; false: it is none. */
static bool take_name(struct parser *p, size_t length, unsigned *value)
{
    const char *names = p->field->names;
    for (unsigned i = 0; names != NULL && length == 3 && names[(size_t)i * 3] != '\0'; i++) {
        const char *name = names + (size_t)i * 3;
        if (lower(p->at[0]) == name[0] && lower(p->at[1]) == name[1] &&
            lower(p->at[2]) == name[2]) {
            *value = p->field->names_from + i;
            p->at += length;
            return true;
        }
    }
    return false;
}

static bool take_number(struct parser *p, unsigned *value)
{
    unsigned number = 0;
    if (!is_digit(*p->at))
        return false;
    for (; is_digit(*p->at); p->at++)
        number = number < 1000 ? number * 10 + (unsigned)(*p->at - '0') : number;
    *value = number;
    return true;
}

static bool take_value(struct parser *p, unsigned *value)
{
    const char *begin = p->at;
    size_t length = item_length(begin);
    if (length == 0)
        return fail(p, "a value is missing");
    if (take_name(p, length, value))
        return true;
    if (!take_number(p, value) || p->at != begin + length)
        return fail_at(p, begin, length, "is no value of it");
    if (*value < p->field->least || *value > p->field->most) {
        fail_at(p, begin, length, "is not between ");
        text_add_uint(&p->why, p->field->least);
        text_add(&p->why, " and ");
        text_add_uint(&p->why, p->field->most);
        return false;
    }
    return true;
}

/* "fri-sun": a Sunday that ends a range is the seventh day. */
static bool take_range(struct parser *p, unsigned *low, unsigned *high, bool *is_range)
{
    *is_range = true;
    *low = p->field->least;
    *high = p->field->most;
    if (*p->at == '*') {
        p->at++;
        return true;
    }
    const char *begin = p->at;
    if (!take_value(p, low))
        return false;
    *high = *low;
    *is_range = *p->at == '-';
    if (!*is_range)
        return true;
    p->at++;
    if (!take_value(p, high))
        return false;
    if (p->field == &fields[WEEKDAY] && *high == 0 && *low > 0)
        *high = 7;
    if (*low > *high)
        return fail_at(p, begin, (size_t)(p->at - begin), "is a range from high to low");
    return true;
}

static bool take_step(struct parser *p, bool is_range, unsigned *step)
{
    *step = 1;
    if (*p->at != '/')
        return true;
    const char *begin = p->at++;
    if (!is_range)
        return fail(p, "a step needs a range or * before it, as in 10-59/5");
    if (!take_number(p, step))
        return fail(p, "the step after / is missing");
    if (*step == 0 || *step > p->field->most - p->field->least + 1)
        return fail_at(p, begin, (size_t)(p->at - begin), "is not a step within it");
    return true;
}

/* The bits of the values. */
static bool take_field(struct parser *p, uint64_t *bits, bool *any)
{
    *bits = 0;
    *any = *p->at == '*';
    for (;;) {
        unsigned low, high, step;
        bool is_range;
        const char *begin = p->at;
        if (!take_range(p, &low, &high, &is_range) || !take_step(p, is_range, &step))
            return false;
        for (unsigned value = low; value <= high; value += step)
            *bits |= UINT64_C(1) << value;
        if (*p->at == '\0' || is_blank(*p->at))
            return true;
        if (*p->at != ',')
            return fail_at(p, begin, strcspn(begin, " \t,"), "cannot be understood");
        p->at++;
    }
}

static void skip_blanks(struct parser *p)
{
    while (is_blank(*p->at))
        p->at++;
}

static bool take_all(struct parser *p, struct cron *c)
{
    uint64_t bits[FIELDS];
    bool any[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        skip_blanks(p);
        p->field = &fields[i];
        if (*p->at == '\0')
            return fail(p, "this field is missing; there are five: minute, hour, day of the month, "
                           "month, day of the week");
        if (!take_field(p, &bits[i], &any[i]))
            return false;
    }
    skip_blanks(p);
    if (*p->at != '\0') {
        text_add(&p->why, "there is something after the fifth field, the day of the week");
        return false;
    }
    *c = (struct cron){
        .minutes = bits[MINUTE],
        .hours = (uint32_t)bits[HOUR],
        .days = (uint32_t)bits[DAY],
        .months = (uint32_t)bits[MONTH],
        .weekdays = (uint8_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f),
        .any_day = any[DAY],
        .any_weekday = any[WEEKDAY],
        .any_minute = any[MINUTE],
        .any_hour = any[HOUR],
    };
    return true;
}

/* What a name with @ stands for; NULL: there is none. */
static const char *named(const char *name)
{
    static const char *const names[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    size_t length = strcspn(name, " \t");
    if (name[length + strspn(name + length, " \t")] != '\0')
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i][0]) == length && strncmp(name, names[i][0], length) == 0)
            return names[i][1];
    return NULL;
}

bool cron_has_day(const struct cron *c, int month, int day, int weekday)
{
    bool by_day = (c->days >> day & 1) != 0, by_weekday = (c->weekdays >> weekday & 1) != 0;
    if ((c->months >> month & 1) == 0)
        return false;
    return c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* Every date falls on every weekday in some year, so only the day of the month can be missing. */
static bool comes(const struct cron *c)
{
    if (!c->any_day && !c->any_weekday)
        return true;
    for (int month = 1; month <= 12; month++) {
        uint64_t there = (UINT64_C(2) << date_days_in_month(2000, month)) - 2;
        if ((c->months >> month & 1) != 0 && (c->days & there) != 0)
            return true;
    }
    return false;
}

int cron_parse(struct cron *c, const char *text, char *why, size_t size)
{
    struct parser p = {.at = text, .field = &fields[0]};
    text_init(&p.why, why, size);
    if (strlen(text) > CRON_TEXT_MAX) {
        text_add(&p.why, "it is longer than 256 bytes");
        return SIMBA_EINVAL;
    }
    skip_blanks(&p);
    if (*p.at == '@') {
        p.at = named(p.at);
        if (p.at == NULL) {
            text_add(&p.why, "of the names with @ there are @hourly, @daily, @midnight, @weekly, "
                             "@monthly, @yearly and @annually");
            return SIMBA_EINVAL;
        }
    }
    if (!take_all(&p, c))
        return SIMBA_EINVAL;
    if (!comes(c)) {
        text_add(&p.why, "it never comes: none of its months has such a day");
        return SIMBA_EINVAL;
    }
    return 0;
}
