/* page.c: the picture of a torture run, as one file of HTML that needs nothing else.
 *
 * What is drawn, and how, is in page.html, page.css, page.js and timeline.js, which are embedded as
 * one template. This file puts the history into it, as JSON. Everything that users chose is in that
 * JSON and nowhere else, and the scripts show it as text, never as markup: so there is one thing to
 * escape, and one function that does it. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/shown.h"
#include "lab/torture/fault.h"
#include "lab/torture/history.h"
#include "lab/torture/page_html.h" /* generated: page_head, page_tail */

#define TEXT_SIZE 600 /* more than any text of a history */

/* What could end the script element, or begin a comment in it, is escaped; show_name has taken out
 * what is not UTF-8 or not printable. */
static void write_text(FILE *out, const char *text)
{
    char shown[TEXT_SIZE];
    putc('"', out);
    for (const char *at = show_name(text, shown, sizeof shown); *at != '\0'; at++) {
        if (strchr("\"\\<>&'", *at) != NULL)
            (void)fprintf(out, "\\u%04x", (unsigned)*at);
        else
            putc(*at, out);
    }
    putc('"', out);
}

/* Between the elements of an array. */
static void write_comma(FILE *out, size_t i)
{
    if (i > 0)
        (void)fputs(",\n", out);
}

static int64_t since(const struct run_history *h, int64_t at)
{
    return at > h->begin ? at - h->begin : 0;
}

static void write_tenures(FILE *out, const struct run_history *h)
{
    (void)fputs("\"tenures\":{\"columns\":[\"mutex\",\"worker\",\"life\",\"token\",\"from\",\"to\","
                "\"left\",\"reason\",\"wrong\"],\"rows\":[\n",
                out);
    for (size_t i = 0; i < h->tenure_count; i++) {
        const struct tenure_seen *t = &h->tenures[i];
        write_comma(out, i);
        (void)fprintf(out, "[%u,%u,%u,\"%" PRIu64 "\",%" PRId64 ",%" PRId64 ",%" PRId64 ",%u,%d]",
                      t->mutex, t->worker, t->life, t->token, since(h, t->first), since(h, t->last),
                      t->left != 0 ? since(h, t->left) : -1, t->reason, t->is_wrong);
    }
    (void)fputs("]},\n", out);
}

static void write_takeovers(FILE *out, const struct run_history *h)
{
    (void)fputs("\"takeovers\":{\"columns\":[\"mutex\",\"kind\",\"length\",\"bound\"],\"rows\":[\n",
                out);
    for (size_t i = 0; i < h->takeover_count; i++) {
        const struct takeover *t = &h->takeovers[i];
        write_comma(out, i);
        (void)fprintf(out, "[%u,\"%s\",%" PRId64 ",%" PRId64 "]", t->mutex,
                      t->kind == TAKEOVER_HANDOVER ? "hand-over" : "takeover", t->ns, t->bound);
    }
    (void)fputs("]},\n", out);
}

/* In words: what was done to a worker, or how its process ended. */
static void describe(char *out, size_t size, const struct run_history *h, const struct entry *e)
{
    bool is_named = e->detail < h->fault_name_count && h->fault_names[e->detail] != NULL;
    if (e->kind == ENTRY_FAULT && is_named)
        (void)snprintf(out, size, "%s", h->fault_names[e->detail]);
    else if (e->kind == ENTRY_FAULT)
        (void)snprintf(out, size, "fault %u", e->detail);
    else if (e->detail != DEATH_BY_ITSELF)
        (void)snprintf(out, size, e->detail == DEATH_BY_US ? "killed" : "hung, and was killed");
    else if (WIFSIGNALED(e->code))
        (void)snprintf(out, size, "crashed with signal %d", WTERMSIG(e->code));
    else
        (void)snprintf(out, size, "ended with status %d", WEXITSTATUS(e->code));
}

static const char *kind_of(const struct entry *e)
{
    if (e->kind == ENTRY_FAULT)
        return "fault";
    if (e->detail == DEATH_BY_US)
        return "kill";
    return e->detail == DEATH_BY_ITSELF && e->code == 0 ? "end" : "crash";
}

