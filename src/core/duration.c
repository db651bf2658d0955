/* duration.c: "500ms", "10s", "0.5", "1h", "1d" to milliseconds.
 *
 * In integers throughout, because a lease of 0.3 s is 300 ms and not 299. What cannot be said
 * exactly in milliseconds is an error: whoever writes 0.0001s means something, and it is not 0. */
#include "core/duration.h"

#include <simba.h>
#include <stddef.h>
#include <string.h>

#define LONGEST_MS (INT64_C(10) * 365 * 24 * INT64_C(3600) * 1000)

/* More digits than this after the point, without zeros at the end, are finer than a millisecond in
 * every unit: 86400000 ms, the longest, has 2 ten times as a factor. */
#define FRACTION_DIGITS_MAX 10

static const char form[] = "a duration is a number with ms, s, m, h or d, as in 500ms, 10s, 1.5m";

/* Milliseconds in a unit, 0 if there is no such unit. */
static int64_t unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* The value of some digits; what is longer than any duration stays so. */
static int64_t number(const char *digits, size_t count)
{
    int64_t value = 0;
    for (size_t i = 0; i < count && value <= LONGEST_MS; i++)
        value = value * 10 + (digits[i] - '0');
    return value;
}

/* Digits after the point, of a unit, to milliseconds; -1: there is a rest. */
static int64_t fraction_ms(const char *digits, size_t count, int64_t unit)
{
    while (count > 0 && digits[count - 1] == '0')
        count--;
    if (count > FRACTION_DIGITS_MAX)
        return -1;
    int64_t scale = 1;
    for (size_t i = 0; i < count; i++)
        scale *= 10;
    int64_t scaled = number(digits, count) * unit;
    return scaled % scale == 0 ? scaled / scale : -1;
}

/* Returns the broken rule, or NULL and the result. */
static const char *parse(const char *text, int64_t *ms)
{
    size_t whole_digits = count_digits(text);
    if (whole_digits == 0)
        return form;
    const char *unit = text + whole_digits;
    const char *fraction = unit;
    size_t fraction_digits = 0;
    if (*unit == '.') {
        fraction = unit + 1;
        fraction_digits = count_digits(fraction);
        if (fraction_digits == 0)
            return form;
        unit = fraction + fraction_digits;
    }
    int64_t each = unit_ms(unit);
    if (each == 0)
        return "the unit of a duration is ms, s, m, h or d";
    int64_t rest = fraction_ms(fraction, fraction_digits, each);
    if (rest < 0)
        return "a duration cannot be finer than 1ms";
    int64_t whole = number(text, whole_digits);
    if (whole > LONGEST_MS / each || whole * each > LONGEST_MS - rest)
        return "a duration cannot be longer than ten years";
    *ms = whole * each + rest;
    return NULL;
}

int duration_parse(const char *text, int64_t *ms, const char **why)
{
    *why = parse(text, ms);
    return *why == NULL ? 0 : SIMBA_EINVAL;
}
