/* acquire.c: waiting for the lock, with an ear for signals. A store in a file answers at once, so it
 * is first simply asked. Then, since the library's acquire blocks, a thread of its own asks; another
 * looks at the store if that takes long, for the line that says who holds the lock, and to find out
 * whether the store answers at all. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lock.h"

#define LOOK_AFTER_MS 400    /* before that it is not worth a line */
#define LOOK_EVERY_MS 1000   /* on a terminal */
#define LOOK_TIMEOUT_MS 1000 /* so long at most a signal may have to wait */
#define CONNECT_TIMEOUT_MS 5000
#define CLOSE_TIMEOUT_MS 3000
#define TEXT_MAX 512

struct asker {
    pthread_t thread;
    simba_locker *l;
    int64_t wait_ms;
    int done;        /* eventfd */
    uint64_t before; /* attempts of the handle, before there was an asker */
    int code;
    char text[TEXT_MAX];
};

struct looker {
    pthread_t thread;
    struct plan *p;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_running, is_asked, is_over; /* under the lock, and so is: */
    bool has_answer, ever_answered;
    int code;
    struct simba_owner owner;
    int64_t seen_at;
    char text[TEXT_MAX];
};

static void raise_event(int fd)
{
    (void)!write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

static void *ask(void *arg)
{
    struct asker *a = arg;
    a->code = simba_locker_acquire(a->l, a->wait_ms);
    snprintf(a->text, sizeof a->text, "%s", a->code != 0 ? simba_error_text() : "");
    raise_event(a->done);
    return NULL;
}

/* ---- looking ---------------------------------------------------------------------------------- */

static void *look(void *arg)
{
    struct looker *k = arg;
    pthread_mutex_lock(&k->lock);
    while (!k->is_over) {
        if (!k->is_asked) {
            pthread_cond_wait(&k->wake, &k->lock);
            continue;
        }
        pthread_mutex_unlock(&k->lock);
        struct simba_owner owner = {0};
        int code = simba_read(k->p->c->client, k->p->mutex, LOOK_TIMEOUT_MS, &owner);
        int64_t now = simba_now();
        pthread_mutex_lock(&k->lock);
        k->is_asked = false;
        k->has_answer = true;
        k->code = code;
        k->ever_answered = k->ever_answered || code == 0;
        k->owner = owner;
        k->seen_at = now;
        snprintf(k->text, sizeof k->text, "%s", code != 0 ? simba_error_text() : "");
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* Again as long as it has not answered, and always if it is for the line. True: not yet known. */
static bool look_again(struct looker *k, bool always)
{
    pthread_mutex_lock(&k->lock);
    bool unknown = !k->has_answer;
    if (always || !k->ever_answered)
        k->is_asked = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    if (!k->is_running)
        k->is_running = pthread_create(&k->thread, NULL, look, k) == 0;
    return unknown;
}

static void look_no_more(struct looker *k)
{
    if (!k->is_running)
        return;
    pthread_mutex_lock(&k->lock);
    k->is_over = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
}

/* Errors that time does not mend. */
static bool is_final(int code)
{
    return code == SIMBA_EDENIED || code == SIMBA_ESCHEMA || code == SIMBA_EUNSUPPORTED ||
           code == SIMBA_EINVAL;
}

static void show_wait(const struct plan *p, const struct looker *k, int64_t waited_ms)
{
    char who[SHOWN_MAX + 64] = "nobody answers yet", id[SHOWN_MAX];
    if (k->code == 0 && k->owner.id[0] != '\0') {
        int64_t left = k->owner.transition_at - simba_now();
        snprintf(who, sizeof who, "held by %s, lease %llds", show_name(k->owner.id, id, sizeof id),
                 (long long)(left > 0 ? left / 1000 : 0));
    } else if (k->code == 0) {
        snprintf(who, sizeof who, "free");
    }
    dprintf(STDERR_FILENO, "\r\033[Ksimba lock: waiting %llds for '%s' on %.200s: %s",
            (long long)waited_ms / 1000, p->mutex, p->c->store, who);
}

static void on_handle(void *data, const struct simba_handle_metrics *m)
{
    *(struct simba_handle_metrics *)data = *m; /* there is one handle */
}

/* Once the store has answered the handle, it is RUNNING until it is stopped. */
static bool has_answered(const struct plan *p)
{
    struct simba_handle_metrics m = {.status = SIMBA_INITIAL};
    return simba_metrics_each(p->c->client, on_handle, &m) == 0 && m.status == SIMBA_RUNNING;
}

/* What is known by now; 0: wait on, else an exit code. */
static int judge(struct plan *p, struct looker *k, int64_t waited_ms, bool on_terminal)
{
    int code = 0;
    bool answered = has_answered(p);
    pthread_mutex_lock(&k->lock);
    k->ever_answered = k->ever_answered || answered;
    bool hopeless =
        k->has_answer && !k->ever_answered &&
        (is_final(k->code) || (p->wait_ms == SIMBA_FOREVER && waited_ms >= CONNECT_TIMEOUT_MS));
    if (hopeless) {
        complain(p->c, "%s", k->text);
        code = EXIT_TROUBLE;
    } else if (on_terminal && k->has_answer) {
        show_wait(p, k, waited_ms);
    }
    pthread_mutex_unlock(&k->lock);
    return code;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* The signal that ends the wait; 0: none. */
static int ending_signal(const struct plan *p)
{
    struct signalfd_siginfo info;
    int found = 0;
    while (read(p->signals, &info, sizeof info) == sizeof info) {
        if (signal_ends((int)info.ssi_signo))
            found = (int)info.ssi_signo;
    }
    return found;
}

/* Until the asker is done (0), a signal ends it, or it is hopeless (an exit code). */
static int wait_for(struct plan *p, struct asker *a, struct looker *k, int *signal)
{
    bool on_terminal = !p->c->quiet && isatty(STDERR_FILENO) != 0;
    int64_t began = simba_now(), next = LOOK_AFTER_MS;
    bool shown = false;
    int code = 0;
    for (;;) {
        int64_t waited = simba_now() - began;
        struct pollfd fds[] = {{p->signals, POLLIN, 0}, {a->done, POLLIN, 0}};
        int n = poll(fds, 2, next > waited ? (int)(next - waited) : 0);
        if (n > 0 && fds[0].revents != 0 && (*signal = ending_signal(p)) != 0)
            break;
        if (n > 0 && fds[1].revents != 0)
            break;
        waited = simba_now() - began;
        if (waited < next)
            continue;
        code = judge(p, k, waited, on_terminal);
        next = waited + (look_again(k, on_terminal) ? LOOK_AFTER_MS : LOOK_EVERY_MS);
        shown = shown || on_terminal;
        if (code != 0)
            break;
    }
    if (shown)
        dprintf(STDERR_FILENO, "\r\033[K");
    return code;
}

/* What the library's answer means to whoever called us. */
static int verdict(const struct plan *p, const struct asker *a)
{
    if (a->code == 0)
        return ACQUIRED;
    if (a->code == SIMBA_EHELD || a->code == SIMBA_ETIMEOUT) {
        say(p->c, "%s", a->text);
        return p->conflict_code;
    }
    complain(p->c, "%s", a->text);
    return EXIT_TROUBLE;
}

/* Has the asker made the handle move? Before it, a first try may have, which has ended. */
static bool is_inside(struct plan *p, const struct asker *a)
{
    struct simba_handle_metrics m = {.attempts = 0, .status = SIMBA_INITIAL};
    if (simba_metrics_each(p->c->client, on_handle, &m) != 0)
        return true;
    return m.attempts > a->before || (a->before == 0 && m.status != SIMBA_INITIAL);
}

/* A locker must not be destroyed before the thread that is to wait for it has called it. */
static void await_asker(struct plan *p, const struct asker *a)
{
    struct pollfd done = {a->done, POLLIN, 0};
    while (!is_inside(p, a)) {
        if (poll(&done, 1, 1) > 0)
            return;
    }
}

static int acquire_by_waiting(struct plan *p, simba_locker *l, bool answered, int *signal)
{
    struct asker a = {.l = l, .wait_ms = p->wait_ms, .done = eventfd(0, EFD_CLOEXEC)};
    struct looker k = {.p = p,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .wake = PTHREAD_COND_INITIALIZER,
                       .ever_answered = answered};
    struct simba_handle_metrics m = {.attempts = 0};
    *signal = 0;
    if (!driver_start(p->c))
        return EXIT_TROUBLE;
    if (simba_metrics_each(p->c->client, on_handle, &m) == 0)
        a.before = m.attempts;
    if (a.done < 0 || pthread_create(&a.thread, NULL, ask, &a) != 0) {
        complain(p->c, "out of threads or descriptors");
        return EXIT_TROUBLE;
    }
    int code = wait_for(p, &a, &k, signal);
    bool given_up = code != 0 || *signal != 0;
    if (given_up) {
        await_asker(p, &a);
        simba_locker_destroy(l); /* what was won meanwhile is given back */
    }
    pthread_join(a.thread, NULL);
    look_no_more(&k);
    close(a.done);
    return given_up ? code : verdict(p, &a);
}

int acquire(struct plan *p, simba_locker *l, int *signal)
{
    *signal = 0;
    int first = p->c->is_driven ? simba_locker_acquire(l, 0) : SIMBA_ETIMEOUT;
    if (first == 0)
        return ACQUIRED;
    int code = acquire_by_waiting(p, l, first == SIMBA_EHELD, signal);
    driver_stop(p->c);
    if (code != ACQUIRED)
        simba_close(p->c->client, CLOSE_TIMEOUT_MS);
    return code;
}
