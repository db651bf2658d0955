/* model.c: follows a store, and tells clients what changes: some times a second all that has changed
 * meanwhile, each mutex once, and never more than PUBLISH_BYTES or so. What one round cannot tell, the next
 * one does. */
#include "serve/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread.h"
#include "cli/cli.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "serve/rows.h"

#define FIRST_ROOM 64
#define PROBED "simba.serve" /* a name that nobody needs to own */

/* ---- what changes; under the lock ---------------------------------------------------------- */

static bool make_room(struct model *m)
{
    if (m->pending_count < m->pending_room)
        return true;
    size_t room = m->pending_room > 0 ? 2 * m->pending_room : FIRST_ROOM;
    void *pending = room <= PENDING_MAX ? realloc(m->pending, room * sizeof *m->pending) : NULL;
    if (pending == NULL)
        return false;
    m->pending = pending;
    m->pending_room = room;
    return true;
}

static void tell_later(struct model *m, struct followed *f)
{
    f->change = ++m->changes;
    if (f->is_pending)
        return;
    if (make_room(m)) {
        memcpy(m->pending[m->pending_count++], f->tenure.mutex, sizeof f->tenure.mutex);
        f->is_pending = true;
    } else {
        m->is_reset = true;
    }
    pthread_cond_signal(&m->changed);
}

static void keep_ended(struct model *m, const struct seen_tenure *t)
{
    struct seen_tenure *one = &m->ring[m->ring_count++ % RING_MAX];
    free(one->note);
    *one = *t;
    one->note = t->note != NULL ? strdup(t->note) : NULL;
    figures_count(&m->figures, t);
    if (t->state == TENURE_ENDED)
        m->ended[t->reason]++;
    else
        m->unseen++;
}

static void on_follow(void *data, enum follow_event what, struct followed *f, struct seen_tenure *t)
{
    struct model *m = data;
    if (m->is_ending) /* observers and the asker go on, recorder and server do not */
        return;
    if (m->recorder != NULL && (what == FOLLOW_BEGAN || what == FOLLOW_ENDED))
        recorder_add(m->recorder, t);
    if (what == FOLLOW_ENDED)
        keep_ended(m, t);
    m->began += what == FOLLOW_BEGAN;
    tell_later(m, f);
}

static void on_changed(void *data, const char *mutex, const struct simba_state *s)
{
    struct model *m = data;
    follow_take(&m->follow, mutex, s);
}

/* ---- telling it ---------------------------------------------------------------------------- */

/* The names of this round leave the list. */
static void write_changed(struct model *m, struct json_buffer *t)
{
    size_t i = 0;
    json_buffer_name(t, "mutexes");
    json_buffer_add(t, "[");
    for (; i < m->pending_count && t->length < PUBLISH_BYTES; i++) {
        struct followed *f =
            (struct followed *)(void *)hash_table_find(&m->follow.by_name, m->pending[i]);
        json_buffer_add(t, i > 0 ? "," : "");
        if (f != NULL)
            f->is_pending = false;
        row_write(t, f, m->pending[i], f != NULL ? f->change : m->changes);
    }
    json_buffer_add(t, "]");
    m->pending_count -= i;
    if (m->pending_count > 0)
        memmove(m->pending, m->pending + i, m->pending_count * sizeof *m->pending);
}

static void write_ended(struct model *m, struct json_buffer *t)
{
    json_buffer_name(t, "tenures");
    json_buffer_add(t, "[");
    for (bool is_first = true; m->published_count < m->ring_count && t->length / 2 < PUBLISH_BYTES;
         is_first = false) {
        json_buffer_add(t, is_first ? "" : ",");
        seen_tenure_json(t, &m->ring[m->published_count++ % RING_MAX], NULL);
    }
    json_buffer_add(t, "]");
}

static void publish(struct model *m)
{
    static const char reset[] = "event: reset\ndata: {}\n\n";
    struct json_buffer t = {0};
    if (m->ring_count - m->published_count > RING_MAX) /* some are not there any more */
        m->is_reset = true;
    if (m->is_reset || http_streams(m->http, 0) == 0) {
        if (m->is_reset)
            http_publish(m->http, 0, reset, sizeof reset - 1);
        m->is_reset = false;
        for (size_t i = 0; i < m->pending_count; i++) {
            struct hash_node *n = hash_table_find(&m->follow.by_name, m->pending[i]);
            if (n != NULL)
                ((struct followed *)(void *)n)->is_pending = false;
        }
        m->pending_count = 0;
        m->published_count = m->ring_count;
        return;
    }
    json_buffer_add(&t, "event: change\ndata: {");
    json_buffer_number_of(&t, "now_ms", true, simba_wall_ms(simba_now()));
    write_changed(m, &t);
    write_ended(m, &t);
    json_buffer_add(&t, "}\n\n");
    if (!t.failed)
        http_publish(m->http, 0, t.at, t.length);
    else
        m->is_reset = true; /* readers read everything again */
    free(t.at);
}

