/* zone_file.c: the bytes of a TZif file (RFC 8536, version 2 and later).
 *
 *   header, data with 32-bit times   for old programs; skipped
 *   header, data with 64-bit times   times of changes; for each the number of its type; types
 *   footer                           a rule as in TZ (POSIX), for what comes after the last change
 *
 * Nothing in the file is trusted: each count is compared with what is there. */
#include <simba.h>
#include <string.h>

#include "core/zone.h"

#define HEADER 44
#define TYPE 6
#define COUNT_MAX 100000 /* of anything: far more than there is, far from overflow */
#define RULE_MAX 128

struct header {
    size_t is_utc, is_standard, leaps, times, types, letters;
};

struct bytes {
    const unsigned char *at;
    size_t left;
};

static int64_t number(const unsigned char *at, size_t size)
{
    uint64_t value = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

static bool take_header(struct bytes *b, struct header *h)
{
    int64_t count[6];
    if (b->left < HEADER || memcmp(b->at, "TZif", 4) != 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        count[i] = number(b->at + 20 + 4 * i, 4);
        if (count[i] < 0 || count[i] > COUNT_MAX)
            return false;
    }
    *h = (struct header){
        .is_utc = (size_t)count[0],
        .is_standard = (size_t)count[1],
        .leaps = (size_t)count[2],
        .times = (size_t)count[3],
        .types = (size_t)count[4],
        .letters = (size_t)count[5],
    };
    b->at += HEADER;
    b->left -= HEADER;
    return true;
}

/* How long the data behind a header is. */
static size_t data_size(const struct header *h, size_t time_size)
{
    return h->times * (time_size + 1) + h->types * TYPE + h->letters + h->leaps * (time_size + 4) +
           h->is_standard + h->is_utc;
}

static const char *take_changes(struct zone *z, const struct bytes *b, const struct header *h)
{
    const unsigned char *times = b->at, *kinds = times + h->times * 8, *types = kinds + h->times;
    for (size_t i = 0; i < h->types; i++) {
        int64_t offset = number(types + i * TYPE, 4);
        if (offset < -ZONE_OFFSET_MAX || offset > ZONE_OFFSET_MAX)
            return "an offset from UTC is out of bounds";
    }
    z->first = (int32_t)number(types, 4);
    int32_t before = z->first;
    for (size_t i = 0; i < h->times; i++) {
        int64_t at = number(times + i * 8, 8);
        if (i > 0 && at <= number(times + (i - 1) * 8, 8))
            return "its times are not in order";
        if (kinds[i] >= h->types)
            return "a type of time is missing";
        int32_t offset = (int32_t)number(types + (size_t)kinds[i] * TYPE, 4);
        if (offset == before && i + 1 < h->times)
            continue; /* only its name changes, or what is called summer time */
        if (z->changes == ZONE_CHANGES_MAX)
            return "it has more than 1024 changes";
        z->change[z->changes++] = (struct zone_change){.at = at, .offset = offset};
        before = offset;
    }
    return NULL;
}

/* ---- the rule: CET-1CEST,M3.5.0,M10.5.0/3 ------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* CET, or <+03>. */
static bool take_name(const char **at)
{
    const char *p = *at;
    bool is_quoted = *p == '<';
    if (is_quoted)
        p++;
    const char *begin = p;
    while (is_letter(*p) || (is_quoted && (is_digit(*p) || *p == '+' || *p == '-')))
        p++;
    if (p - begin < 3 || (is_quoted && *p != '>'))
        return false;
    *at = is_quoted ? p + 1 : p;
    return true;
}

static bool take_int(const char **at, int least, int most, int *value)
{
    if (!is_digit(**at))
        return false;
    for (*value = 0; is_digit(**at); ++*at) {
        *value = *value * 10 + (**at - '0');
        if (*value > most)
            return false;
    }
    return *value >= least;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(const char **at, int hours_most, int32_t *seconds)
{
    int part[3] = {0};
    bool is_negative = **at == '-';
    if (**at == '-' || **at == '+')
        ++*at;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && **at != ':')
            break;
        if (i > 0)
            ++*at;
        if (!take_int(at, 0, i == 0 ? hours_most : 59, &part[i]))
            return false;
    }
    *seconds = (part[0] * 3600 + part[1] * 60 + part[2]) * (is_negative ? -1 : 1);
    return true;
}

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_date(const char **at, struct zone_date *d)
{
    *d = (struct zone_date){.time = 2 * 3600};
    if (take_char(at, 'M')) {
        d->kind = ZONE_MONTH_WEEK;
        if (!take_int(at, 1, 12, &d->month) || !take_char(at, '.') ||
            !take_int(at, 1, 5, &d->week) || !take_char(at, '.') || !take_int(at, 0, 6, &d->day))
            return false;
    } else if (take_char(at, 'J')) {
        d->kind = ZONE_DAY_NO_LEAP;
        if (!take_int(at, 1, 365, &d->day))
            return false;
    } else {
        d->kind = ZONE_DAY;
        if (!take_int(at, 0, 365, &d->day))
            return false;
    }
    return !take_char(at, '/') || take_time(at, 167, &d->time);
}