/* An eviction strikes a mutex, whoever owns it; others strike workers. */
static int mutex_of(const struct entry *e)
{
    bool is_eviction = e->detail == FAULT_EVICT || e->detail == FAULT_EVICT_FORCED;
    return e->kind == ENTRY_FAULT && is_eviction ? e->mutex : -1;
}

static void write_faults(FILE *out, const struct run_history *h)
{
    (void)fputs("\"faults\":{\"columns\":[\"what\",\"kind\",\"worker\",\"life\",\"mutex\",\"from\","
                "\"to\"],\"rows\":[\n",
                out);
    for (size_t i = 0; i < h->fault_count; i++) {
        const struct entry *e = &h->faults[i];
        int64_t after = e->kind == ENTRY_DEATH  ? e->before
                        : e->after >= e->before ? e->after
                                                : h->end;
        char what[TEXT_SIZE];
        describe(what, sizeof what, h, e);
        write_comma(out, i);
        (void)putc('[', out);
        write_text(out, what);
        (void)fprintf(out, ",\"%s\",%d,%u,%d,%" PRId64 ",%" PRId64 "]", kind_of(e),
                      e->worker == FAULT_ON_ALL ? -1 : e->worker, e->life, mutex_of(e),
                      since(h, e->before), since(h, after));
    }
    (void)fputs("]},\n", out);
}

static void write_findings(FILE *out, const struct run_history *h)
{
    static const char *const kinds[] = {
        [FINDING_WRONG] = "wrong", [FINDING_LATE] = "late", [FINDING_LIMIT] = "limit"};
    (void)fputs("\"findings\":{\"columns\":[\"kind\",\"at\",\"worker\",\"mutex\",\"token\","
                "\"text\"],\"rows\":[\n",
                out);
    for (size_t i = 0; i < h->finding_count; i++) {
        const struct judge_finding *f = &h->findings[i];
        write_comma(out, i);
        (void)fprintf(out, "[\"%s\",%" PRId64 ",%u,%u,\"%" PRIu64 "\",", kinds[f->kind],
                      since(h, f->at), f->worker, f->mutex, f->token);
        write_text(out, f->text);
        (void)putc(']', out);
    }
    (void)fputs("]}\n", out);
}

static void write_head(FILE *out, const struct run_history *h)
{
    (void)fprintf(out,
                  "\"length\":%" PRId64 ",\"calm\":%" PRId64 ",\"answers\":%" PRIu64
                  ",\"seed\":\"%" PRIu64 "\",\"lease_ms\":%" PRId64 ",\"bound_ms\":%" PRId64
                  ",\"delay\":%" PRId64 ",\n",
                  since(h, h->end), h->calm != 0 ? since(h, h->calm) : -1, h->answers, h->seed,
                  h->lease_ms, h->bound_ms, h->delay);
    (void)fputs("\"store\":", out);
    write_text(out, h->store);
    (void)fputs(",\"command\":", out);
    write_text(out, h->command);
    (void)fprintf(out, ",\n\"mutexes\":%zu,\"workers\":[", h->mutexes);
    for (size_t i = 0; i < h->workers; i++) {
        write_comma(out, i);
        bool is_known = h->worker_kinds != NULL && h->worker_kinds[i] != NULL;
        write_text(out, is_known ? h->worker_kinds[i] : "");
    }
    (void)fputs("],\n", out);
}

static void write_all(FILE *out, const char *const *strings)
{
    while (*strings != NULL)
        (void)fputs(*strings++, out);
}

int page_write(FILE *out, const struct run_history *h)
{
    errno = 0;
    write_all(out, page_head);
    (void)fputs("{\"format\":1,", out);
    write_head(out, h);
    write_tenures(out, h);
    write_takeovers(out, h);
    write_faults(out, h);
    write_findings(out, h);
    (void)putc('}', out);
    write_all(out, page_tail);
    if (fflush(out) == 0 && ferror(out) == 0)
        return 0;
    if (errno == 0)
        errno = EIO;
    return -1;
}
