/* loop.c: what drives all machines of a client.
 *
 * Whatever happens, a descriptor of the store, the alarm, a note from another thread, ends in one
 * turn: answers, hints, notes, due timers, and then one batch with every request that came of it.
 * libuv's own timers stand still during suspend; the alarm is a timerfd that does not.
 *
 * The loop's thread takes a turn before and after it sleeps. Where the store allows it, another
 * thread that would wake the loop and then wait for it takes the turn itself; that saves two
 * changes of threads, which cost more than the turn. It never does so while the client closes, nor
 * if it would have to call the user's executor. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "runtime/client.h"

static _Thread_local const struct simba *looping; /* whose loop this thread is */

static int take_turn(struct simba *s, bool here);

/* ---- who takes the next turn ----------------------------------------------------------------- */

void loop_lock(struct simba *s)
{
    pthread_mutex_lock(&s->lock);
}

void loop_want_locked(struct simba *s)
{
    if (!s->turning && !s->woken && !s->over && looping != s)
        s->wanted = true;
}

/* The write comes after the unlock, so that the loop does not wake up only to wait for the lock. */
void loop_unlock(struct simba *s)
{
    static const uint64_t one = 1;
    bool wake = s->wanted;
    s->wanted = false;
    if (wake) {
        s->woken = true;
        atomic_fetch_add(&s->wakers, 1);
    }
    pthread_mutex_unlock(&s->lock);
    if (!wake)
        return;
    /* Not write(), where a thread can be cancelled. It can only fail because it is readable already. */
    syscall(SYS_write, s->wake_fd, &one, sizeof one);
    if (atomic_fetch_sub(&s->wakers, 1) == 1)
        futex_wake(&s->wakers);
}

const struct simba *loop_enter(const struct simba *s)
{
    const struct simba *before = looping;
    looping = s;
    return before;
}

void loop_close_wake(struct simba *s)
{
    for (uint32_t n; (n = atomic_load(&s->wakers)) != 0;)
        futex_wait(&s->wakers, n, NEVER);
    close(s->wake_fd);
}

