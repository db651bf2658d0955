/* note.c: see note.h.
 *
 * A note is written by one transaction: it checks that the node of the tenure is there, and that the
 * mutex's node is as it was when it evicted nobody of that tenure; then it sets the note, if that is
 * still the one that was read before. A node that leads goes on leading until it is deleted, so
 * nobody can have become the owner in between.
 *
 * When a note was written the server says by its own clock (mtime). What that clock is now, it says
 * of a node that is written: the folder of all notes, with nothing. Who may not write there has to take
 * this machine's wall clock for it. Who shows notes asks at most once in CLOCK_MS.
 *
 * Who decides by a note has to read the last one, but a server that lags behind answers reads from what
 * it knows. A sync is not enough: it is answered by the leader alone, also by one that was deposed and has
 * not noticed yet, while the others have a new leader, and new notes. So the clock is written first, on the
 * same session. A write, also one that is refused, is answered only when a majority has it, and a server
 * answers it after all writes before it. Whatever was acknowledged before the read began is among
 * these. Which session is taken does not matter then. */
#include "backend/zookeeper/note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/zookeeper/note_data.h"
#include "backend/zookeeper/replies.h"
#include "backend/zookeeper/requests.h"

#define FOLDER "-notes" /* behind the root of the queues */
#define TRIES_MAX 16
#define CLOCK_MS 10000

void zk_note_folder(const struct zookeeper *z, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s" FOLDER, z->base);
}

static void note_path(const struct zookeeper *z, const char *mutex, char out[PATH_SIZE])
{
    char node[PATH_NODE_SIZE];
    zk_path_encode(node, mutex);
    snprintf(out, PATH_SIZE, "%s" FOLDER "/%s", z->base, node);
}

/* ---- publishing ---------------------------------------------------------------------------- */

enum { CHECK_QUEUE, CHECK_NODE, WRITE_NOTE, OPS };

struct publication {
    struct session *session;
    struct simba_request *request;
    int tries;
    bool is_new;           /* there is no note yet */
    int32_t queue_version; /* of the mutex's node */
    zoo_op_t op[OPS];
    zoo_op_result_t result[OPS];
    char path[PATH_SIZE];  /* the note's */
    char queue[PATH_SIZE]; /* the mutex's node */
    char node[PATH_SIZE];  /* the tenure's */
    char made[PATH_SIZE];
    char data[NOTE_DATA_SIZE];
    size_t length;
};

static void finish(struct publication *p, int code, const char *why)
{
    struct zookeeper *z = p->session->store;
    pending_refuse(z->host, p->request, z->closing ? SIMBA_ECANCELED : code, why);
    free(p);
}

static void fail(struct publication *p, int rc)
{
    struct latch_result r = zk_replies_read(rc);
    finish(p, r.code, r.why);
}

static void begin(struct publication *p);

static void again(struct publication *p)
{
    if (++p->tries < TRIES_MAX)
        begin(p);
    else
        finish(p, SIMBA_ESTORE, "others write the same note all the time");
}

static void deny(struct publication *p, const char *path, const char *what)
{
    char why[PATH_SIZE + 192];
    snprintf(
        why, sizeof why,
        "%.*s, for notes, cannot be %s: the access list there does not let us; 'simba doctor' says "
        "what is needed",
        PATH_SIZE, path, what);
    finish(p, SIMBA_EDENIED, why);
}

static void on_folder(int rc, const char *value, const void *data)
{
    struct publication *p = (struct publication *)(uintptr_t)data;
    char path[PATH_SIZE];
    (void)value;
    zk_note_folder(p->session->store, path);
    if (rc == ZOK || rc == ZNODEEXISTS)
        again(p);
    else if (rc == ZNOAUTH)
        deny(p, path, "made");
    else
        fail(p, rc);
}

/* What is above it is there: the mutex's node is below it, too. */
static void make_folder(struct publication *p)
{
    const struct zookeeper *z = p->session->store;
    char path[PATH_SIZE];
    zk_note_folder(z, path);
    int rc = zoo_acreate(p->session->handle, path, "", 0, z->acl, ZOO_PERSISTENT, on_folder, p);
    if (rc != ZOK)
        fail(p, rc);
}

