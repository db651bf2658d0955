/* name.c: names that every store can hold and give back byte for byte.
 *
 * The limits are the columns of the SQL table that the JVM implementation made first; they count
 * bytes here, which is never more generous than its characters. Names are compared bytewise
 * everywhere, so they are not normalised either: only what is no text at all is refused. */
#include "core/name.h"

#include "base/text.h"

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct rules {
    size_t max;
    const char *missing, *empty, *blank, *malformed, *large;
};

#define NUMBER(n) #n
#define LIMIT(n) NUMBER(n)
#define RULES(what, limit)                                                               \
    {                                                                                    \
        .max = limit, .missing = what " is missing (NULL)", .empty = what " is empty",   \
        .blank = what " is nothing but blanks", .malformed = what " is not valid UTF-8", \
        .large = what " is longer than " NUMBER(limit) " bytes",                         \
    }

static const struct rules mutex_rules = RULES("the name of the mutex", SIMBA_MUTEX_MAX);
static const struct rules id_rules = RULES("the id of the contender", SIMBA_ID_MAX);

/* White space as the JVM sees it: nobody can tell names apart that consist of it. */
static bool is_blank(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } blanks[] = {
        {0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
    };
    for (size_t i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++)
        if (point >= blanks[i].first && point <= blanks[i].last)
            return true;
    return false;
}

/* The broken rule, or NULL. */
static const char *broken(const char *name, const struct rules *rules)
{
    if (name == NULL)
        return rules->missing;
    if (name[0] == '\0')
        return rules->empty;
    if (strlen(name) > rules->max)
        return rules->large;
    bool blank = true;
    for (size_t length; *name != '\0'; name += length) {
        uint32_t point;
        length = text_utf8(name, &point);
        if (length == 0)
            return rules->malformed;
        blank = blank && is_blank(point);
    }
    return blank ? rules->blank : NULL;
}

static int check(const char *name, const struct rules *rules, const char **why)
{
    *why = broken(name, rules);
    return *why == NULL ? 0 : SIMBA_EINVAL;
}

int name_check_mutex(const char *mutex, const char **why)
{
    return check(mutex, &mutex_rules, why);
}

int name_check_id(const char *id, const char **why)
{
    return check(id, &id_rules, why);
}

int name_check_note(const char *text, const char **why)
{
    *why = NULL;
    if (text == NULL)
        *why = "the note is missing (NULL)";
    else if (strlen(text) > SIMBA_NOTE_MAX)
        *why = "the note is longer than " LIMIT(SIMBA_NOTE_MAX) " bytes";
    for (size_t length; *why == NULL && *text != '\0'; text += length) {
        uint32_t point;
        length = text_utf8(text, &point);
        if (length == 0)
            *why = "the note is not valid UTF-8";
    }
    return *why == NULL ? 0 : SIMBA_EINVAL;
}
