/* rows.c: answers of simba serve. Points in time are milliseconds since 1970 on the clock of this machine,
 * and each answer says what time it is there, so that a reader whose clock is wrong can count, too. */
#include "serve/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/data.h"
#include "cli/metrics_page.h"
#include "cli/owner_list.h"
#include "cli/shown.h"

void row_write(struct json_buffer *t, const struct followed *f, const char *mutex, uint64_t change)
{
    bool is_on = f != NULL && f->is_on;
    const struct seen_tenure *now = is_on ? &f->tenure : NULL;
    json_buffer_add(t, "{");
    json_buffer_string_of(t, "mutex", mutex);
    json_buffer_string_of(t, "state", f != NULL ? followed_state(f) : "free");
    json_buffer_string_of(t, "holder", is_on ? now->id : NULL);
    json_buffer_token_of(t, "token", is_on ? now->token : 0);
    json_buffer_number_of(t, "began_ms", is_on, is_on ? now->began_ms : 0);
    json_buffer_bool_of(t, "began_known", is_on && now->began_known);
    int64_t until = is_on ? f->until : 0;
    json_buffer_number_of(t, "until_ms", until != 0, simba_wall_ms(until));
    json_buffer_number_of(t, "waiters", f != NULL && f->waiters >= 0, f != NULL ? f->waiters : 0);
    json_buffer_string_of(t, "note", is_on ? now->note : NULL);
    json_buffer_number_of(t, "change", true, (int64_t)change);
    json_buffer_add(t, "}");
}

void store_write(const struct model *m, struct json_buffer *t)
{
    json_buffer_add(t, "{");
    json_buffer_bool_of(t, "answers", m->is_answering);
    json_buffer_number_of(t, "since_ms", true, simba_wall_ms(m->answered_at));
    json_buffer_string_of(t, "why", m->is_answering ? NULL : m->why);
    json_buffer_string_of(t, "unrecorded", m->unrecorded[0] != '\0' ? m->unrecorded : NULL);
    json_buffer_add(t, "}");
}

/* Somebody looks: the asker may have something to do. */
static void lock_to_read(struct model *m)
{
    pthread_mutex_lock(&m->follow.lock);
    m->looked_at = simba_now();
    pthread_cond_broadcast(&m->asked);
}

static void begin_answer(struct model *m, struct json_buffer *t)
{
    json_buffer_add(t, "{");
    json_buffer_number_of(t, "now_ms", true, simba_wall_ms(simba_now()));
    json_buffer_string_of(t, "store", m->c->store);
    json_buffer_string_of(t, "epoch", m->epoch);
}

/* ---- mutexes ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct followed *const *x = a, *const *y = b;
    return strcmp((*x)->tenure.mutex, (*y)->tenure.mutex);
}

static bool is_shown(const struct followed *f)
{
    return f->is_on || f->waiters > 0;
}

/* Those after this name, sorted; freed by the caller. NULL: out of memory. */
static struct followed **sort_after(struct model *m, const char *after, size_t *count)
{
    struct followed **all = malloc((m->follow.by_name.count + 1) * sizeof *all);
    size_t n = 0;
    for (struct hash_node *at = NULL;
         all != NULL && (at = hash_table_next(&m->follow.by_name, at)) != NULL;) {
        struct followed *f = (struct followed *)(void *)at;
        if (is_shown(f) && (after == NULL || strcmp(f->tenure.mutex, after) > 0))
            all[n++] = f;
    }
    if (all != NULL && n > 1)
        qsort(all, n, sizeof(struct followed *), by_name);
    *count = n;
    return all;
}

static void write_after(struct model *m, const char *after, size_t limit, struct json_buffer *t)
{
    size_t count = 0, shown = 0;
    struct followed **all = sort_after(m, after, &count);
    if (all == NULL) {
        t->failed = true;
        return;
    }
    json_buffer_name(t, "mutexes");
    json_buffer_add(t, "[");
    for (; shown < count && shown < limit && t->length < ANSWER_BYTES; shown++) {
        json_buffer_add(t, shown > 0 ? "," : "");
        row_write(t, all[shown], all[shown]->tenure.mutex, all[shown]->change);
    }
    json_buffer_add(t, "]");
    json_buffer_string_of(t, "next",
                          shown > 0 && shown < count ? all[shown - 1]->tenure.mutex : NULL);
    free(all);
}

