/* text.c: the bounded text builder, UTF-8, %XX and the distance of words.
 *
 * The core writes its messages and ids with this instead of snprintf: it needs no locale, cannot
 * overrun, and leaves no half character behind that a log or a JSON writer would choke on. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

/* How many bytes a character has that begins with this one; 0: none begins so. */
static size_t utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC0)
        return 0;
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF8 ? 4 : 0;
}

static bool utf8_continues(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t text_utf8(const char *at, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    assert(*at != '\0');
    unsigned char first = (unsigned char)at[0];
    size_t length = utf8_length(first);
    uint32_t value = first & mask[length];
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)at[i];
        if (!utf8_continues(byte))
            return 0;
        value = value << 6 | (byte & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    *point = value;
    return length;
}

const char *text_fault(const char *string)
{
    for (size_t length; *string != '\0'; string += length) {
        uint32_t point;
        length = text_utf8(string, &point);
        if (length == 0)
            return " is not valid UTF-8";
        if (point < ' ' || point == 0x7F)
            return " holds a control character";
    }
    return NULL;
}

int text_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

const char *text_unescape(char *to, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char byte = from[i];
        if (byte == '%') {
            int high = count - i > 2 ? text_hex_value(from[i + 1]) : -1;
            int low = high < 0 ? -1 : text_hex_value(from[i + 2]);
            if (low < 0)
                return " has a % without two hex digits: write % as %25";
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (byte == '\0')
            return " has a %00: it cannot hold a NUL";
        *to++ = byte;
    }
    *to = '\0';
    return NULL;
}

/* The cut may have gone through a character, also through one that was added in pieces. */
static void drop_half_character(struct text *t)
{
    for (size_t back = 1; back <= 3 && back <= t->length; back++) {
        unsigned char byte = (unsigned char)t->at[t->length - back];
        if (!utf8_continues(byte)) {
            if (utf8_length(byte) > back)
                t->length -= back;
            return;
        }
    }
}

void text_init(struct text *t, char *at, size_t size)
{
    assert(size > 0);
    *t = (struct text){.at = at, .size = size};
    at[0] = '\0';
}

void text_add(struct text *t, const char *string)
{
    text_add_bytes(t, string, strlen(string));
}

void text_add_bytes(struct text *t, const char *bytes, size_t count)
{
    assert(t->length < t->size);
    if (t->cut)
        return;
    size_t room = t->size - 1 - t->length;
    t->cut = count > room;
    size_t taken = t->cut ? room : count;
    memcpy(t->at + t->length, bytes, taken);
    t->length += taken;
    if (t->cut)
        drop_half_character(t);
    t->at[t->length] = '\0';
}

void text_add_int(struct text *t, int64_t value)
{
    if (value < 0) {
        text_add_bytes(t, "-", 1);
        text_add_uint(t, 0 - (uint64_t)value);
    } else {
        text_add_uint(t, (uint64_t)value);
    }
}

void text_add_uint(struct text *t, uint64_t value)
{
    char digits[20]; /* as many as UINT64_MAX has */
    size_t first = sizeof(digits);
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    text_add_bytes(t, digits + first, sizeof(digits) - first);
}

void text_add_hex(struct text *t, uint64_t value, size_t digits)
{
    char hex[16];
    assert(digits >= 1);
    assert(digits <= sizeof(hex));
    for (size_t i = digits; i-- > 0; value >>= 4)
        hex[i] = "0123456789abcdef"[value & 15];
    text_add_bytes(t, hex, digits);
}

size_t text_distance(const char *a, const char *b)
{
    size_t row[TEXT_DISTANCE_MAX + 1]; /* from the first i letters of a to the first j of b */
    size_t width = strlen(b);
    assert(width <= TEXT_DISTANCE_MAX);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t changed = diagonal + (a[i] != b[j]);
            size_t edited = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < edited ? changed : edited;
        }
    }
    return row[width];
}

const char *text_nearest(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        size_t edits = text_distance(name, names[i]);
        if (edits < least) {
            least = edits;
            best = names[i];
        }
    }
    return best;
}

bool text_is_hidden(uint32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x61C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069);
}

void text_add_escaped(struct text *t, const char *string)
{
    while (*string != '\0') {
        uint32_t point;
        size_t length = text_utf8(string, &point);
        if (length == 0)
            point = (unsigned char)*string;
        if (length != 0 && !text_is_hidden(point)) {
            text_add_bytes(t, string, length);
        } else {
            text_add(t, point < 0x100 ? "\\x" : "\\u");
            text_add_hex(t, point, point < 0x100 ? 2 : 4);
        }
        string += length == 0 ? 1 : length;
    }
}

void text_end(struct text *t)
{
    if (!t->cut || t->size <= sizeof TEXT_ELLIPSIS)
        return;
    size_t end = t->length, most = t->size - sizeof TEXT_ELLIPSIS;
    while (end > most || (end > 0 && utf8_continues((unsigned char)t->at[end])))
        end--;
    size_t word = end;
    while (word > end / 2 && t->at[word - 1] != ' ')
        word--;
    if (word > end / 2) /* else it is one long word */
        end = word;
    memcpy(t->at + end, TEXT_ELLIPSIS, sizeof TEXT_ELLIPSIS);
    t->length = end + sizeof TEXT_ELLIPSIS - 1;
}

/* As text_utf8, within `left` bytes; 0 for a NUL, too. */
static size_t character_at(const char *bytes, size_t left)
{
    char c[5] = "";
    uint32_t point;
    memcpy(c, bytes, left < 4 ? left : 4);
    return c[0] != '\0' ? text_utf8(c, &point) : 0;
}

void text_shorten(char *out, size_t size, const char *bytes, size_t count)
{
    size_t used = 0, fits = 0; /* fits: so much is kept if it has to be cut */
    assert(size > sizeof TEXT_ELLIPSIS);
    for (size_t i = 0, step; i < count; i += step, used += step) {
        size_t valid = character_at(bytes + i, count - i);
        step = valid > 0 ? valid : 1;
        if (used + step >= size) {
            memcpy(out + fits, TEXT_ELLIPSIS, sizeof TEXT_ELLIPSIS);
            return;
        }
        memcpy(out + used, valid > 0 ? bytes + i : "?", step);
        if (used + step + sizeof TEXT_ELLIPSIS <= size)
            fits = used + step;
    }
    out[used] = '\0';
}

/* Two parts, the second with two digits. */
static void add_parts(struct text *t, int64_t first, const char *unit, int64_t second,
                      const char *second_unit)
{
    text_add_int(t, first);
    text_add(t, unit);
    text_add(t, second < 10 ? "0" : "");
    text_add_int(t, second);
    text_add(t, second_unit);
}

static void add_duration(struct text *t, int64_t ms, bool is_steady)
{
    int64_t s = (ms < 0 ? 0 : ms) / 1000, tenths = (ms < 0 ? 0 : ms) / 100 % 10;
    if (s < 60) {
        text_add_int(t, s);
        if (s < 10 && (is_steady || tenths != 0 || s == 0)) {
            text_add(t, ".");
            text_add_int(t, tenths);
        }
        text_add(t, "s");
    } else if (s < 3600) {
        add_parts(t, s / 60, "m", s % 60, "s");
    } else if (s < 86400) {
        add_parts(t, s / 3600, "h", s / 60 % 60, "m");
    } else {
        add_parts(t, s / 86400, "d", s / 3600 % 24, "h");
    }
}

void text_add_duration(struct text *t, int64_t ms)
{
    add_duration(t, ms, false);
}

void text_add_steady_duration(struct text *t, int64_t ms)
{
    add_duration(t, ms, true);
}
