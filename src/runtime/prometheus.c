/* prometheus.c: what several clients have counted, as one page in the text format of Prometheus.
 * There every metric has one head and then the series of all, so the page goes metric by metric. */
#include "runtime/prometheus.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/inquiry.h"

/* Of one client. */
struct source {
    simba_client *client;
    struct simba_metrics m;
    struct snapshot *list, **handle; /* the handles; in order, each mutex and id once */
    size_t handles;
};

/* ---- text ---------------------------------------------------------------------------------- */

/* Text that grows; what does not fit is only counted. */
struct page {
    char *out;
    size_t size, length;
    bool has_labels; /* the series that is being written */
};

static void put_bytes(struct page *p, const char *bytes, size_t count)
{
    if (p->length < p->size) {
        size_t room = p->size - p->length - 1, n = count < room ? count : room;
        memcpy(p->out + p->length, bytes, n);
        p->out[p->length + n] = '\0';
    }
    p->length += count;
}

static void put(struct page *p, const char *text)
{
    put_bytes(p, text, strlen(text));
}

static void put_number(struct page *p, uint64_t n)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    put(p, digits);
}

/* Microseconds as seconds; printf would write a comma in some locales. */
static void show_seconds(uint64_t us, char out[32])
{
    snprintf(out, 32, "%llu.%06llu", (unsigned long long)(us / 1000000),
             (unsigned long long)(us % 1000000));
}

