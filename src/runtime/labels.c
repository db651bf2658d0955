/* labels.c: labels as Prometheus writes them, NAME="VALUE",NAME="VALUE". What is refused here would
 * make Prometheus refuse the whole page, or would be taken for something else there. */
#include "runtime/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/client.h"
#include "runtime/fault.h"

#define LABELS_MAX 16
#define LABELS_BYTES_MAX 1024

/* One NAME="VALUE" in the user's text. */
struct label {
    const char *at;
    size_t name_length, length;
};

/* The names on our own series. */
static const char *const own_names[] = {"mutex", "id", "reason", "store", "version", "le"};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *at)
{
    size_t n = 0;
    while (is_letter(at[n]) || (n > 0 && at[n] >= '0' && at[n] <= '9'))
        n++;
    return n;
}

/* What stands between the quotes, from at on: its length, or what is wrong with it. */
static const char *read_value(const char *at, size_t *length)
{
    const char *begin = at;
    uint32_t point;
    while (*at != '"' && *at != '\0') {
        size_t n = text_utf8(at, &point);
        if (n == 0)
            return "its value is not UTF-8";
        if (*at == '\n')
            return "a new line in a value is written as \\n";
        if (*at == '\\' && at[1] != '\\' && at[1] != '"' && at[1] != 'n')
            return "a backslash in a value begins \\\\, \\\" or \\n";
        at += *at == '\\' ? 2 : n;
    }
    *length = (size_t)(at - begin);
    if (*at == '\0')
        return "there is no quote at the end of its value";
    return *length == 0 ? "its value is empty, which is the same as no label" : NULL;
}

static const char *check_name(const struct label *l, const struct label *others, size_t count)
{
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++) {
        if (strlen(own_names[i]) == l->name_length &&
            memcmp(own_names[i], l->at, l->name_length) == 0)
            return "the library has a label of that name";
    }
    if (l->name_length >= 2 && memcmp(l->at, "__", 2) == 0)
        return "names that begin with two underscores are Prometheus' own";
    for (size_t i = 0; i < count; i++) {
        if (others[i].name_length == l->name_length &&
            memcmp(others[i].at, l->at, l->name_length) == 0)
            return "this name comes twice";
    }
    return NULL;
}

/* One label, at the beginning of the text; NULL, or what is wrong with it. */
static const char *read_label(struct label *l, const char *text)
{
    size_t value;
    l->at = text;
    l->name_length = name_length(text);
    if (l->name_length == 0)
        return "a name consists of letters, digits and _, and does not begin with a digit";
    if (strncmp(text + l->name_length, "=\"", 2) != 0)
        return "after a name comes =\"VALUE\"";
    const char *why = read_value(text + l->name_length + 2, &value);
    l->length = why == NULL ? l->name_length + 2 + value + 1 : l->name_length;
    return why;
}

static int compare(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    size_t shorter = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->at, y->at, shorter);
    return order != 0 ? order
                      : (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

static int keep(struct simba_client *s, struct label *label, size_t count, size_t length)
{
    struct text out;
    s->labels = malloc(length + 1);
    if (s->labels == NULL)
        return fault(SIMBA_ELIMIT, "out of memory");
    qsort(label, count, sizeof *label, compare);
    text_init(&out, s->labels, length + 1);
    for (size_t i = 0; i < count; i++) {
        text_add(&out, i > 0 ? "," : "");
        text_add_bytes(&out, label[i].at, label[i].length);
    }
    return 0;
}

int labels_take(struct simba_client *s, const char *text)
{
    struct label label[LABELS_MAX];
    size_t count = 0;
    if (text == NULL || text[0] == '\0')
        return 0;
    if (strlen(text) > LABELS_BYTES_MAX)
        return fault(SIMBA_EINVAL, "labels: they may have %d bytes at most", LABELS_BYTES_MAX);
    for (const char *at = text;; at++) {
        struct label *l = &label[count];
        if (count == LABELS_MAX)
            return fault(SIMBA_EINVAL, "labels: there may be %d at most", LABELS_MAX);
        const char *why = read_label(l, at);
        if (why == NULL)
            why = check_name(l, label, count);
        if (why == NULL && at[l->length] != ',' && at[l->length] != '\0')
            why = "after a value comes a comma, or the end";
        if (why != NULL)
            return fault(SIMBA_EINVAL, "labels: label %zu '%.*s': %s", count + 1,
                         (int)l->name_length, at, why);
        count++;
        at += l->length;
        if (*at == '\0')
            break;
    }
    return keep(s, label, count, strlen(text));
}
