/* recorder.c: the thread that writes a history file. */
#include "serve/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/cli.h"
#include "cli/messages.h"

#define ALIVE_MS 5000  /* so often it is written that we still record */
#define PURGE_MS 60000 /* so often what is old is deleted … */
#define RETRY_MS 1000  /* … and this long after a failure it is tried again */
#define ASK_MS 2000    /* so long the store has to answer, to count as seen … */
#define GAP_MS 10000   /* … and if it was not seen for longer, that is a gap */
#define LAST_WRITE_S 5 /* so long a statement may take when we end */
#define BATCH_MAX 1024 /* tenures in one transaction */
#define FIRST_ROOM 64

struct recorder {
    const struct cli *c;
    struct history *history;
    int64_t keep_ms;
    int64_t row;        /* the last one that was given */
    char *const *names; /* of recorder_limit() */
    size_t name_count;
    int tell;           /* of recorder_tell(); -1: none */
    int64_t seen_until; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wakeup;
    struct seen_tenure *queue;
    size_t count, room;
    size_t dropped;
    atomic_bool is_ending;
    bool is_gone;
    char failure[512]; /* why the last transaction failed; "": it did not */
};

/* ---- the queue ----------------------------------------------------------------------------- */

static bool make_room(struct recorder *r)
{
    if (r->count < r->room)
        return true;
    size_t room = r->room > 0 ? 2 * r->room : FIRST_ROOM;
    struct seen_tenure *queue =
        room <= RECORDER_QUEUE_MAX ? realloc(r->queue, room * sizeof *queue) : NULL;
    if (queue == NULL)
        return false;
    r->queue = queue;
    r->room = room;
    return true;
}

void recorder_add(struct recorder *r, struct seen_tenure *t)
{
    pthread_mutex_lock(&r->lock);
    if (t->row == 0)
        t->row = ++r->row;
    if (r->is_gone) {
        pthread_mutex_unlock(&r->lock);
        return;
    }
    if (make_room(r)) {
        struct seen_tenure *one = &r->queue[r->count++];
        *one = *t;
        one->note = t->note != NULL ? strdup(t->note) : NULL;
    } else {
        r->dropped++;
    }
    pthread_cond_signal(&r->wakeup);
    pthread_mutex_unlock(&r->lock);
}

static size_t take(struct recorder *r, struct seen_tenure *batch)
{
    size_t count = r->count < BATCH_MAX ? r->count : BATCH_MAX;
    if (count > 0)
        memcpy(batch, r->queue, count * sizeof *batch);
    return count;
}

