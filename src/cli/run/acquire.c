/* acquire.c: waiting for the lock. The library's acquire blocks, so a second thread watches
 * meanwhile: a signal, or a store that never answers, makes it cancel the wait. It also asks the
 * store who holds the lock, for the line on a terminal. A wait without end begins with a try: the
 * lock is free as a rule, and if another has it we know that the store answers. A store in a file
 * is tried without a thread.
 *
 * That another has the lock is a conflict. Nothing else is: a store that has not answered, or grants
 * what is free to nobody yet, is trouble, and is said whatever -q and -E ask for. */
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
#include "cli/messages.h"
#include "cli/run/hindrance.h"
#include "cli/run/listen.h"
#include "cli/run/poll_thread.h"
#include "cli/run/run_options.h"
#include "cli/run/service_watchdog.h"
#include "cli/shown.h"
#include "cli/terminal.h"

#define FIRST_READ_MS 20      /* a free lock is acquired sooner: then nothing is read */
#define SHOW_AFTER_MS 400     /* before that it is not worth a line */
#define READ_EVERY_MS 1000    /* while the line is shown, or the store has not answered */
#define READ_TIMEOUT_MS 1000  /* so long at most a signal may have to wait */
#define READ_LEAST_MS 10      /* where the wait is almost over */
#define CLOSE_TIMEOUT_MS 1000 /* of a store that answers … */
#define CLOSE_AWAY_MS 200 /* … and of one that does not: whoever waits for us has waited enough */
#define CANCEL_EVERY_MS 5
#define ASK_AGAIN_MS 100
#define SHUT_GRACE_MS 1000 /* a store may be late with the end of its restart grace */
#define STATUS_MAX 600
#define TELL_EVERY_MS 1000

struct acquire_watch {
    const struct run_options *opts;
    simba_locker *l;
    int64_t wait_ms;
    int done;                                  /* eventfd: acquire has returned */
    atomic_bool is_canceled;                   /* by the watcher */
    bool on_terminal, is_line_shown, is_there; /* is_there: it has said that it lets nobody in */
    struct hindrance hindrance;
    struct patience patience;
    int64_t began, next_read; /* next_read: since began */
    atomic_bool has_answered; /* by the other thread, too: not where both would be read at once */
    int signal;               /* why the wait was canceled: this signal, or 0 … */
    struct step given_up;     /* … and this end */
};

/* ---- the store ----------------------------------------------------------------------------- */

static struct simba_trouble trouble_of(const simba_locker *l)
{
    struct simba_trouble t;
    if (simba_locker_trouble(l, &t) != 0)
        t = (struct simba_trouble){.code = 0};
    return t;
}

/* "held by nightly@web1 for 1m05s" */
static void owner_text(const struct acquire_watch *w, const struct simba_owner *owner, char *out,
                       size_t size)
{
    char held[24];
    struct simba_trouble t = trouble_of(w->l);
    if (owner->id[0] == '\0' && hindrance_shut_text(&t, out, size)[0] == '\0')
        snprintf(out, size, "nobody owns it, about to take it");
    else if (owner->id[0] != '\0')
        snprintf(out, size, "held by %s%s%s", owner->id, owner->acquired_at != 0 ? " for " : "",
                 owner->acquired_at != 0 ? show_duration(simba_now() - owner->acquired_at, held)
                                         : "");
}

/* The store, if there is room for it. */
static void show_line(struct acquire_watch *w, const char *error, const struct simba_owner *owner,
                      int64_t waited_ms)
{
    const struct cli *c = w->opts->c;
    char why[STATUS_MAX], waited[24], line[2 * STATUS_MAX];
    owner_text(w, owner, why, sizeof why);
    show_duration(waited_ms, waited);
    snprintf(line, sizeof line, "waiting %s for '%s' on %.200s: %s", waited, w->opts->mutex,
             c->store, error[0] != '\0' ? error : why);
    w->is_line_shown = true;
    if (width_of(line, strlen(line)) + (int)strlen("simba lock: ") <= status_width())
        print_status(c, "%s", line);
    else
        print_status(c, "waiting %s for '%s': %s", waited, w->opts->mutex,
                     error[0] != '\0' ? error : why);
}