static void write_named(struct model *m, const char *names, struct json_buffer *t)
{
    char name[SIMBA_MUTEX_MAX + 1] = "";
    size_t written = 0;
    json_buffer_name(t, "mutexes");
    json_buffer_add(t, "[");
    for (size_t length; *names != '\0' && t->length < ANSWER_BYTES;
         names += length + (names[length] == '\n')) {
        length = strcspn(names, "\n");
        if (length == 0 || length >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        const struct followed *f =
            (struct followed *)(void *)hash_table_find(&m->follow.by_name, name);
        json_buffer_add(t, written++ > 0 ? "," : "");
        row_write(t, f, name, f != NULL ? f->change : m->changes);
    }
    json_buffer_add(t, "]");
    json_buffer_string_of(t, "next", *names != '\0' ? name : NULL);
}

void model_write_mutexes(struct model *m, const char *after, const char *names, size_t limit,
                         struct json_buffer *t)
{
    lock_to_read(m);
    begin_answer(m, t);
    json_buffer_name(t, "store_state");
    store_write(m, t);
    json_buffer_bool_of(t, "is_complete", !m->follow.is_full);
    figures_write(&m->figures, simba_wall_ms(simba_now()), t);
    if (names != NULL)
        write_named(m, names, t);
    else
        write_after(m, after, limit, t);
    json_buffer_add(t, "}\n");
    pthread_mutex_unlock(&m->follow.lock);
}

void model_write_hello(struct model *m, struct json_buffer *t)
{
    json_buffer_add(t, "retry: 2000\nevent: hello\ndata: ");
    begin_answer(m, t);
    json_buffer_string_of(t, "version", simba_version());
    json_buffer_bool_of(t, "is_recorded", m->recorder != NULL);
    json_buffer_name(t, "store_state");
    store_write(m, t);
    json_buffer_add(t, "}\n\n");
}

/* ---- history ------------------------------------------------------------------------------- */

struct row_page {
    struct json_buffer *t;
    size_t count, limit;
    int64_t last_ms, last_row;
};

static void write_tenure(void *data, const struct seen_tenure *tenure, const char *store)
{
    struct row_page *p = data;
    (void)store;
    if (p->count < p->limit) {
        json_buffer_add(p->t, p->count > 0 ? "," : "");
        seen_tenure_json(p->t, tenure, NULL);
        p->last_ms = tenure->ended_ms;
        p->last_row = tenure->row;
        if (p->t->length >= ANSWER_BYTES)
            p->limit = p->count + 1;
    }
    p->count++;
}

/* Of the ring, from the newest on; `before` is a number in it. */
static void read_ring(struct model *m, const struct history_page *q, struct row_page *p)
{
    uint64_t before = q->before_row > 0 ? (uint64_t)q->before_row : 0;
    uint64_t end = before < m->ring_count ? before : m->ring_count;
    uint64_t begin = m->ring_count > RING_MAX ? m->ring_count - RING_MAX : 0;
    for (uint64_t i = end; i > begin && p->count <= p->limit; i--) {
        struct seen_tenure tenure = m->ring[(i - 1) % RING_MAX];
        if (tenure.ended_ms < q->since_ms ||
            (q->mutex != NULL && strcmp(q->mutex, tenure.mutex) != 0))
            continue;
        tenure.row = (int64_t)(i - 1);
        write_tenure(p, &tenure, NULL);
    }
}

/* Of the file: when not all was recorded. */
struct gaps {
    struct json_buffer *t;
    size_t count;
    int64_t first_ms; /* the first recording began */
};

static void add_gap(void *data, const struct history_gap *g)
{
    struct gaps *all = data;
    if (g->from_ms == 0)
        all->first_ms = g->to_ms;
    else
        json_buffer_addf(all->t, "%s[%lld,%lld]", all->count++ > 0 ? "," : "",
                         (long long)g->from_ms, (long long)g->to_ms);
}

static void write_gaps(struct model *m, const struct history_page *q, struct json_buffer *t)
{
    struct gaps all = {.t = t};
    int64_t kept = simba_wall_ms(simba_now()) - m->keep_ms;
    json_buffer_name(t, "gaps");
    json_buffer_add(t, "[");
    if (history_read_gaps(m->reader, q->store, q->since_ms, add_gap, &all) != 0)
        t->failed = true;
    json_buffer_add(t, "]");
    json_buffer_number_of(t, "known_since_ms", true, all.first_ms > kept ? all.first_ms : kept);
}

/* Without a file: what ended earlier is not there. */
static int64_t known_since(const struct model *m)
{
    return m->ring_count > RING_MAX ? m->ring[m->ring_count % RING_MAX].ended_ms : m->started_ms;
}

static void begin_tenures(struct json_buffer *t)
{
    json_buffer_name(t, "tenures");
    json_buffer_add(t, "[");
}

/* The file is read without the lock: it has a connection of its own. */
void model_write_history(struct model *m, const struct history_page *asked, struct json_buffer *t)
{
    struct history_page q = *asked;
    struct row_page p = {.t = t, .limit = asked->limit};
    q.store = m->c->store;
    q.limit++; /* is there more? */
    q.until = simba_now() + READ_MS;
    lock_to_read(m);
    begin_answer(m, t);
    json_buffer_bool_of(t, "is_recorded", m->reader != NULL);
    if (m->reader == NULL) {
        json_buffer_number_of(t, "known_since_ms", true, known_since(m));
        begin_tenures(t);
        read_ring(m, &q, &p);
    }
    pthread_mutex_unlock(&m->follow.lock);
    if (m->reader != NULL) {
        write_gaps(m, &q, t);
        begin_tenures(t);
    }
    int rc = m->reader != NULL ? history_read_page(m->reader, &q, write_tenure, &p) : 0;
    bool is_cut = rc > 0 && p.count > 0;
    t->failed = t->failed || (rc != 0 && !is_cut);
    json_buffer_add(t, "]");
    json_buffer_name(t, "next");
    if (p.count > p.limit || is_cut)
        json_buffer_addf(t, "\"%lld.%lld\"", (long long)p.last_ms, (long long)p.last_row);
    else
        json_buffer_add(t, "null");
    json_buffer_add(t, "}\n");
}

/* ---- for monitoring ------------------------------------------------------------------------ */

bool model_write_health(struct model *m, struct json_buffer *t)
{
    char age[24];
    pthread_mutex_lock(&m->follow.lock);
    bool is_answering = m->is_answering;
    int64_t ms = simba_now() - m->answered_at;
    if (is_answering)
        json_buffer_addf(t, "ok: the store answered %s ago\n", show_duration(ms, age));
    else
        json_buffer_addf(t, "the store does not answer for %s\n", show_duration(ms, age));
    bool is_recorded = m->unrecorded[0] == '\0';
    if (!is_recorded) {
        t->length = is_answering ? 0 : t->length;
        json_buffer_add(t, m->unrecorded);
        json_buffer_add(t, "\n");
    }
    pthread_mutex_unlock(&m->follow.lock);
    return is_answering && is_recorded;
}

static void write_metric(struct json_buffer *t, const char *name, const char *type,
                         const char *help)
{
    json_buffer_addf(t, "# HELP %s %s\n", name, help);
    json_buffer_addf(t, "# TYPE %s %s\n", name, type);
}

static void write_own_metrics(struct model *m, struct json_buffer *t)
{
    write_metric(t, "simba_store_answers", "gauge", "1 while the store answers.");
    json_buffer_addf(t, "simba_store_answers %d\n", m->is_answering);
    write_metric(t, "simba_store_owned", "gauge", "Mutexes of the store that are owned now.");
    json_buffer_addf(t, "simba_store_owned %zu\n", m->follow.on);
    write_metric(t, "simba_store_tenures_begun_total", "counter",
                 "Tenures that were seen to begin.");
    json_buffer_addf(t, "simba_store_tenures_begun_total %llu\n", (unsigned long long)m->began);
    write_metric(t, "simba_store_tenures_ended_total", "counter", "Tenures that ended, by reason.");
    for (enum simba_reason r = SIMBA_RELEASED; r <= SIMBA_EVICTED; r++)
        json_buffer_addf(t, "simba_store_tenures_ended_total{reason=\"%s\"} %llu\n", reason_name(r),
                         (unsigned long long)m->ended[r]);
    json_buffer_addf(t, "simba_store_tenures_ended_total{reason=\"unseen\"} %llu\n",
                     (unsigned long long)m->unseen);
    if (m->recorder != NULL) {
        write_metric(t, "simba_serve_records", "gauge", "1 while the history file is written.");
        json_buffer_addf(t, "simba_serve_records %d\n", m->unrecorded[0] == '\0');
    }
    write_metric(t, "simba_serve_readers", "gauge",
                 "Browsers and programs that follow the events.");
    json_buffer_addf(t, "simba_serve_readers %u\n", http_streams(m->http, 0));
}

void model_write_metrics(struct model *m, struct json_buffer *t)
{
    const char *why;
    size_t length;
    char *text = metrics_page(m->c->client, 0, &length, &why);
    if (text != NULL)
        json_buffer_add(t, text);
    else
        t->failed = true;
    free(text);
    pthread_mutex_lock(&m->follow.lock);
    write_own_metrics(m, t);
    pthread_mutex_unlock(&m->follow.lock);
}
