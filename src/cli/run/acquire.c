/* acquire.c: waiting for the lock. The library's acquire blocks, so a second thread watches
 * meanwhile: a signal, or a store that never answers, makes it cancel the wait. It also asks the
 * store who holds the lock, for the line on a terminal. The lock is first tried without waiting:
 * it is free as a rule, and if another has it we know that the store answers. A store in a file
 * is tried without a thread. */
#include "cli/run/acquire.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/run/listen.h"
#include "cli/run/outage.h"
#include "cli/run/plan.h"
#include "cli/run/poll_thread.h"
#include "cli/run/service_watchdog.h"

#define FIRST_READ_MS 20     /* a free lock is acquired sooner: then nothing is read */
#define SHOW_AFTER_MS 400    /* before that it is not worth a line */
#define READ_EVERY_MS 1000   /* while the line is shown, or the store has not answered */
#define READ_TIMEOUT_MS 1000 /* so long at most a signal may have to wait */
#define CONNECT_TIMEOUT_MS 5000
#define CLOSE_TIMEOUT_MS 3000
#define CANCEL_EVERY_MS 5
#define ASK_AGAIN_MS 100
#define SHUT_GRACE_MS 1000 /* a store may be late with the end of its restart grace */
#define STATUS_MAX 600
#define REFUSED_MS 1000 /* so long attempts may fail before it is worth a word */
#define WARN_EVERY_MS 5000

struct watcher {
    struct plan *p;
    simba_locker *l;
    int done;                /* eventfd: acquire has returned */
    atomic_bool is_canceled; /* by the watcher */
    bool on_terminal, is_line_shown, is_refusal_said;
    int64_t began, next_read; /* next_read: since began */
    atomic_bool has_answered; /* by the other thread, too: not where both would be read at once */
    int signal, code;         /* why the wait was canceled: a signal, or an exit code; 0: neither */
};

/* ---- the store ----------------------------------------------------------------------------- */

/* Errors that time does not mend. */
static bool is_final(int code)
{
    return code == SIMBA_EDENIED || code == SIMBA_ESCHEMA || code == SIMBA_EUNSUPPORTED ||
           code == SIMBA_EINVAL;
}

/* "held by nightly@web1 for 1m05s" */
static void say_owner(const struct watcher *w, const struct simba_owner *owner, char *out,
                      size_t size)
{
    char held[24], left[24];
    int64_t now = simba_now(), shut_until = w->p->c->outage->shut_until;
    if (owner->id[0] == '\0' && shut_until > now)
        snprintf(out, size, "no grants for another %s: the store has just started",
                 show_duration(shut_until - now, left));
    else if (owner->id[0] == '\0')
        snprintf(out, size, "nobody owns it, about to take it");
    else
        snprintf(out, size, "held by %s%s%s", owner->id, owner->acquired_at != 0 ? " for " : "",
                 owner->acquired_at != 0 ? show_duration(now - owner->acquired_at, held) : "");
}

/* The store, if there is room for it. */
static void show_line(struct watcher *w, const char *error, const struct simba_owner *owner,
                      int64_t waited_ms)
{
    const struct cli *c = w->p->c;
    char why[STATUS_MAX], waited[24], line[2 * STATUS_MAX];
    say_owner(w, owner, why, sizeof why);
    show_duration(waited_ms, waited);
    snprintf(line, sizeof line, "waiting %s for '%s' on %.200s: %s", waited, w->p->mutex, c->store,
             error[0] != '\0' ? error : why);
    w->is_line_shown = true;
    if (width_of(line, strlen(line)) + (int)strlen("simba lock: ") <= status_width())
        print_status(c, "%s", line);
    else
        print_status(c, "waiting %s for '%s': %s", waited, w->p->mutex,
                     error[0] != '\0' ? error : why);
}

static void clear_line(struct watcher *w)
{
    if (w->is_line_shown)
        print_status(w->p->c, "%s", "");
    w->is_line_shown = false;
}

/* Once, where there is no line that says it. */
static void warn_of_refusal(struct watcher *w)
{
    char refusal[OUTAGE_CAUSE_MAX];
    if (w->on_terminal || w->is_refusal_said ||
        outage_refusal(w->p->c->outage, REFUSED_MS, refusal)[0] == '\0')
        return;
    print_note(w->p->c, "waiting for '%s' on %s: %s; trying again", w->p->mutex, w->p->c->store,
               refusal);
    w->is_refusal_said = true;
}

