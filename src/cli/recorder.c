/* recorder.c: the thread that writes a history file. */
#include "cli/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/output.h"

#define ALIVE_MS 5000  /* so often it is written that we still record */
#define PURGE_MS 60000 /* so often what is old is deleted … */
#define RETRY_MS 1000  /* … and this long after a failure it is tried again */
#define BATCH_MAX 1024 /* tenures in one transaction */
#define FIRST_ROOM 64

struct recorder {
    const struct cli *c;
    struct history *history;
    int64_t keep_ms;
    int64_t row; /* the last one that was given */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wakeup;
    struct seen_tenure *queue;
    size_t count, room;
    size_t dropped;
    bool is_ending;
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
    struct timespec until;
    int64_t ms = at - simba_now();
    clock_gettime(CLOCK_MONOTONIC, &until);
    ms = ms > 0 ? ms : 0;
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&r->wakeup, &r->lock, &until);
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
        size_t count = take(r, batch);
        pthread_mutex_unlock(&r->lock);
        int rc = history_write(r->history, batch, count);
        if (rc == 0 && simba_now() >= purge_at) {
            rc = history_purge(r->history, simba_wall_ms(simba_now()) - r->keep_ms);
            purge_at = simba_now() + PURGE_MS;
        }
        if (rc != 0 && !is_failing)
            print_error(r->c, "cannot write the history %s; trying again", history_why(r->history));
        else if (rc == 0 && is_failing)
            print_note(r->c, "the history is written again");
        is_failing = rc != 0;
        pthread_mutex_lock(&r->lock);
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
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void on_resume(void *data, const struct seen_tenure *t)
{
    follow_resume(data, t);
}

int recorder_open(const struct cli *c, const char *path, int64_t keep_ms, struct recorder **out)
{
    struct history *h;
    int code = history_open_to_write(c, path, &h);
    struct recorder *r = code == 0 ? calloc(1, sizeof *r) : NULL;
    if (r == NULL && code == 0) {
        history_close(h);
        return print_error(c, "out of memory");
    }
    if (r != NULL) {
        pthread_condattr_t clock;
        *r = (struct recorder){.c = c, .history = h, .keep_ms = keep_ms};
        pthread_mutex_init(&r->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&r->wakeup, &clock);
        r->row = history_last_row(h);
    }
    *out = r;
    return code;
}

int recorder_reader(struct recorder *r, struct history **out)
{
    return history_open_beside(r->c, r->history, out);
}

int recorder_begin(struct recorder *r, struct follow *f)
{
    if (history_begin(r->history, r->c->store, on_resume, f) != 0)
        return print_error(r->c, "%s", history_why(r->history));
    int code = pthread_create(&r->thread, NULL, write_all, r);
    return code == 0 ? 0 : print_error(r->c, "cannot start a thread: %s", strerror(code));
}

void recorder_end(struct recorder *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->is_ending = true;
    pthread_cond_signal(&r->wakeup);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    history_close(r->history);
    free(r->queue);
    free(r);
}