void loop_unlock_turn(struct simba *s, bool here)
{
    if (!s->wanted || s->backend->work == NULL || s->closing || s->has_executor_user ||
        s->no_thread) {
        loop_unlock(s);
        return;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    s->wanted = false;
    s->turning = true;
    s->guests++;
    loop_unlock(s);
    take_turn(s, here);
    loop_lock(s);
    s->guests--;
    if (s->closing && s->guests == 0) /* it has been waiting for us */
        loop_want_locked(s);
    loop_unlock(s);
    pthread_setcancelstate(cancel, NULL);
}

void loop_post_locked(struct simba *s, struct actor *a)
{
    if (!a->in_inbox) {
        a->in_inbox = true;
        a->inbox_next = NULL;
        *s->inbox_last = a;
        s->inbox_last = &a->inbox_next;
    }
    loop_want_locked(s);
}

/* ---- requests ------------------------------------------------------------------------------ */

struct request *loop_request(struct simba *s)
{
    struct request *r = s->spare;
    if (s->in_flight >= REQUESTS_MAX)
        return NULL;
    if (r != NULL) {
        s->spare = (struct request *)(void *)r->wire.next;
        s->spares--;
    } else if ((r = malloc(sizeof *r)) == NULL) {
        return NULL;
    }
    s->in_flight++;
    *r = (struct request){.client = s};
    return r;
}

void loop_free_request(struct simba *s, struct request *r)
{
    free(r->owner);
    free(r->text);
    found_free(r->found);
    s->in_flight--;
    if (s->spares >= REQUESTS_SPARE) {
        free(r);
        return;
    }
    r->wire.next = (struct simba_request *)(void *)s->spare;
    s->spare = r;
    s->spares++;
}

void loop_send(struct simba *s, struct request *r)
{
    r->wire.next = NULL;
    *s->batch_last = &r->wire;
    s->batch_last = &r->wire.next;
}

/* Stores are not trusted with more than their word: lengths are clamped, strings bounded. */
static int64_t bounded_left(int64_t ms)
{
    if (ms < 0)
        return 0;
    return ms < SIMBA_LEASE_MAX_MS ? ms : SIMBA_LEASE_MAX_MS;
}

static void host_answer(struct simba_host *host, struct simba_request *wire,
                        const struct simba_answer *answer)
{
    struct simba *s = (struct simba *)(void *)host;
    struct request *r = (struct request *)(void *)wire;
    loop_lock(s);
    if (r->answered) { /* a second answer is no answer */
        loop_unlock(s);
        return;
    }
    r->answered = true;
    if (r->code == 0)
        r->code = answer->code > 0 || answer->code < SIMBA_ECANCELED ? SIMBA_ESTORE : answer->code;
    r->granted = answer->granted && wire->op == SIMBA_CONTEND;
    r->token = answer->token;
    r->left_ms = bounded_left(answer->left_ms);
    r->age_ms = answer->age_ms;
    r->evicted = answer->evicted;
    if (answer->id != NULL && answer->id[0] != '\0') {
        r->own = strcmp(answer->id, wire->id) == 0;
        if (!r->own && (r->owner = strndup(answer->id, SIMBA_ID_MAX)) == NULL)
            r->code = SIMBA_ELIMIT;
    }
    bool is_shut = r->code == 0 && r->owner == NULL && !r->own && r->left_ms > 0;
    if ((r->code < 0 || is_shut) && answer->text != NULL)
        r->text = strndup(answer->text, CALL_TEXT_MAX);
    wire->next = NULL;
    *s->answers_last = wire;
    s->answers_last = &wire->next;
    if (!answer->more)
        loop_want_locked(s);
    loop_unlock_turn(s, false);
}

static void host_found(struct simba_host *host, struct simba_request *wire,
                       const struct simba_found *found)
{
    (void)host;
    struct request *r = (struct request *)(void *)wire;
    struct found *f = malloc(sizeof *f);
    if (f == NULL) {
        r->code = SIMBA_ELIMIT; /* instead of a list with holes */
        return;
    }
    *f = (struct found){r->found,
                        found->token,
                        bounded_left(found->left_ms),
                        found->age_ms,
                        found->waiters < 0 ? -1 : found->waiters,
                        found->evicted,
                        "",
                        ""};
    snprintf(f->mutex, sizeof f->mutex, "%s", found->mutex);
    snprintf(f->id, sizeof f->id, "%s", found->id != NULL ? found->id : "");
    r->found = f;
}

static void host_say(struct simba_host *host, struct simba_request *wire, enum simba_level level,
                     const char *line)
{
    (void)host;
    inquiry_say((struct request *)(void *)wire, level, line);
}

void found_free(struct found *list)
{
    for (struct found *next; list != NULL; list = next) {
        next = list->next;
        free(list);
    }
}

/* ---- hints --------------------------------------------------------------------------------- */

static void host_hint_one(struct simba_host *host, const char *mutex, const char *id)
{
    struct simba *s = (struct simba *)(void *)host;
    size_t length = mutex != NULL ? strlen(mutex) + 1 : 0, more = id != NULL ? strlen(id) + 1 : 0;
    loop_lock(s);
    struct hint *h = NULL;
    if (mutex != NULL && s->hints_count < HINTS_MAX + s->actors_count)
        h = malloc(sizeof *h + length + more);
    if (h != NULL) {
        memcpy(h->mutex, mutex, length);
        h->id = id != NULL ? memcpy(h->mutex + length, id, more) : NULL;
        h->next = s->hints;
        s->hints = h;
        s->hints_count++;
    } else {
        s->hint_all = true;
    }
    loop_want_locked(s);
    loop_unlock_turn(s, true);
}

static void host_hint(struct simba_host *host, const char *mutex)
{
    host_hint_one(host, mutex, NULL);
}

/* Of those who wait for it one asks: the one that is named, else the one that has waited longest. */
static void hint_mutex(struct simba *s, const char *mutex, const char *id)
{
    struct table_node *n = table_find(&s->actors, mutex);
    struct actor *first = NULL;
    bool known = mutex[0] == '\0' || id != NULL;
    for (; n != NULL; n = table_find_next(n)) {
        struct actor *a = (struct actor *)(void *)n;
        known = known || actor_parent(a) != NULL;
        bool meant = id == NULL || strcmp(actor_id(a), id) == 0;
        if (meant && !actor_waits(a))
            actor_hint(a);
        else if (meant && (first == NULL || (int32_t)(a->since - first->since) < 0))
            first = a;
    }
    if (first != NULL)
        actor_hint(first);
    if (!known) /* to those who observe all */
        hint_mutex(s, OBSERVER_OF_ALL, NULL);
}

static void hint_all(struct simba *s)
{
    for (size_t i = 0; i < s->actors.buckets; i++) {
        for (struct table_node *n = s->actors.bucket[i]; n != NULL; n = n->next) {
            struct actor *a = (struct actor *)(void *)n;
            if (a->machine.lease.state != LEASE_HOLDING) /* or all would renew at once */
                actor_hint(a);
        }
    }
}

static void take_hints(struct simba *s, struct hint *hints, bool all)
{
    while (hints != NULL) {
        struct hint *h = hints;
        hints = h->next;
        if (!all)
            hint_mutex(s, h->mutex, h->id);
        free(h);
    }
    if (all)
        hint_all(s);
}

/* ---- the rest of the host ------------------------------------------------------------------ */

static void host_log(struct simba_host *host, enum simba_level level, const char *line)
{
    struct simba *s = (struct simba *)(void *)host;
    log_put(&s->log, level, "%s: %s", s->url.shown, line);
}

static void host_reconnected(struct simba_host *host)
{
    atomic_fetch_add(&((struct simba *)(void *)host)->metrics.reconnects, 1);
}

static void host_closed(struct simba_host *host)
{
    struct simba *s = (struct simba *)(void *)host;
    loop_lock(s);
    s->store_closed = true;
    loop_want_locked(s);
    loop_unlock(s);
}

/* ---- a turn -------------------------------------------------------------------------------- */

static void take_answers(struct simba *s, struct simba_request *answers)
{
    while (answers != NULL) {
        struct request *r = (struct request *)(void *)answers;
        answers = answers->next;
        if (r->actor != NULL)
            actor_answered(r->actor, r);
        else
            inquiry_answered(r);
        loop_free_request(s, r);
    }
}

/* False: there were none. */
static bool take_notes(struct simba *s)
{
    for (int i = 0; i < NOTES_MAX; i++) {
        loop_lock(s);
        struct actor *a = s->inbox;
        uint32_t notes = a != NULL ? a->notes : 0;
        if (a != NULL) {
            s->inbox = a->inbox_next;
            if (s->inbox == NULL)
                s->inbox_last = &s->inbox;
            a->notes = 0;
            a->in_inbox = false;
        }
        loop_unlock(s);
        if (a == NULL)
            return i > 0;
        actor_take_notes(a, notes);
    }
    return true;
}

/* A lock that the closing thread holds itself, or one that has ended, ends with the client; one that
 * another thread works under is waited for. */
static void close_actors(struct simba *s)
{
    loop_lock(s);
    s->close_asked = false;
    for (size_t i = 0; i < s->actors.buckets; i++) {
        for (struct table_node *n = s->actors.bucket[i]; n != NULL; n = n->next) {
            struct actor *a = (struct actor *)(void *)n;
            bool over = a->machine.kind == HANDLE_LOCKER && a->phase == LOCKER_HELD &&
                        (a->holder == s->closer || holder_has_ended(a->holder));
            a->notes |= over ? NOTE_DESTROY : NOTE_CLOSE;
            futex_set(&a->changes, atomic_load(&a->changes) + 1);
            loop_post_locked(s, a);
        }
    }
    loop_unlock(s);
}

/* True: more may be due than fit into a round. */
static bool take_timers(struct simba *s)
{
    int64_t now = clock_now();
    struct timer *t = NULL;
    for (int i = 0; i < NOTES_MAX && (t = timers_pop(&s->timers, now)) != NULL; i++)
        actor_tick((struct actor *)(void *)((char *)t - offsetof(struct actor, timer)));
    return t != NULL;
}

/* False: there was none. */
static bool submit_batch(struct simba *s)
{
    static const struct simba_answer canceled = {.code = SIMBA_ECANCELED, .age_ms = -1};
    struct simba_request *batch = s->batch;
    if (batch == NULL)
        return false;
    s->batch = NULL;
    s->batch_last = &s->batch;
    if (!s->store_closing) {
        s->backend->submit(s->store, batch);
        s->submitted = true;
        return true;
    }
    while (batch != NULL) { /* the store has gone */
        struct simba_request *r = batch;
        batch = r->next;
        host_answer(&s->host, r, &canceled);
    }
    return true;
}

/* Everything that waits now; false: nothing did. */
static bool take_round(struct simba *s)
{
    loop_lock(s);
    if (s->alarmed)
        s->alarm_at = NEVER;
    s->alarmed = false;
    s->woken = false;
    struct simba_request *answers = s->answers;
    bool asked = s->inquiries != NULL;
    struct hint *hints = s->hints;
    bool all = s->hint_all, close_asked = s->close_asked;
    s->answers = NULL;
    s->answers_last = &s->answers;
    s->hints = NULL;
    s->hints_count = 0;
    s->hint_all = false;
    loop_unlock(s);

    take_answers(s, answers);
    take_hints(s, hints, all);
    bool noted = take_notes(s);
    if (asked)
        inquiry_send(s);
    if (close_asked)
        close_actors(s);
    bool ticked = take_timers(s);
    bool sent = submit_batch(s);
    return sent || ticked || noted || answers != NULL || hints != NULL || all || close_asked;
}

static void set_alarm(struct simba *s)
{
    int64_t at = timers_next(&s->timers);
    if (at >= s->alarm_at) /* it comes too early then, and is set anew */
        return;
    s->alarm_at = at;
    struct itimerspec when = {.it_value = {at / 1000000000, at % 1000000000}};
    if (at <= 0) /* zero would switch it off */
        when.it_value = (struct timespec){.tv_nsec = 1};
    int rc = timerfd_settime(s->alarm_fd, TFD_TIMER_ABSTIME, &when, NULL);
    assert(rc == 0);
}

bool loop_is_wanted_locked(const struct simba *s)
{
    return s->inbox != NULL || s->answers != NULL || s->inquiries != NULL || s->hints != NULL ||
           s->hint_all || s->alarmed || s->close_asked;
}

/* Returns to how many. */
static int tell(struct call *verdicts)
{
    struct futex_ringing r = {.bells = 0};
    int count = 0;
    for (struct call *next; verdicts != NULL; verdicts = next, count++) {
        next = verdicts->next; /* it is gone right after */
        futex_finish(&r, &verdicts->done, verdicts->seat);
    }
    futex_ring(&r);
    return count;
}

/* The caller has set `turning`. What another thread posts meanwhile wakes nobody: it is looked for
 * again before the turn ends. Returns how many callers have got their verdict. */
static int take_turn(struct simba *s, bool here)
{
    int told = 0;
    for (int round = 0; round < ROUNDS_MAX && take_round(s); round++)
        s->progress = true;
    set_alarm(s);
    bool work = s->submitted && s->backend->work != NULL;
    s->submitted = false;
    struct call *verdicts = s->verdicts;
    s->verdicts = NULL;
    loop_lock(s);
    s->turning = false;
    s->wanted = loop_is_wanted_locked(s) && !s->over;
    loop_unlock(s);
    if (verdicts != NULL)
        told = tell(verdicts);
    if (work)
        s->backend->work(s->store, here);
    return told;
}

static void close_handles(struct simba *s)
{
    uv_close((uv_handle_t *)&s->wake, NULL);
    uv_close((uv_handle_t *)&s->alarm, NULL);
    uv_close((uv_handle_t *)&s->before, NULL);
    uv_close((uv_handle_t *)&s->after, NULL);
    uv_close((uv_handle_t *)&s->loan.timer, NULL);
}

/* The store is closed when all actors are quiet: closed, and waiting for nothing but answers. The
 * loop ends when the store is gone and nothing is left to answer. */
static void end_if_done(struct simba *s)
{
    bool close_store = false, end = false;
    loop_lock(s);
    if (s->closing && s->guests == 0) { /* from now on the turn is the loop's alone */
        bool quiet = s->actors_count == s->quiet;
        close_store = quiet && !s->store_closing;
        end = quiet && s->store_closed && s->in_flight == 0 && s->inquiries == NULL && !s->over;
        s->store_closing = s->store_closing || close_store;
        s->over = s->over || end;
        s->wanted = close_store; /* it may have answers right away */
    }
    loop_unlock(s);
    if (close_store)
        s->backend->close(s->store);
    if (end)
        close_handles(s);
}

/* Several callers that go on at once will soon be back: let them, so that what they want makes one
 * batch. Meanwhile nobody needs to wake this thread. */
static void let_them_go_on(struct simba *s)
{
    loop_lock(s);
    s->woken =
        s->woken || !s->turning; /* whoever has the turn has looked perhaps for the last time */
    loop_unlock(s);
    sched_yield();
}

static void turn_here(struct simba *s)
{
    for (int told = 2; told > 1; end_if_done(s)) {
        loop_lock(s);
        bool free = !s->turning; /* if not, whoever has the turn looks again */
        s->turning = true;
        loop_unlock(s);
        if (!free)
            return;
        told = take_turn(s, s->here);
        lend_told(s, told);
        if (told > 1)
            let_them_go_on(s);
    }
}

static void before_sleep(uv_prepare_t *handle)
{
    turn_here(handle->data);
}

static void after_sleep(uv_check_t *handle)
{
    turn_here(handle->data);
}

static void on_wake(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct simba *s = handle->data;
    uint64_t times;
    ssize_t n = read(s->wake_fd, &times, sizeof times);
    (void)n; /* the turn that follows does the work */
}

static void on_alarm(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct simba *s = handle->data;
    uint64_t times;
    ssize_t n = read(s->alarm_fd, &times, sizeof times);
    (void)n;
    loop_lock(s);
    s->alarmed = true;
    loop_unlock(s);
}

static void close_loop(struct simba *s)
{
    int rc = uv_loop_close(&s->loop);
    assert(rc == 0);
    close(s->alarm_fd);
    close(s->loan.gate);
}

static void run_to_end(struct simba *s)
{
    uv_run(&s->loop, UV_RUN_DEFAULT);
    close_loop(s);
}

static void *run_loop(void *arg)
{
    struct simba *s = arg;
    looping = s;
    thread_client = s;
    lend_run(s);
    close_loop(s);
    futex_set(&s->ended, 1);
    return NULL;
}

bool loop_is_here(const struct simba *s)
{
    return looping == s;
}

void loop_notify(void *arg)
{
    struct simba *s = arg;
    if (looping == s)
        return; /* it runs what waits when it is through */
    loop_lock(s);
    s->wanted = !s->woken && !s->over;
    loop_unlock(s);
}

/* libuv registers a descriptor only when it is about to wait. So this goes on until a run had nothing
 * to do: then the descriptor of the loop tells of everything that the loop wants to hear of. */
void loop_poll(struct simba *s, bool here)
{
    bool active = true, alive = true;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sigset_t pipe, before; /* a write to a connection that is gone must not end the host program */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    s->here = here;
    atomic_store(&s->driver, pthread_self());
    looping = s;
    for (int round = 0; round < ROUNDS_MAX && active && alive; round++) {
        struct pollfd fd = {.fd = uv_backend_fd(&s->loop), .events = POLLIN};
        uv_update_time(&s->loop);
        active = poll(&fd, 1, 0) > 0 || uv_backend_timeout(&s->loop) == 0;
        s->progress = false;
        alive = uv_run(&s->loop, UV_RUN_NOWAIT) != 0;
        active = active || s->progress;
    }
    looping = NULL;
    if (!alive) {
        close_loop(s);
        futex_set(&s->ended, 1);
    }
    lend_restore_signals(&before);
    pthread_setcancelstate(cancel, NULL);
}

int loop_run(struct simba *s)
{
    if (s->no_thread) {
        loop_poll(s, false); /* so that the descriptor is right from the start */
        return 0;
    }
    return thread_start(&s->thread, "simba-loop", run_loop, s);
}

void loop_discard(struct simba *s, bool store_open)
{
    s->closing = true;
    s->store_closing = s->store_closed = !store_open;
    run_to_end(s);
    loop_close_wake(s);
}

static void listen_to(struct simba *s, uv_poll_t *handle, int fd, uv_poll_cb on_readable)
{
    int rc = uv_poll_init(&s->loop, handle, fd);
    assert(rc == 0);
    handle->data = s;
    uv_poll_start(handle, UV_READABLE, on_readable);
}

/* With the first loop of a process libuv makes a pipe, and aborts where it cannot. So this tries whether as
 * many descriptors are to be had. 0 or an errno. */
static int try_descriptors(void)
{
    int fd[4];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return errno;
    int error = pipe2(fd + 2, O_CLOEXEC) != 0 ? errno : 0;
    for (int i = 0; i < (error == 0 ? 4 : 2); i++)
        close(fd[i]);
    return error;
}

/* What takes descriptors: 0 or an errno. */
static int open_descriptors(struct simba *s)
{
    int error = try_descriptors();
    if (error == 0)
        error = -uv_loop_init(&s->loop);
    if (error != 0)
        return error;
    s->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->alarm_fd < 0)
        goto err_after_loop;
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->wake_fd < 0)
        goto err_after_alarm;
    if (!lend_init(s))
        goto err_after_wake;
    return 0;