static void put_head(struct page *p, const char *name, const char *type, const char *help)
{
    const char *const parts[] = {
        "# HELP simba_", name, " ", help, "\n# TYPE simba_", name, " ", type, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        put(p, parts[i]);
}

/* ---- a series: its name, its labels, its value --------------------------------------------- */

/* labels NULL or "": none yet. */
static void begin_sample(struct page *p, const char *name, const char *part, const char *labels)
{
    put(p, "simba_");
    put(p, name);
    put(p, part);
    p->has_labels = labels != NULL && labels[0] != '\0';
    if (p->has_labels) {
        put(p, "{");
        put(p, labels);
    }
}

static void put_label(struct page *p, const char *name, const char *value)
{
    put(p, p->has_labels ? "," : "{");
    p->has_labels = true;
    put(p, name);
    put(p, "=\"");
    while (*value != '\0') {
        size_t plain = strcspn(value, "\"\\\n");
        put_bytes(p, value, plain);
        value += plain;
        if (*value != '\0') {
            put(p, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\");
            value++;
        }
    }
    put(p, "\"");
}

static void begin_value(struct page *p)
{
    put(p, p->has_labels ? "} " : " ");
}

static void end_sample(struct page *p, uint64_t value)
{
    begin_value(p);
    put_number(p, value);
    put(p, "\n");
}

static void end_sample_seconds(struct page *p, uint64_t us)
{
    char seconds[32];
    show_seconds(us, seconds);
    begin_value(p);
    put(p, seconds);
    put(p, "\n");
}

/* ---- of a client --------------------------------------------------------------------------- */

#define AT(field) offsetof(struct simba_metrics, field)

static const struct number {
    const char *name, *type, *help; /* help NULL: as the one before */
    const char *reason;             /* a label; NULL: none */
    size_t at;
} numbers[] = {
    {"handles", "gauge", "Contenders, lockers, schedulers and observers.", NULL, AT(handles)},
    {"owned", "gauge", "Mutexes owned now.", NULL, AT(owned)},
    {"attempts_total", "counter", "Attempts to acquire.", NULL, AT(attempts)},
    {"acquisitions_total", "counter", "Tenures that began.", NULL, AT(acquisitions)},
    {"renewals_total", "counter", "Renewals asked for.", NULL, AT(renewals)},
    {"failures_total", "counter", "Requests that failed or were not answered.", NULL, AT(failures)},
    {"losses_total", "counter", "Tenures that ended against the owner's will.", "expired",
     AT(expired)},
    {"losses_total", NULL, NULL, "evicted", AT(evicted)},
    {"losses_total", NULL, NULL, "stalled", AT(stalled)},
    {"reconnects_total", "counter", "Connections to the store made anew.", NULL, AT(reconnects)},
    {"runs_total", "counter", "Runs of scheduled work that have ended.", NULL, AT(runs)},
    {"runs_failed_total", "counter", "Those that did not return 0.", NULL, AT(runs_failed)},
    {"schedules_blocked", "gauge", "Schedules that run nothing: a tick of the future is claimed.",
     NULL, AT(schedules_blocked)},
    {"schedules_apart", "gauge", "Schedules whose machine's clock is not that of the store.", NULL,
     AT(schedules_apart)},
    {"events_dropped_total", "counter", "Events that the trace function did not take in time.",
     NULL, AT(events_dropped)},
};

static const struct {
    const char *name, *help;
    size_t at;
} histograms[] = {
    {"operation_seconds", "From a request to its answer.", AT(operation)},
    {"handoff_seconds", "From a push to the acquisition.", AT(handoff)},
    {"wait_seconds", "From start or acquire to the tenure.", AT(wait)},
    {"hold_seconds", "From the beginning of a tenure to its end.", AT(hold)},
    {"callback_delay_seconds", "Callbacks waiting for a thread.", AT(callback_delay)},
    {"callback_seconds", "Callbacks running.", AT(callback)},
    {"run_seconds", "Runs of scheduled work.", AT(run)},
};

static const void *field(const struct source *from, size_t at)
{
    return (const char *)&from->m + at;
}

static void put_histogram(struct page *p, const char *name, const char *labels,
                          const struct simba_histogram *h)
{
    uint64_t sum = 0;
    char bound[32];
    for (unsigned i = 0; i + 1 < METRICS_BUCKETS; i++) {
        sum += h->bucket[i];
        show_seconds(UINT64_C(1) << i, bound);
        begin_sample(p, name, "_bucket", labels);
        put_label(p, "le", bound);
        end_sample(p, sum);
    }
    begin_sample(p, name, "_bucket", labels);
    put_label(p, "le", "+Inf");
    end_sample(p, h->count);
    begin_sample(p, name, "_sum", labels);
    end_sample_seconds(p, h->sum_us);
    begin_sample(p, name, "_count", labels);
    end_sample(p, h->count);
}

static void put_info(struct page *p, const struct source *from, size_t count)
{
    put_head(p, "client_info", "gauge", "1; the store, and the version of the library.");
    for (size_t i = 0; i < count; i++) {
        begin_sample(p, "client_info", "", from[i].client->labels);
        put_label(p, "store", simba_store_text(from[i].client));
        put_label(p, "version", simba_version());
        end_sample(p, 1);
    }
}

static void put_clients(struct page *p, const struct source *from, size_t count)
{
    put_info(p, from, count);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        if (numbers[n].help != NULL)
            put_head(p, numbers[n].name, numbers[n].type, numbers[n].help);
        for (size_t i = 0; i < count; i++) {
            begin_sample(p, numbers[n].name, "", from[i].client->labels);
            if (numbers[n].reason != NULL)
                put_label(p, "reason", numbers[n].reason);
            end_sample(p, *(const uint64_t *)field(&from[i], numbers[n].at));
        }
    }
    for (size_t n = 0; n < sizeof histograms / sizeof *histograms; n++) {
        put_head(p, histograms[n].name, "histogram", histograms[n].help);
        for (size_t i = 0; i < count; i++)
            put_histogram(p, histograms[n].name, from[i].client->labels,
                          field(&from[i], histograms[n].at));
    }
}

/* ---- of each handle ------------------------------------------------------------------------ */

static const struct {
    const char *name, *type, *help; /* help NULL: as the one before */
    const char *reason;
    int value;
} of_handles[] = {
    {"mutex_owned", "gauge", "1 while the handle owns the mutex.", NULL, VALUE_OWNED},
    {"mutex_token", "gauge", "Fencing token of the tenure; 0: not owned.", NULL, VALUE_TOKEN},
    {"mutex_status", "gauge", "0 initial, 1 starting, 2 running, 3 stopping.", NULL, VALUE_STATUS},
    {"mutex_attempts_total", "counter", "Attempts to acquire.", NULL, COUNT_ATTEMPTS},
    {"mutex_acquisitions_total", "counter", "Tenures that began.", NULL, COUNT_ACQUISITIONS},
    {"mutex_renewals_total", "counter", "Renewals asked for.", NULL, COUNT_RENEWALS},
    {"mutex_failures_total", "counter", "Requests that failed.", NULL, COUNT_FAILURES},
    {"mutex_losses_total", "counter", "Tenures lost.", "expired", COUNT_EXPIRED},
    {"mutex_losses_total", NULL, NULL, "evicted", COUNT_EVICTED},
    {"mutex_losses_total", NULL, NULL, "stalled", COUNT_STALLED},
};

static void begin_handle(struct page *p, const char *name, const char *part,
                         const struct source *from, const struct snapshot *n)
{
    begin_sample(p, name, part, from->client->labels);
    put_label(p, "mutex", n->mutex);
    put_label(p, "id", n->id);
}

static void put_latencies(struct page *p, const struct source *from, size_t count)
{
    const char *name = "mutex_operation_seconds";
    put_head(p, name, "summary",
             "From a request to its answer, since the first page with every handle.");
    for (size_t i = 0; i < count; i++) {
        for (size_t h = 0; h < from[i].handles; h++) {
            const struct snapshot *n = from[i].handle[h];
            begin_handle(p, name, "_sum", &from[i], n);
            end_sample_seconds(p, n->value[VALUE_LATENCY_US]);
            begin_handle(p, name, "_count", &from[i], n);
            end_sample(p, n->value[VALUE_EXCHANGES]);
        }
    }
}

static void put_handles(struct page *p, const struct source *from, size_t count)
{
    for (size_t k = 0; k < sizeof of_handles / sizeof *of_handles; k++) {
        if (of_handles[k].help != NULL)
            put_head(p, of_handles[k].name, of_handles[k].type, of_handles[k].help);
        for (size_t i = 0; i < count; i++) {
            for (size_t h = 0; h < from[i].handles; h++) {
                begin_handle(p, of_handles[k].name, "", &from[i], from[i].handle[h]);
                if (of_handles[k].reason != NULL)
                    put_label(p, "reason", of_handles[k].reason);
                end_sample(p, from[i].handle[h]->value[of_handles[k].value]);
            }
        }
    }
    put_latencies(p, from, count);
}

/* ---- what the page is made of -------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct snapshot *x = *(struct snapshot *const *)a, *y = *(struct snapshot *const *)b;
    int order = strcmp(x->mutex, y->mutex);
    return order != 0 ? order : strcmp(x->id, y->id);
}

static void merge(struct snapshot *into, const struct snapshot *n)
{
    for (size_t i = 0; i < SNAPSHOT_VALUES; i++) {
        bool is_state = i == VALUE_OWNED || i == VALUE_TOKEN || i == VALUE_STATUS;
        if (!is_state)
            into->value[i] += n->value[i];
        else if (n->value[i] > into->value[i])
            into->value[i] = n->value[i];
    }
}

/* Two handles may have the same mutex and id: a page must have them once. Observers have no id and own
 * nothing: what they do is in the numbers of the client. */
static int sort_handles(struct source *from)
{
    size_t count = 0, kept = 0;
    for (struct snapshot *n = from->list; n != NULL; n = n->next)
        count++;
    from->handle = malloc((count + 1) * sizeof(struct snapshot *));
    if (from->handle == NULL)
        return error_say(SIMBA_ELIMIT, "metrics: out of memory");
    count = 0;
    for (struct snapshot *n = from->list; n != NULL; n = n->next) {
        if (n->id[0] != '\0')
            from->handle[count++] = n;
    }
    qsort(from->handle, count, sizeof(struct snapshot *), by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_name(&from->handle[kept - 1], &from->handle[i]) == 0)
            merge(from->handle[kept - 1], from->handle[i]);
        else
            from->handle[kept++] = from->handle[i];
    }
    from->handles = kept;
    return 0;
}