/* Which of the operations has failed, and why. */
static void on_written(int rc, const void *data)
{
    struct publication *p = (struct publication *)(uintptr_t)data;
    int queue = p->result[CHECK_QUEUE].err, node = p->result[CHECK_NODE].err;
    int note = p->result[WRITE_NOTE].err;
    if (rc == ZOK) {
        finish(p, 0, NULL);
    } else if (rc == ZNOAUTH) {
        deny(p, p->path, "written");
    } else if (rc != ZNONODE && rc != ZBADVERSION && rc != ZNODEEXISTS) {
        fail(p, rc); /* the outcome may be unknown: what single operations say is not looked at */
    } else if (queue == ZNONODE || node == ZNONODE) {
        finish(p, SIMBA_ELOST, NULL);
    } else if (note == ZNONODE && p->is_new) {
        make_folder(p);
    } else {
        again(p);
    }
}

/* The note that is there, if there is one: whether it is later than this, and its version. */
static void on_note(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct publication *p = (struct publication *)(uintptr_t)data;
    const struct zookeeper *z = p->session->store;
    const struct simba_request *q = p->request;
    struct note_data before;
    if (rc != ZOK && rc != ZNONODE) {
        fail(p, rc);
        return;
    }
    p->is_new = rc == ZNONODE;
    if (!p->is_new && zk_note_parse(value, length, &before) && before.token == q->token &&
        before.serial >= q->serial) {
        finish(p, 0, NULL);
        return;
    }
    zoo_check_op_init(&p->op[CHECK_QUEUE], p->queue, p->queue_version);
    zoo_check_op_init(&p->op[CHECK_NODE], p->node, -1);
    if (p->is_new)
        zoo_create_op_init(&p->op[WRITE_NOTE], p->path, p->data, (int)p->length, z->acl, 0, p->made,
                           sizeof p->made);
    else
        zoo_set_op_init(&p->op[WRITE_NOTE], p->path, p->data, (int)p->length, stat->version, NULL);
    rc = zoo_amulti(p->session->handle, OPS, p->op, p->result, on_written, p);
    if (rc != ZOK)
        fail(p, rc);
}

static void on_queue(int rc, const char *value, int length, const struct Stat *stat,
                     const void *data)
{
    struct publication *p = (struct publication *)(uintptr_t)data;
    int64_t czxid;
    bool evicted = rc == ZOK && zk_latch_queue_parse_eviction(value, length, &czxid) &&
                   czxid == (int64_t)p->request->token;
    if (rc == ZNONODE || evicted) {
        finish(p, SIMBA_ELOST, NULL);
        return;
    }
    if (rc == ZOK) {
        p->queue_version = stat->version;
        rc = zoo_aget(p->session->handle, p->path, 0, on_note, p);
    }
    if (rc != ZOK)
        fail(p, rc);
}

static void begin(struct publication *p)
{
    int rc = zoo_aget(p->session->handle, p->queue, 0, on_queue, p);
    if (rc != ZOK)
        fail(p, rc);
}

