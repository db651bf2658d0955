/* watch.c: simba watch: follows who owns what, without contending. Observers call from several
 * threads; one lock keeps their lines apart. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/owner_list.h"

struct watcher {
    struct cli *c;
    pthread_mutex_t lock;
    int over; /* eventfd: nobody reads us */
    int64_t began;
};

/* What is told first is how things are; of a mutex that was not known, that may be news. */
static const char *event_of(const struct watcher *w, const struct simba_state *s)
{
    bool is_first = s->before.id[0] == '\0' && s->before.token == 0;
    bool owned = s->after.id[0] != '\0';
    switch (s->reason) {
    case SIMBA_ACQUIRED:
        return is_first && s->after.acquired_at < w->began ? "held" : "acquired";
    case SIMBA_RELEASED:
        return s->before.id[0] == '\0' ? "free" : "released";
    case SIMBA_EXPIRED:
        return "expired";
    case SIMBA_EVICTED:
        return "evicted";
    default:
        return owned ? "held" : "free";
    }
}

static void on_changed(void *data, const char *mutex, const struct simba_state *s)
{
    struct watcher *w = data;
    const char *event = event_of(w, s);
    /* Of a tenure that is over, say which one it was. */
    const struct simba_owner *about = s->after.id[0] != '\0' ? &s->after : &s->before;
    pthread_mutex_lock(&w->lock);
    owner_event_print(w->c, event, mutex, about, s->reason);
    if (fflush(stdout) != 0)
        (void)!write(w->over, &(uint64_t){1}, sizeof(uint64_t));
    pthread_mutex_unlock(&w->lock);
}

/* Before it is silent for ever: does the store answer? */
static int ask_once(const struct cli *c)
{
    struct simba_owner owner;
    int rc = 0;
    if (c->operand_count == 0)
        rc = cli_ask(c, NULL);
    for (size_t i = 0; rc == 0 && i < c->operand_count; i++)
        rc = simba_read(c->client, c->operands[i], ANSWER_MS, &owner);
    return rc == 0 ? 0 : cli_fail(c, rc);
}

static int observe(struct watcher *w)
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
    return rc == 0 ? 0 : print_error(w->c, "%s", simba_error_text());
}

/* A signal ends it as it ends any program; nothing is held. */
static int run(struct cli *c)
{
    static struct watcher w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    w.c = c;
    int code = cli_take(c, NULL, cli_take_operand, NULL);
    if (code < 0)
        code = cli_configure(c);
    if (code >= 0)
        return code;
    w.began = simba_now();
    w.over = eventfd(0, EFD_CLOEXEC);
    if ((code = cli_open_existing(c)) != 0 || (code = ask_once(c)) != 0 ||
        (code = observe(&w)) != 0)
        return code;
    for (;;) {
        struct pollfd fds[] = {{w.over, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
        if (poll(fds, 2, -1) > 0)
            _exit(EXIT_NO_READER);
    }
}

const struct command watch_command = {
    .name = "watch",
    .operands = "[NAME…]",
    .summary = "follow who owns NAME, or everything",
    .help =
        "A line per change: when, what, NAME, the tenure's holder and token. What: held or free at "
        "the\nbeginning; then acquired, released, expired, evicted. It does not contend, and runs "
        "until a "
        "signal ends it.\n"
        "--json: event, at_ms, mutex, holder, token, remaining_ms, held_ms, waiters, reason, "
        "store.\n\n"
        "Exit status: 125 the store does not answer at the beginning; 141 nobody reads its lines; "
        "64 wrong usage.\n\n"
        "Examples:\n"
        "  simba watch\n"
        "  simba watch --json leader | while read -r line; do …; done\n",
    .run = run,
};