static int read_source(struct source *from, simba_client *s, uint64_t flags)
{
    from->client = s;
    from->m = (struct simba_metrics)SIMBA_METRICS_INIT;
    int rc = simba_metrics_read(s, &from->m);
    if (rc < 0 || (flags & SIMBA_PER_HANDLE) == 0)
        return rc;
    atomic_store(&s->metrics.per_handle, true); /* their latency counts from now on */
    rc = inquiry_snapshot(s, &from->list);
    return rc < 0 ? rc : sort_handles(from);
}

/* Clients with the same labels would have the same series. */
static int check(simba_client *const *clients, size_t count, uint64_t flags)
{
    if (clients == NULL && count > 0)
        return error_say(SIMBA_EINVAL, "simba_metrics_prometheus needs clients");
    if ((flags & ~SIMBA_PER_HANDLE) != 0)
        return error_say(SIMBA_EINVAL, "simba_metrics_prometheus has an unknown flag");
    for (size_t i = 0; i < count; i++) {
        if (clients[i] == NULL)
            return error_say(SIMBA_EINVAL, "simba_metrics_prometheus: a client is NULL");
        for (size_t k = 0; k < i; k++) {
            const char *one = clients[k]->labels, *other = clients[i]->labels;
            if (strcmp(one != NULL ? one : "", other != NULL ? other : "") == 0)
                return error_say(
                    SIMBA_EINVAL,
                    "metrics of %.150s and %.150s on one page: their clients need labels "
                    "that differ",
                    clients[k]->url.shown, clients[i]->url.shown);
        }
    }
    return 0;
}