void zk_note_publish(struct latch_session *latch, struct simba_request *q, const char *node)
{
    struct session *s = (struct session *)(void *)latch;
    struct publication *p = calloc(1, sizeof *p);
    if (p == NULL) {
        pending_refuse(s->store->host, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    p->session = s;
    p->request = q;
    note_path(s->store, q->mutex, p->path);
    zk_requests_mutex_path(s->store, q->mutex, p->queue);
    zk_requests_node_path(p->queue, node, p->node);
    p->length = zk_note_format(p->data, q->token, q->serial, q->note);
    begin(p);
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reading {
    struct session *session;
    zk_note_fn *done;
    void *data;
    bool clock_first, has_tried_folder;
    int64_t written; /* mtime */
    struct zk_note note;
    char path[PATH_SIZE]; /* the note's */
};

/* A note without an age is none. */
static void end_reading(struct reading *r, int rc)
{
    if (rc != ZOK) {
        free(r->note.text);
        r->note = (struct zk_note){.wall_ms = r->note.wall_ms};
    }
    r->done(r->data, rc == ZNONODE ? ZOK : rc, &r->note);
    free(r);
}

static void set_age(struct reading *r, int64_t now)
{
    r->note.age_ms = now > r->written ? now - r->written : 0;
}

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool knows_clock(const struct zookeeper *z, int64_t now)
{
    return z->clock_at != 0 && now - z->clock_at < CLOCK_MS;
}

static int read_data(struct reading *r);
static int write_clock(struct reading *r);

/* A folder that is missing is made, if what is above it is there; else there are no notes yet. */
static void on_clock_folder(int rc, const char *value, const void *data)
{
    struct reading *r = (struct reading *)(uintptr_t)data;
    (void)value;
    r->clock_first = rc == ZOK || rc == ZNODEEXISTS;
    rc = r->clock_first ? write_clock(r) : read_data(r);
    if (rc != ZOK)
        end_reading(r, rc);
}

static int make_clock_folder(struct reading *r)
{
    const struct zookeeper *z = r->session->store;
    char folder[PATH_SIZE];
    zk_note_folder(z, folder);
    r->has_tried_folder = true;
    return zoo_acreate(r->session->handle, folder, "", 0, z->acl, ZOO_PERSISTENT, on_clock_folder,
                       r);
}

/* From here on the server's clock is known: not less than this. */
static void on_clock(int rc, const struct Stat *stat, const void *data)
{
    struct reading *r = (struct reading *)(uintptr_t)data;
    struct zookeeper *z = r->session->store;
    if (rc == ZOK) {
        z->clock_ms = r->note.wall_ms = stat->mtime;
        z->clock_at = simba_now();
    }
    bool refused =
        rc == ZNOAUTH || rc == ZNONODE; /* we may not write there, or there are no notes */
    if (r->clock_first && (rc == ZOK || refused)) {
        bool makes_folder = rc == ZNONODE && !r->has_tried_folder;
        r->clock_first = makes_folder;
        rc = makes_folder ? make_clock_folder(r) : read_data(r);
        if (rc != ZOK)
            end_reading(r, rc);
        return;
    }
    if (rc == ZOK || rc == ZNOAUTH)
        set_age(r, rc == ZOK ? stat->mtime : wall_ms());
    end_reading(r, rc == ZNOAUTH ? ZOK : rc);
}

static int write_clock(struct reading *r)
{
    char folder[PATH_SIZE];
    zk_note_folder(r->session->store, folder);
    return zoo_aset(r->session->handle, folder, "", 0, -1, on_clock, r);
}

static void on_read(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct reading *r = (struct reading *)(uintptr_t)data;
    const struct zookeeper *z = r->session->store;
    struct note_data found;
    if (rc != ZOK || !zk_note_parse(value, length, &found)) {
        end_reading(r, rc);
        return;
    }
    r->note.text = strndup(found.text, found.length);
    r->note.token = found.token;
    r->written = stat->mtime;
    int64_t now = simba_now();
    if (r->note.text == NULL) {
        end_reading(r, ZSYSTEMERROR);
    } else if (knows_clock(z, now)) {
        set_age(r, z->clock_ms + now - z->clock_at);
        end_reading(r, ZOK);
    } else {
        rc = write_clock(r);
        if (rc != ZOK)
            end_reading(r, rc);
    }
}

static int read_data(struct reading *r)
{
    return zoo_aget(r->session->handle, r->path, 0, on_read, r);
}

int zk_note_read(struct session *s, const char *mutex, bool current, zk_note_fn *done, void *data)
{
    struct reading *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ZSYSTEMERROR;
    *r = (struct reading){.session = s, .done = done, .data = data, .clock_first = current};
    note_path(s->store, mutex, r->path);
    int rc = current ? write_clock(r) : read_data(r);
    if (rc != ZOK)
        free(r);
    return rc;
}
