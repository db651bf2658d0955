/* watch.c: simba watch: follows who owns what, without contending. Observers call from several threads; one
 * lock keeps their lines apart, another what is recorded: see watch.h. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/commands/watch.h"
#include "cli/follow.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/program.h"
#include "cli/run/signals.h"

#define CONFIRM_MS 30000 /* after this, observers have told of all there is */
#define NOTES_MS 60000   /* so often the store is asked for notes, which observers do not push */

enum { OPT_RECORD, OPT_KEEP };

static const struct option options[] = {
    {"record", 0, OPT_RECORD, "FILE", "write tenures into FILE, too, for simba history"},
    {"keep", 0, OPT_KEEP, "D", "with --record: delete what ended longer ago; default 720h"},
    {NULL, 0, 0, NULL, NULL},
};

struct watch_command {
    struct cli *c;
    pthread_mutex_t lock;
    int over; /* eventfd: nobody reads us, or the history file is gone */
    int64_t began;
    const char *record;                /* a file; NULL: none */
    int64_t keep_ms;                   /* 0: not given */
    const struct recording *recording; /* how; NULL: nobody does */
    struct follow follow;
    bool is_ending; /* under its lock */
    struct signals signals;
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct watch_command *w = data;
    if (id == OPT_KEEP)
        return cli_take_keep(c, value, &w->keep_ms);
    w->record = value;
    return GO_ON;
}

/* What is told first is how things are; of a mutex that was not known, that may be news. */
static const char *event_of(const struct watch_command *w, const struct simba_state *s, bool was_on,
                            bool knows_age)
{
    bool is_first = s->before.id[0] == '\0' && s->before.token == 0;
    bool owned = s->after.id[0] != '\0';
    switch (s->reason) {
    case SIMBA_ACQUIRED:
        was_on = was_on || (knows_age && s->after.acquired_at < w->began);
        return is_first && was_on ? "held" : "acquired";
    case SIMBA_RELEASED:
        return s->before.id[0] == '\0' ? "free" : "released";
    case SIMBA_EXPIRED:
        return "expired";
    case SIMBA_EVICTED:
        return "evicted";
    case SIMBA_UNSEEN:
        return "unseen";
    default:
        return owned ? "held" : "free";
    }
}

static void on_changed(void *data, const char *mutex, const struct simba_state *s)
{
    struct watch_command *w = data;
    bool was_on = follow_was_on(&w->follow, mutex, &s->after);
    follow_take(&w->follow, mutex, s);
    bool knows_age = follow_knows_age(&w->follow);
    const char *event = event_of(w, s, was_on, knows_age);
    /* Of a tenure that is over, say which one it was. */
    struct simba_owner about = s->after.id[0] != '\0' ? s->after : s->before;
    if (!knows_age)
        about.acquired_at = 0; /* an estimate */
    pthread_mutex_lock(&w->lock);
    owner_event_print(w->c, event, mutex, &about, s->reason);
    if (fflush(stdout) != 0)
        (void)!write(w->over, &(uint64_t){1}, sizeof(uint64_t));
    pthread_mutex_unlock(&w->lock);
}

static void on_follow(void *data, enum follow_event what, struct followed *m, struct seen_tenure *t)
{
    struct watch_command *w = data;
    (void)m;
    if (w->is_ending || w->recording == NULL) /* observers go on */
        return;
    if (what == FOLLOW_BEGAN || what == FOLLOW_ENDED)
        w->recording->add(t);
}

/* Before it is silent for ever: does the store answer, and what is on already? */
static struct step ask_once(struct watch_command *w)
{
    const struct cli *c = w->c;
    int rc = follow_begin(&w->follow, c->client, c->operands, c->operand_count);
    return rc == 0 ? GO_ON : end_with(cli_fail(c, rc));
}

static struct step observe(struct watch_command *w)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_observer *one;
    int rc = 0;
    o.on_changed = on_changed;
    o.data = w;
    if (w->c->operand_count == 0)
        rc = simba_observer_create(w->c->client, NULL, &o, &one);
    for (size_t i = 0; rc == 0 && i < w->c->operand_count; i++)
        rc = simba_observer_create(w->c->client, w->c->operands[i], &o, &one);
    return rc == 0 ? GO_ON : print_error(w->c, "%s", simba_error_text());
}