int64_t simba_metrics_prometheus(simba_client *const *clients, size_t count, uint64_t flags,
                                 char *out, size_t size)
{
    struct page p = {.out = out, .size = size};
    if (out == NULL && size > 0)
        return error_say(SIMBA_EINVAL, "simba_metrics_prometheus needs a place for the text");
    int rc = check(clients, count, flags);
    if (rc < 0)
        return rc;
    struct source *from = calloc(count + 1, sizeof *from);
    if (from == NULL)
        return error_say(SIMBA_ELIMIT, "metrics: out of memory");
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = read_source(&from[i], clients[i], flags);
    if (rc == 0) {
        put(&p, "");
        put_clients(&p, from, count);
        if ((flags & SIMBA_PER_HANDLE) != 0)
            put_handles(&p, from, count);
    }
    for (size_t i = 0; i < count; i++) {
        snapshot_free(from[i].list);
        free(from[i].handle);
    }
    free(from);
    return rc < 0 ? rc : (int64_t)p.length;
}

/* ---- labels that a user wants on every metric of a client ----------------------------------- */

/* As Prometheus writes them, NAME="VALUE",NAME="VALUE". What is refused here would make Prometheus
 * refuse the whole page, or would be taken for something else there. */

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
        return error_say(SIMBA_ELIMIT, "out of memory");
    qsort(label, count, sizeof *label, compare);
    text_init(&out, s->labels, length + 1);
    for (size_t i = 0; i < count; i++) {
        text_add(&out, i > 0 ? "," : "");
        text_add_bytes(&out, label[i].at, label[i].length);
    }
    return 0;
}

int prometheus_take_labels(struct simba_client *s, const char *text)
{
    struct label label[LABELS_MAX];
    size_t count = 0;
    if (text == NULL || text[0] == '\0')
        return 0;
    if (strlen(text) > LABELS_BYTES_MAX)
        return error_say(SIMBA_EINVAL, "labels: they may have %d bytes at most", LABELS_BYTES_MAX);
    for (const char *at = text;; at++) {
        struct label *l = &label[count];
        if (count == LABELS_MAX)
            return error_say(SIMBA_EINVAL, "labels: there may be %d at most", LABELS_MAX);
        const char *why = read_label(l, at);
        if (why == NULL)
            why = check_name(l, label, count);
        if (why == NULL && at[l->length] != ',' && at[l->length] != '\0')
            why = "after a value comes a comma, or the end";
        if (why != NULL)
            return error_say(SIMBA_EINVAL, "labels: label %zu '%.*s': %s", count + 1,
                             (int)l->name_length, at, why);
        count++;
        at += l->length;
        if (*at == '\0')
            break;
    }
    return keep(s, label, count, strlen(text));
}