static void clear_line(struct acquire_watch *w)
{
    if (w->is_line_shown)
        print_status(w->opts->c, "%s", "");
    w->is_line_shown = false;
}

/* How long a wait without end still asks a store that has not answered. One that lets nobody in for now
 * is waited for: whoever is in may take as long as an owner. A wait with an end ends by itself. */
static int64_t left_ms(struct acquire_watch *w, const struct simba_trouble *t)
{
    w->is_there |= t->code == SIMBA_ESTATE;
    bool has_end = w->wait_ms == SIMBA_FOREVER && !w->has_answered && !w->is_there;
    return has_end ? hindrance_left_ms(&w->patience, t) : SIMBA_FOREVER;
}

/* Where there is no line that says it. */
static void tell_hindrance(struct acquire_watch *w)
{
    struct simba_trouble t = trouble_of(w->l);
    if (!w->on_terminal && w->wait_ms != 0)
        hindrance_tell(&w->hindrance, w->opts, &t, left_ms(w, &t));
}

/* Where the store may only have been slow, also how long it was asked. */
static struct step give_up(const struct acquire_watch *w, const char *error, int rc)
{
    char waited[24];
    struct simba_trouble t = trouble_of(w->l);
    if (cli_error_is_final(rc) || hindrance_is_absent(&t))
        return print_error(w->opts->c, "%s", error);
    return print_error(w->opts->c, "%s; given up after %s, --wait asks for longer", error,
                       show_duration(simba_now() - w->began, waited));
}

/* How long a read may last: the wait does not last longer because of it. */
static int64_t read_timeout_ms(const struct acquire_watch *w)
{
    int64_t wait_ms = w->wait_ms, left = wait_ms - (simba_now() - w->began);
    if (wait_ms == 0 || wait_ms == SIMBA_FOREVER || left > READ_TIMEOUT_MS)
        return READ_TIMEOUT_MS;
    return left > READ_LEAST_MS ? left : READ_LEAST_MS;
}

/* A store that can be read may still refuse every attempt to acquire. */
static struct step read_store(struct acquire_watch *w, int64_t waited_ms)
{
    struct simba_owner owner = {0};
    char error[STATUS_MAX] = "";
    int rc = simba_read(w->opts->c->client, w->opts->mutex, read_timeout_ms(w), &owner);
    struct simba_trouble t = trouble_of(w->l);
    /* Of a connection that was not made, the attempts know what was seen. */
    bool is_away = hindrance_is_away(&t), is_refused = rc == 0 && is_away;
    bool says_why = is_refused || (rc == SIMBA_ETIMEOUT && is_away);
    bool may_wait = left_ms(w, &t) > 0;
    int where =
        snprintf(error, sizeof error, "mutex '%s' on %.200s: ", w->opts->mutex, w->opts->c->store);
    snprintf(error + where, sizeof error - (size_t)where, "%s",
             says_why  ? t.text
             : rc != 0 ? simba_error_cause()
                       : "");
    if (rc == 0 && !is_refused)
        w->has_answered = true;
    if (!w->has_answered && (cli_error_is_final(rc) || !may_wait)) {
        clear_line(w);
        return give_up(w, error, rc);
    }
    if (w->on_terminal && waited_ms >= SHOW_AFTER_MS)
        show_line(w, error + where, &owner, waited_ms);
    return GO_ON;
}

/* ---- the watcher --------------------------------------------------------------------------- */

/* The signal that ends the wait; 0: none. */
static int ending_signal(const struct run_options *opts)
{
    struct signalfd_siginfo info;
    int found = 0;
    while (read(opts->running->signals.fd, &info, sizeof info) == sizeof info) {
        if (signal_ends((int)info.ssi_signo))
            found = (int)info.ssi_signo;
    }
    return found;
}

