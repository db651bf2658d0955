/* once_record.c: see once_record.h. */
#include "cli/run/once_record.h"

#include <stdio.h>
#include <string.h>

#define HEAD "once/1 "
#define FAILURES_MAX 999999 /* they are counted no further */

static bool skip(const char **at, const char *word)
{
    size_t length = strlen(word);
    bool is_there = strncmp(*at, word, length) == 0;
    *at += is_there ? length : 0;
    return is_there;
}

static bool read_number(const char **at, int64_t *out)
{
    long long number;
    int length = 0;
    bool is_number =
        **at >= '0' && **at <= '9' && sscanf(*at, "%15lld%n", &number, &length) == 1 && length > 0;
    *at += length;
    *out = is_number ? number : 0;
    return is_number;
}

/* "N after M ms" */
static bool read_end(const char **at, int *status, int64_t *took_ms)
{
    int64_t number;
    bool is_read = read_number(at, &number) && number <= 999 && skip(at, " after ") &&
                   read_number(at, took_ms) && skip(at, " ms");
    *status = is_read ? (int)number : 0;
    return is_read;
}

static bool read_failure(const char **at, struct once_record *r)
{
    int64_t failures;
    bool is_read = read_end(at, &r->failed_status, &r->failed_took_ms) && skip(at, ", ") &&
                   read_number(at, &failures) && failures > 0 && failures <= FAILURES_MAX &&
                   skip(at, " in a row, by ") && strlen(*at) <= SIMBA_ID_MAX;
    if (!is_read)
        return false;
    r->failures = (int)failures;
    snprintf(r->failed_by, sizeof r->failed_by, "%s", *at);
    *at += strlen(*at);
    return true;
}

static bool read_all(const char *at, struct once_record *r)
{
    if (!skip(&at, HEAD))
        return false;
    if (skip(&at, "begun"))
        r->kind = RECORD_BEGUN;
    else if (skip(&at, "ended "))
        r->kind = RECORD_ENDED;
    else if (!skip(&at, "not begun"))
        return false;
    if (r->kind == RECORD_ENDED && !read_end(&at, &r->status, &r->took_ms))
        return false;
    if (skip(&at, ", ") && !(read_number(&at, &r->ago_ms) && skip(&at, " ms ago")))
        return false;
    if (skip(&at, "; failed ") && !read_failure(&at, r))
        return false;
    return *at == '\0';
}

struct once_record record_parse(const char *text)
{
    struct once_record r = {.kind = RECORD_NONE};
    if (text[0] != '\0' && !read_all(text, &r))
        r = (struct once_record){.kind = RECORD_FOREIGN};
    return r;
}

void record_write(const struct once_record *r, char out[static RECORD_MAX])
{
    char ended[64], ago[32] = "", failed[RECORD_MAX - 96] = "";
    snprintf(ended, sizeof ended, "ended %d after %lld ms", r->status, (long long)r->took_ms);
    if (r->ago_ms > 0)
        snprintf(ago, sizeof ago, ", %lld ms ago", (long long)r->ago_ms);
    if (r->failures > 0)
        snprintf(failed, sizeof failed, "; failed %d after %lld ms, %d in a row, by %s",
                 r->failed_status, (long long)r->failed_took_ms,
                 r->failures < FAILURES_MAX ? r->failures : FAILURES_MAX, r->failed_by);
    snprintf(out, RECORD_MAX, HEAD "%s%s%s",
             r->kind == RECORD_ENDED   ? ended
             : r->kind == RECORD_BEGUN ? "begun"
                                       : "not begun",
             ago, failed);
}