/* 0: wait on, else an exit code after saying why. A store that can be read may still refuse every
 * attempt to acquire. */
static int read_store(struct watcher *w, int64_t waited_ms)
{
    struct simba_owner owner = {0};
    char refusal[OUTAGE_CAUSE_MAX] = "", error[STATUS_MAX] = "";
    int code = simba_read(w->p->c->client, w->p->mutex, READ_TIMEOUT_MS, &owner);
    bool may_wait = w->p->wait_ms != SIMBA_FOREVER ||
                    simba_now() - w->began < CONNECT_TIMEOUT_MS; /* else acquire itself ends */
    if (code == 0)
        outage_refusal(w->p->c->outage, 0, refusal);
    int where =
        snprintf(error, sizeof error, "mutex '%s' on %.200s: ", w->p->mutex, w->p->c->store);
    if (code != 0 && strncmp(error, cli_error_text(), (size_t)where) != 0)
        where = 0;
    if (code != 0)
        snprintf(error, sizeof error, "%s", cli_error_text());
    else
        snprintf(error + where, sizeof error - (size_t)where, "%s", refusal);
    if (code == 0 && refusal[0] == '\0')
        w->has_answered = true;
    if (!w->has_answered && (is_final(code) || !may_wait)) {
        clear_line(w);
        return print_error(w->p->c, "%s", error);
    }
    if (w->on_terminal && waited_ms >= SHOW_AFTER_MS)
        show_line(w, error + where, &owner, waited_ms);
    else if (code == 0)
        warn_of_refusal(w);
    return 0;
}

/* ---- the watcher --------------------------------------------------------------------------- */

/* The signal that ends the wait; 0: none. */
static int ending_signal(const struct plan *p)
{
    struct signalfd_siginfo info;
    int found = 0;
    while (read(p->signals.fd, &info, sizeof info) == sizeof info) {
        if (signal_ends((int)info.ssi_signo))
            found = (int)info.ssi_signo;
    }
    return found;
}

/* Nobody looks, and the store is known to answer. */
static bool needs_no_read(const struct watcher *w)
{
    return w->has_answered && !w->on_terminal;
}

static int pause_ms(const struct watcher *w)
{
    if (needs_no_read(w))
        return w->is_refusal_said ? -1 : WARN_EVERY_MS;
    int64_t left = w->next_read - (simba_now() - w->began);
    return left > 0 ? (int)left : 0;
}

/* A cancel that comes before the wait has begun does nothing: so it is repeated until acquire
 * returns. */
static void cancel(struct watcher *w)
{
    struct pollfd done = {w->done, POLLIN, 0};
    w->is_canceled = true;
    do
        simba_locker_cancel(w->l);
    while (poll(&done, 1, CANCEL_EVERY_MS) == 0);
}

static void *watch(void *arg)
{
    struct watcher *w = arg;
    while (w->signal == 0 && w->code == 0) {
        struct pollfd fds[] = {{w->done, POLLIN, 0}, {w->p->signals.fd, POLLIN, 0}};
        int n = poll(fds, 2, pause_ms(w));
        if (n > 0 && fds[0].revents != 0)
            return NULL;
        if (n > 0 && fds[1].revents != 0)
            w->signal = ending_signal(w->p);
        int64_t waited = simba_now() - w->began;
        if (n == 0 && needs_no_read(w))
            warn_of_refusal(w);
        if (w->signal != 0 || pause_ms(w) != 0)
            continue;
        w->next_read = waited < SHOW_AFTER_MS ? SHOW_AFTER_MS : waited + READ_EVERY_MS;
        w->code = read_store(w, waited);
    }
    cancel(w);
    return NULL;
}

/* ---- the wait ------------------------------------------------------------------------------ */

/* Nobody has it, but the store grants nothing for a while: for how long; 0: that is not so. */
static int64_t shut_ms(const struct plan *p, int code)
{
    return code == SIMBA_EHELD ? outage_shut_ms(p->c->outage, cli_error_text()) : 0;
}