static void *publish_all(void *arg)
{
    struct model *m = arg;
    pthread_mutex_lock(&m->follow.lock);
    while (!m->is_ending) {
        if (m->pending_count == 0 && m->published_count == m->ring_count && !m->is_reset) {
            pthread_cond_wait(&m->changed, &m->follow.lock);
            continue;
        }
        publish(m);
        int64_t next = simba_now() + PUBLISH_MS;
        for (int64_t left; !m->is_ending && (left = next - simba_now()) > 0;)
            thread_wait_ms(&m->asked, &m->follow.lock, left);
    }
    pthread_mutex_unlock(&m->follow.lock);
    return NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

static void set_answering(struct model *m, int rc)
{
    struct json_buffer t = {0};
    char unrecorded[RECORDER_TEXT_MAX] = "";
    bool was = m->is_answering;
    if (m->recorder != NULL)
        recorder_explain(m->recorder, unrecorded);
    bool is_same = strcmp(unrecorded, m->unrecorded) == 0;
    memcpy(m->unrecorded, unrecorded, sizeof unrecorded);
    m->is_answering = rc >= 0;
    if (was != m->is_answering || m->is_answering)
        m->answered_at = simba_now();
    snprintf(m->why, sizeof m->why, "%s", rc < 0 ? simba_error_text() : "");
    if (was == m->is_answering && is_same)
        return;
    json_buffer_add(&t, "event: store\ndata: ");
    store_write(m, &t);
    json_buffer_add(&t, "\n\n");
    if (!t.failed)
        http_publish(m->http, 0, t.at, t.length);
    else
        m->is_reset = true;
    free(t.at);
}

/* A list, if somebody looks and it is time; else something small, so that it is known whether the
 * store answers. */
static int ask(struct model *m, bool is_list)
{
    struct simba_owner owner;
    int64_t began = simba_now();
    int rc = is_list ? follow_list(&m->follow, m->c->client)
                     : simba_read(m->c->client, PROBED, ANSWER_MS, &owner);
    if (is_list) {
        m->list_ms = simba_now() - began;
        m->listed_at = simba_now();
    }
    return rc;
}

static void *ask_all(void *arg)
{
    struct model *m = arg;
    int64_t probe_at = simba_now() + PROBE_MS;
    pthread_mutex_lock(&m->follow.lock);
    while (!m->is_ending) {
        int64_t now = simba_now(), pause = m->list_ms * LIST_SHARE;
        bool is_looked_at = now - m->looked_at < LOOKED_MS || http_streams(m->http, 0) > 0;
        pause = pause < LIST_LEAST_MS ? LIST_LEAST_MS : pause > LIST_MOST_MS ? LIST_MOST_MS : pause;
        bool is_list = (is_looked_at && now >= m->listed_at + pause) ||
                       (m->recorder != NULL && now >= m->listed_at + LIST_MOST_MS);
        if (!is_list && now < probe_at) {
            int64_t left = is_looked_at && m->listed_at + pause < probe_at
                               ? m->listed_at + pause - now
                               : probe_at - now;
            thread_wait_ms(&m->asked, &m->follow.lock, left);
            continue;
        }
        pthread_mutex_unlock(&m->follow.lock);
        int rc = ask(m, is_list);
        pthread_mutex_lock(&m->follow.lock);
        if (m->is_ending)
            break;
        set_answering(m, rc);
        probe_at = simba_now() + PROBE_MS;
    }
    pthread_mutex_unlock(&m->follow.lock);
    return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct step model_init(struct model *m, struct cli *c)
{
    uint64_t epoch = 0;
    *m = (struct model){.c = c, .ring = calloc(RING_MAX, sizeof *m->ring), .is_answering = true};
    if (m->ring == NULL || follow_init(&m->follow, on_follow, m) != 0)
        return print_error(c, "out of memory");
    if (getrandom(&epoch, sizeof epoch, GRND_NONBLOCK) != sizeof epoch)
        epoch = (uint64_t)simba_wall_ms(simba_now());
    snprintf(m->epoch, sizeof m->epoch, "%016llx", (unsigned long long)epoch);
    m->started_ms = simba_wall_ms(simba_now());
    pthread_cond_init(&m->changed, NULL);
    thread_condition_init(&m->asked);
    return GO_ON;
}

static struct step start_threads(struct model *m)
{
    int code = pthread_create(&m->publisher, NULL, publish_all, m);
    if (code == 0)
        code = pthread_create(&m->asker, NULL, ask_all, m);
    return code == 0 ? GO_ON : print_error(m->c, "cannot start a thread: %s", strerror(code));
}

static void count_recorded(void *data, const struct seen_tenure *t, const char *store)
{
    (void)store;
    figures_count(data, t);
}

/* What the file has of the last day. */
static struct step count_all_recorded(struct model *m)
{
    struct history_page q = {.store = m->c->store,
                             .since_ms = m->started_ms - FIGURES_SPAN_MS,
                             .before_ms = INT64_MAX,
                             .before_row = INT64_MAX,
                             .limit = HISTORY_ROWS_MAX};
    if (m->reader == NULL || history_read_page(m->reader, &q, count_recorded, &m->figures) == 0)
        return GO_ON;
    return print_error(m->c, "%s", history_why(m->reader));
}

struct step model_begin(struct model *m)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_observer *all;
    struct step step = count_all_recorded(m);
    if (!step.ends && m->recorder != NULL)
        step = recorder_begin(m->recorder, &m->follow);
    if (step.ends)
        return step;
    int rc = follow_begin(&m->follow, m->c->client, NULL, 0);
    if (rc < 0)
        return end_with(cli_fail(m->c, rc));
    m->answered_at = simba_now();
    o.on_changed = on_changed;
    o.data = m;
    rc = simba_observer_create(m->c->client, NULL, &o, &all);
    return rc < 0 ? end_with(cli_fail(m->c, rc)) : start_threads(m);
}

void model_end(struct model *m)
{
    pthread_mutex_lock(&m->follow.lock);
    m->is_ending = true;
    pthread_cond_broadcast(&m->changed);
    pthread_cond_broadcast(&m->asked);
    pthread_mutex_unlock(&m->follow.lock);
    pthread_join(m->publisher, NULL);
}