/* Of one try the answer says all. Else nobody looks, and the store is known to answer. */
static bool needs_no_read(const struct acquire_watch *w)
{
    bool is_one_try = w->wait_ms == 0 && !w->opts->may_be_held;
    return is_one_try || (w->has_answered && !w->on_terminal);
}

static int pause_ms(const struct acquire_watch *w)
{
    if (needs_no_read(w))
        return TELL_EVERY_MS;
    int64_t left = w->next_read - (simba_now() - w->began);
    return left > 0 ? (int)left : 0;
}

/* A cancel that comes before the wait has begun does nothing: so it is repeated until acquire
 * returns. */
static void cancel(struct acquire_watch *w)
{
    struct pollfd done = {w->done, POLLIN, 0};
    w->is_canceled = true;
    do
        simba_locker_cancel(w->l);
    while (poll(&done, 1, CANCEL_EVERY_MS) == 0);
}

static void *watch(void *arg)
{
    struct acquire_watch *w = arg;
    while (w->signal == 0 && !w->given_up.ends) {
        struct pollfd fds[] = {{w->done, POLLIN, 0}, {w->opts->running->signals.fd, POLLIN, 0}};
        int n = poll(fds, 2, pause_ms(w));
        if (n > 0 && fds[0].revents != 0)
            return NULL;
        if (n > 0 && fds[1].revents != 0)
            w->signal = ending_signal(w->opts);
        int64_t waited = simba_now() - w->began;
        tell_hindrance(w);
        if (w->signal != 0 || pause_ms(w) != 0)
            continue;
        w->next_read = waited < SHOW_AFTER_MS ? SHOW_AFTER_MS : waited + READ_EVERY_MS;
        w->given_up = read_store(w, waited);
    }
    cancel(w);
    return NULL;
}

/* ---- the wait ------------------------------------------------------------------------------ */

static struct acquisition not_acquired(struct step step)
{
    return (struct acquisition){.result = NOT_ACQUIRED, .code = step.code};
}

/* What the library's answer means to whoever called us. */
static struct acquisition result_of(const struct run_options *opts, int rc)
{
    if (rc == 0)
        return (struct acquisition){.result = ACQUIRED};
    if (rc == SIMBA_EHELD && opts->may_be_held)
        return (struct acquisition){.result = HELD_BY_ANOTHER};
    if (rc == SIMBA_EHELD || rc == SIMBA_ETIMEOUT) {
        print_note(opts->c, "%s", simba_error_text());
        return not_acquired(end_with(opts->conflict_code));
    }
    return not_acquired(
        print_error(opts->c, "%s%s", simba_error_text(),
                    rc == SIMBA_ENOTYET && opts->argv != NULL ? "; CMD is not run" : ""));
}

/* Is it worth asking again after that answer? */
static bool may_ask_again(struct acquire_watch *w, int rc)
{
    const struct cli *c = w->opts->c;
    struct simba_trouble t = trouble_of(w->l);
    int64_t lease_ms = c->ttl_ms + c->transition_ms;
    if (rc == SIMBA_ESTORE)
        return hindrance_left_ms(&w->patience, &t) > 0;
    return rc == SIMBA_ENOTYET && t.until - simba_now() <= lease_ms &&
           simba_now() - w->began < lease_ms + SHUT_GRACE_MS;
}

/* Of one try after another, each of which begins with no trouble. */
static void tell_tries(struct acquire_watch *w)
{
    struct simba_trouble t = trouble_of(w->l);
    t.since = w->began;
    if (!w->on_terminal)
        hindrance_tell(&w->hindrance, w->opts, &t, hindrance_left_ms(&w->patience, &t));
}

/* A try. Where it is no conflict that another has it, the answer is what counts: a store that is busy,
 * or does not grant what is free, is asked again for a while. */