/* What was written leaves the queue; new ones have come behind it. */
static void drop_written(struct recorder *r, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(r->queue[i].note);
    r->count -= count;
    if (count > 0)
        memmove(r->queue, r->queue + count, r->count * sizeof *r->queue);
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void wait_until(struct recorder *r, int64_t at)
{
    thread_wait_ms(&r->wakeup, &r->lock, at - simba_now());
}

static void say_dropped(struct recorder *r)
{
    size_t dropped = r->dropped;
    r->dropped = 0;
    if (dropped > 0)
        print_error(r->c,
                    "%zu changes are missing in the history: the disk did not take them in time",
                    dropped);
}

/* Until when everything was seen: while the store does not answer, or we are stopped, nothing is. After
 * such a time a new recording begins, so that there is a gap. 0, or -1 as of history_write(). */
static int check_store(struct recorder *r)
{
    struct simba_owner owner;
    int64_t asked_at = simba_now();
    if (simba_read(r->c->client, r->name_count > 0 ? r->names[0] : "simba", ASK_MS, &owner) < 0)
        return 0;
    bool is_gap = asked_at - r->seen_until > GAP_MS;
    r->seen_until = asked_at;
    return is_gap ? history_go_on(r->history, r->names, r->name_count) : 0;
}

static int write_some(struct recorder *r, const struct seen_tenure *batch, size_t count,
                      int64_t *purge_at)
{
    int rc = simba_now() - r->seen_until >= ALIVE_MS || r->is_ending ? check_store(r) : 0;
    if (rc == 0)
        rc = history_write(r->history, batch, count, simba_wall_ms(r->seen_until));
    if (rc == 0 && simba_now() >= *purge_at) {
        rc = history_purge(r->history, simba_wall_ms(simba_now()) - r->keep_ms);
        *purge_at = simba_now() + PURGE_MS;
    }
    return rc;
}

/* Under the lock. Nobody would find what is written from now on. */
static void give_up(struct recorder *r)
{
    print_error(r->c, "%s was moved or deleted; nothing is recorded any more",
                history_path(r->history));
    drop_written(r, r->count);
    r->is_gone = true;
    if (r->tell >= 0)
        (void)!write(r->tell, &(uint64_t){1}, sizeof(uint64_t));
}

static void *write_all(void *arg)
{
    struct recorder *r = arg;
    static struct seen_tenure batch[BATCH_MAX]; /* there is one recorder */
    int64_t alive_at = simba_now() + ALIVE_MS, purge_at = simba_now();
    bool is_failing = false;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        bool is_last = r->is_ending;
        if (r->count == 0 && !is_last && simba_now() < alive_at) {
            wait_until(r, alive_at);
            continue;
        }
        if (history_is_gone(r->history)) {
            give_up(r);
            break;
        }
        size_t count = take(r, batch);
        pthread_mutex_unlock(&r->lock);
        int rc = write_some(r, batch, count, &purge_at);
        if (rc != 0 && !is_failing)
            print_error(r->c, "cannot write the history %s; trying again", history_why(r->history));
        else if (rc == 0 && is_failing)
            print_note(r->c, "the history is written again");
        is_failing = rc != 0;
        pthread_mutex_lock(&r->lock);
        snprintf(r->failure, sizeof r->failure, "%s", rc != 0 ? history_why(r->history) : "");
        alive_at = simba_now() + (rc == 0 ? ALIVE_MS : RETRY_MS);
        if (rc == 0) {
            drop_written(r, count);
            say_dropped(r);
        } else if (!is_last) {
            wait_until(r, alive_at);
        }
        if (is_last && (r->count == 0 || rc != 0))
            break;
    }
    r->dropped += r->count;
    say_dropped(r);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void on_resume(void *data, const struct seen_tenure *t)
{
    follow_resume(data, t);
}

struct step recorder_open(const struct cli *c, const char *path, int64_t keep_ms,
                          struct recorder **out)
{
    struct history *h;
    struct step step = history_open_to_write(c, path, &h);
    struct recorder *r = !step.ends ? calloc(1, sizeof *r) : NULL;
    if (r == NULL && !step.ends) {
        history_close(h);
        return print_error(c, "out of memory");
    }
    if (r != NULL) {
        *r = (struct recorder){.c = c, .history = h, .keep_ms = keep_ms, .tell = -1};
        pthread_mutex_init(&r->lock, NULL);
        thread_condition_init(&r->wakeup);
        r->row = history_last_row(h);
    }
    *out = r;
    return step;
}

struct step recorder_reader(struct recorder *r, struct history **out)
{
    return history_open_beside(r->c, r->history, out);
}

void recorder_limit(struct recorder *r, char *const *names, size_t count)
{
    r->names = names;
    r->name_count = count;
}

void recorder_tell(struct recorder *r, int eventfd)
{
    r->tell = eventfd;
}

bool recorder_is_gone(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    bool is_gone = r->is_gone;
    pthread_mutex_unlock(&r->lock);
    return is_gone;
}

const char *recorder_explain(struct recorder *r, char out[RECORDER_TEXT_MAX])
{
    pthread_mutex_lock(&r->lock);
    out[0] = '\0';
    if (r->is_gone)
        snprintf(out, RECORDER_TEXT_MAX,
                 "the history file %.400s was moved or deleted: nothing is recorded any more until "
                 "simba serve is started again",
                 history_path(r->history));
    else if (r->failure[0] != '\0')
        snprintf(out, RECORDER_TEXT_MAX, "the history cannot be written: %s", r->failure);
    pthread_mutex_unlock(&r->lock);
    return out;
}

struct step recorder_begin(struct recorder *r, struct follow *f)
{
    r->seen_until = simba_now();
    if (history_begin(r->history, r->c->store, r->names, r->name_count, on_resume, f) != 0)
        return print_error(r->c, "%s", history_why(r->history));
    int code = pthread_create(&r->thread, NULL, write_all, r);
    return code == 0 ? GO_ON : print_error(r->c, "cannot start a thread: %s", strerror(code));
}

/* Whatever the file makes SQLite do, it ends. */
static void join(struct recorder *r)
{
    struct timespec until;
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LAST_WRITE_S;
        if (pthread_timedjoin_np(r->thread, NULL, &until) != ETIMEDOUT)
            return;
        history_interrupt(r->history);
    } while (true);
}

void recorder_end(struct recorder *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->is_ending = true;
    pthread_cond_signal(&r->wakeup);
    pthread_mutex_unlock(&r->lock);
    join(r);
    history_close(r->history);
    free(r->queue);
    free(r);
}