/* What the library's answer means to whoever called us. */
static int result_of(const struct plan *p, int code)
{
    if (code == 0)
        return ACQUIRED;
    if (p->may_be_held && shut_ms(p, code) > 0)
        return print_error(p->c, "%s; CMD is not run", cli_error_text());
    if (code == SIMBA_EHELD && p->may_be_held)
        return HELD;
    if (code == SIMBA_EHELD || code == SIMBA_ETIMEOUT) {
        print_note(p->c, "%s", cli_error_text());
        return p->conflict_code;
    }
    return print_error(p->c, "%s", cli_error_text());
}

/* How long it is worth asking again after that answer. */
static int64_t patience_ms(const struct plan *p, int code)
{
    if (code == SIMBA_ESTORE)
        return CONNECT_TIMEOUT_MS;
    int64_t ms = shut_ms(p, code), lease_ms = p->c->ttl_ms + p->c->transition_ms;
    return ms > 0 && ms <= lease_ms ? lease_ms + SHUT_GRACE_MS : 0;
}

/* A try. Where it is no conflict that another has it, the answer is what counts: a store that is busy,
 * or does not grant what is free, is asked again for a while. */
static int try_once(struct watcher *w)
{
    int code = simba_locker_acquire(w->l, 0);
    if (w->p->may_be_held && code == SIMBA_EHELD && patience_ms(w->p, code) > 0 && !w->on_terminal)
        print_note(w->p->c, "%s; waiting for the end of that", cli_error_text());
    while (w->p->may_be_held && !w->is_canceled &&
           simba_now() - w->began < patience_ms(w->p, code)) {
        poll(NULL, 0, ASK_AGAIN_MS);
        code = simba_locker_acquire(w->l, 0);
    }
    return code;
}

/* A try, unless there was one, and then the wait for what is left of the time. */
static int try_then_wait(struct watcher *w)
{
    int64_t wait_ms = w->p->wait_ms;
    int code = w->has_answered ? SIMBA_EHELD : try_once(w);
    if (code == SIMBA_EHELD)
        w->has_answered = true;
    if (code == 0 || code == SIMBA_ECANCELED || wait_ms == 0 || is_final(code))
        return code;
    if (wait_ms != SIMBA_FOREVER) {
        wait_ms -= simba_now() - w->began;
        wait_ms = wait_ms > 0 ? wait_ms : 0;
    }
    return simba_locker_acquire(w->l, wait_ms);
}

static int acquire_watched(struct plan *p, simba_locker *l, bool has_answered, int *signal)
{
    struct watcher w = {.p = p,
                        .l = l,
                        .done = eventfd(0, EFD_CLOEXEC),
                        .on_terminal = !p->c->quiet && isatty(STDERR_FILENO) != 0,
                        .has_answered = has_answered,
                        .began = simba_now(),
                        .next_read = FIRST_READ_MS};
    pthread_t thread;
    p->c->outage->is_shut_said =
        w.on_terminal || p->wait_ms == 0; /* by the line, or by the result */
    if (!poll_thread_start(p->c))
        return EXIT_TROUBLE;
    if (w.done < 0 || pthread_create(&thread, NULL, watch, &w) != 0)
        return print_error(p->c, "cannot wait for '%s' on %s: out of threads or file descriptors",
                           p->mutex, p->c->store);
    int code = try_then_wait(&w);
    (void)!write(w.done, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(thread, NULL);
    close(w.done);
    clear_line(&w);
    *signal = w.signal;
    return w.signal != 0 || w.code != 0 ? w.code : result_of(p, code);
}

int acquire(struct plan *p, simba_locker *l, int *signal)
{
    *signal = 0;
    int first = p->c->is_driven ? simba_locker_acquire(l, 0) : SIMBA_ETIMEOUT;
    if (first == 0)
        return ACQUIRED;
    int code =
        is_final(first) ? result_of(p, first) : acquire_watched(p, l, first == SIMBA_EHELD, signal);
    poll_thread_stop(p->c);
    if (code != ACQUIRED) {
        listen_end(p);
        service_watchdog_end();
        /* which gives back a lock that was granted in spite of the cancel */
        simba_close(p->c->client, CLOSE_TIMEOUT_MS);
    }
    return code;
}