static int try_once(struct acquire_watch *w)
{
    int rc = simba_locker_acquire(w->l, 0);
    if (w->opts->may_be_held && rc == SIMBA_ENOTYET && may_ask_again(w, rc) && !w->on_terminal)
        print_note(w->opts->c, "%s; waiting for the end of that", simba_error_text());
    while (w->opts->may_be_held && !w->is_canceled && may_ask_again(w, rc)) {
        if (rc == SIMBA_ESTORE)
            tell_tries(w);
        poll(NULL, 0, ASK_AGAIN_MS);
        rc = simba_locker_acquire(w->l, 0);
    }
    return rc;
}

/* With an end, or as one try. */
static int try_or_wait(struct acquire_watch *w)
{
    int64_t wait_ms = w->wait_ms;
    if (wait_ms != 0 && wait_ms != SIMBA_FOREVER) {
        int64_t left = wait_ms - (simba_now() - w->began);
        return simba_locker_acquire(w->l, left > 0 ? left : 0);
    }
    int rc = w->has_answered ? SIMBA_EHELD : try_once(w);
    if (rc == SIMBA_EHELD || rc == SIMBA_ENOTYET)
        w->has_answered = true;
    if (rc == 0 || rc == SIMBA_ECANCELED || wait_ms == 0 || cli_error_is_final(rc))
        return rc;
    return simba_locker_acquire(w->l, SIMBA_FOREVER);
}

static struct acquisition acquire_watched(const struct run_options *opts, simba_locker *l,
                                          int64_t wait_ms, int64_t began, bool has_answered)
{
    struct acquire_watch w = {.opts = opts,
                              .l = l,
                              .wait_ms = wait_ms,
                              .done = eventfd(0, EFD_CLOEXEC),
                              .on_terminal = !opts->c->quiet && isatty(STDERR_FILENO) != 0,
                              .has_answered = has_answered,
                              .patience = hindrance_patience(),
                              .began = began,
                              .next_read = FIRST_READ_MS};
    pthread_t thread;
    if (!poll_thread_start(opts->c))
        return not_acquired(end_with(EXIT_TROUBLE));
    if (w.done < 0 || pthread_create(&thread, NULL, watch, &w) != 0)
        return not_acquired(
            print_error(opts->c, "cannot wait for '%s' on %s: out of threads or file descriptors",
                        opts->mutex, opts->c->store));
    int rc = try_or_wait(&w);
    (void)!write(w.done, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(thread, NULL);
    close(w.done);
    clear_line(&w);
    if (w.signal != 0)
        return (struct acquisition){.result = NOT_ACQUIRED, .signal = w.signal};
    return w.given_up.ends ? not_acquired(w.given_up) : result_of(opts, rc);
}

struct acquisition acquire(const struct run_options *opts, simba_locker *l, int64_t wait_ms)
{
    int64_t began = simba_now();
    int first = opts->c->is_driven ? simba_locker_acquire(l, 0) : SIMBA_ETIMEOUT;
    if (first == 0)
        return (struct acquisition){.result = ACQUIRED};
    bool is_over = opts->c->is_driven && wait_ms > 0 && wait_ms != SIMBA_FOREVER &&
                   simba_now() - began >= wait_ms;
    struct acquisition a = cli_error_is_final(first) || is_over
                               ? result_of(opts, first)
                               : acquire_watched(opts, l, wait_ms, began, first == SIMBA_EHELD);
    poll_thread_stop(opts->c);
    if (a.result != ACQUIRED) {
        listen_end(opts);
        service_watchdog_end();
        /* which gives back a lock that was granted in spite of the cancel */
        struct simba_trouble t = trouble_of(l);
        simba_close(opts->c->client, hindrance_is_away(&t) ? CLOSE_AWAY_MS : CLOSE_TIMEOUT_MS);
    }
    return a;
}