/* ---- recording ----------------------------------------------------------------------------- */

/* Before threads are there: a signal ends the recording in order. */
static struct step prepare_to_record(struct watch_command *w)
{
    if (!signals_take(&w->signals))
        return print_error(w->c, "cannot take signals");
    signals_let_end(&w->signals, true); /* whatever the file makes SQLite do */
    struct step step = w->recording->open(w->c, w->record, w->keep_ms);
    signals_let_end(&w->signals, false);
    return step;
}

static void end_recording(struct watch_command *w)
{
    if (w->recording == NULL)
        return;
    pthread_mutex_lock(&w->follow.lock);
    w->is_ending = true;
    pthread_mutex_unlock(&w->follow.lock);
    w->recording->end();
}

static void end_if_signaled(struct watch_command *w)
{
    struct signalfd_siginfo info;
    while (read(w->signals.fd, &info, sizeof info) == sizeof info) {
        if (!signal_ends((int)info.ssi_signo))
            continue;
        end_recording(w);
        die_of((int)info.ssi_signo);
    }
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Nothing is held: a signal ends it as it ends any program, but a recording is brought to its end. */
static _Noreturn void follow_for_ever(struct watch_command *w)
{
    bool is_recorded = w->recording != NULL;
    for (;;) {
        struct pollfd fds[] = {
            {w->over, POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {w->signals.fd, POLLIN, 0}};
        int pause = !is_recorded || w->c->operand_count > 0 ? -1
                    : follow_is_unconfirmed(&w->follow)     ? CONFIRM_MS
                                                            : NOTES_MS;
        int ready = poll(fds, is_recorded ? 3 : 2, pause);
        if (is_recorded)
            end_if_signaled(w);
        if (ready > 0 && (fds[0].revents != 0 || fds[1].revents != 0)) {
            bool is_gone = is_recorded && w->recording->is_gone();
            end_recording(w);
            _exit(is_gone ? EXIT_TROUBLE : EXIT_NO_READER);
        }
        if (ready == 0)
            follow_list(&w->follow, w->c->client); /* if it fails, it is tried again */
    }
}

int watch(struct cli *c, const struct recording *recording)
{
    static struct watch_command w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    w.c = c;
    struct step step = cli_take(c, take_option, cli_take_operand, &w);
    if (!step.ends && w.keep_ms > 0 && w.record == NULL)
        return usage(c, "--keep needs --record FILE").code;
    if (!step.ends && w.record != NULL && recording == NULL)
        return program_exec_same(c, &serve_program);
    step = AND_THEN(step, cli_configure(c));
    if (step.ends)
        return step.code;
    w.recording = w.record != NULL ? recording : NULL;
    w.began = simba_now();
    w.over = eventfd(0, EFD_CLOEXEC);
    if (w.recording != NULL)
        step = prepare_to_record(&w);
    if (!step.ends && follow_init(&w.follow, on_follow, &w) != 0)
        step = print_error(c, "out of memory");
    step = AND_THEN(step, cli_open_existing(c));
    if (!step.ends && w.recording != NULL)
        step = w.recording->begin(&w.follow, c->operands, c->operand_count, w.over);
    step = AND_THEN(step, ask_once(&w));
    step = AND_THEN(step, observe(&w));
    if (step.ends)
        return step.code;
    follow_for_ever(&w);
}

static int run(struct cli *c)
{
    return watch(c, NULL);
}

const struct subcommand watch_command = {
    .name = "watch",
    .operands = "[NAME…]",
    .summary = "follow who owns NAME, or everything",
    .help =
        "A line per change: when, what, NAME, the tenure's holder and token. What: held or free at "
        "the\nbeginning; then acquired, released, expired, evicted. It does not contend, and runs "
        "until a "
        "signal ends it. With --record, one process per FILE.\n"
        "--json: event, at_ms, mutex, holder, token, remaining_ms, held_ms, waiters, reason, "
        "store.\n\n"
        "Exit status: 125 the store does not answer at the beginning; 141 nobody reads its lines; "
        "64 wrong usage.\n\n"
        "Examples:\n"
        "  simba watch\n"
        "  simba watch --record history.db >/dev/null\n"
        "  simba watch --json leader | while read -r line; do …; done\n",
    .options = options,
    .run = run,
};