err_after_wake:
    close(s->wake_fd); /* which leaves errno alone */
err_after_alarm:
    close(s->alarm_fd);
err_after_loop:
    error = errno;
    uv_loop_close(&s->loop);
    return error;
}

int loop_init(struct simba *s)
{
    s->inbox_last = &s->inbox;
    s->answers_last = &s->answers;
    s->batch_last = &s->batch;
    s->alarm_at = NEVER;
    s->host.version = SIMBA_BACKEND_VERSION;
    s->host.loop = &s->loop;
    s->host.answer = host_answer;
    s->host.found = host_found;
    s->host.say = host_say;
    s->host.hint = host_hint;
    s->host.hint_one = host_hint_one;
    s->host.log = host_log;
    s->host.reconnected = host_reconnected;
    s->host.closed = host_closed;
    int error = open_descriptors(s);
    if (error != 0)
        return error;
    listen_to(s, &s->wake, s->wake_fd, on_wake);
    listen_to(s, &s->alarm, s->alarm_fd, on_alarm);
    uv_prepare_init(&s->loop, &s->before);
    uv_check_init(&s->loop, &s->after);
    s->before.data = s->after.data = s;
    uv_prepare_start(&s->before, before_sleep);
    uv_check_start(&s->after, after_sleep);
    return 0;
}