/* POSIX counts offsets westwards. */
static bool take_rule(struct zone *z, const char *at)
{
    int32_t west;
    if (!take_name(&at) || !take_time(&at, 24, &west))
        return false;
    z->has_rule = true;
    z->standard = -west;
    z->has_summer = *at != '\0';
    if (!z->has_summer)
        return true;
    if (!take_name(&at))
        return false;
    z->summer = z->standard + 3600;
    if (*at != ',') {
        if (!take_time(&at, 24, &west))
            return false;
        z->summer = -west;
    }
    if (!take_char(&at, ',') || !take_date(&at, &z->begin))
        return false;
    if (!take_char(&at, ',') || !take_date(&at, &z->end))
        return false;
    return *at == '\0';
}

static const char *take_footer(struct zone *z, const struct bytes *b)
{
    char rule[RULE_MAX + 1];
    const unsigned char *end = b->left > 1 ? memchr(b->at + 1, '\n', b->left - 1) : NULL;
    if (end == NULL || b->at[0] != '\n')
        return "the rule at its end is missing";
    size_t length = (size_t)(end - b->at) - 1;
    if (length > RULE_MAX || memchr(b->at + 1, '\0', length) != NULL)
        return "the rule at its end cannot be understood";
    memcpy(rule, b->at + 1, length);
    rule[length] = '\0';
    if (length > 0 && !take_rule(z, rule))
        return "the rule at its end cannot be understood";
    return NULL;
}

static const char *parse(struct zone *z, struct bytes b)
{
    struct header h;
    if (!take_header(&b, &h))
        return "it is not in the format TZif";
    if (b.at[4 - HEADER] < '2')
        return "its version of the format TZif is 1; tzdata writes 2 and later";
    size_t skip = data_size(&h, 4);
    if (b.left < skip)
        return "it ends too early";
    b.at += skip;
    b.left -= skip;
    if (!take_header(&b, &h))
        return "its second part is not in the format TZif";
    size_t size = data_size(&h, 8);
    if (b.left < size || h.types == 0)
        return "it ends too early";
    if (h.leaps > 0)
        return "it counts leap seconds, which the clock of the machine does not";
    const char *why = take_changes(z, &b, &h);
    if (why != NULL)
        return why;
    b.at += size;
    b.left -= size;
    return take_footer(z, &b);
}

int zone_parse(struct zone *z, const void *bytes, size_t size, const char **why)
{
    zone_init_utc(z);
    *why = parse(z, (struct bytes){.at = bytes, .left = size});
    return *why == NULL ? 0 : SIMBA_EINVAL;
}
