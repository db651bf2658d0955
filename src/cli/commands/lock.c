/* lock.c: simba lock: hold a mutex while a command runs. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/run/acquire.h"
#include "cli/run/guard.h"
#include "cli/run/keeper.h"
#include "cli/run/notify.h"
#include "cli/run/plan.h"
#include "cli/run/poll_thread.h"
#include "cli/run/relay.h"

enum {
    OPT_NO_WAIT,
    OPT_WAIT,
    OPT_CONFLICT,
    OPT_COMMAND,
    OPT_CLOSE,
    OPT_KILL_REST,
    OPT_LEAVE_REST,
    OPT_EXCLUSIVE,
    OPT_SHARED
};

static const struct option options[] = {
    {"no-wait", 'n', OPT_NO_WAIT, NULL, "if another holds NAME, exit with 124 at once"},
    {"nonblock", 0, OPT_NO_WAIT, NULL, NULL},
    {"nb", 0, OPT_NO_WAIT, NULL, NULL},
    {"wait", 'w', OPT_WAIT, "D", "wait so long at most, then exit with 124"},
    {"timeout", 0, OPT_WAIT, "D", NULL},
    {"conflict-exit-code", 'E', OPT_CONFLICT, "N", "instead of 124"},
    PLAN_OPTIONS,
    {"command", 'c', OPT_COMMAND, "STRING", "CMD for the shell: sh -c STRING"},
    {"close", 'o', OPT_CLOSE, NULL, "CMD does not inherit the descriptor that shows it is alive"},
    {"kill-rest", 0, OPT_KILL_REST, NULL, "when CMD ends, end what it left running"},
    {"leave-rest", 0, OPT_LEAVE_REST, NULL, "when CMD ends, release, whatever it left running"},
    {"exclusive", 'x', OPT_EXCLUSIVE, NULL, NULL},
    {"exclusive", 'e', OPT_EXCLUSIVE, NULL, NULL},
    {"shared", 's', OPT_SHARED, NULL, NULL},
    {NULL, 0, 0, NULL, NULL},
};

static const char help[] =
    "CMD gets SIMBA_MUTEX, SIMBA_FENCING_TOKEN, SIMBA_CONTENDER_ID and SIMBA_STORE. Without CMD, "
    "the token is printed and NAME is held until a signal comes. Options end at the first word of "
    "CMD. Of -n and -w the last one counts.\n\n"
    "Exit status: CMD's own, or 128 + the signal that killed it; 123 the lease was lost and CMD "
    "was stopped; 124 held by another (-n) or not acquired in time (-w); 125 simba itself failed; "
    "126 CMD cannot be run; 127 CMD not found; 64 wrong usage.\n\n"
    "Examples:\n"
    "  simba lock backup rsync -a /data /backup   # one at a time on this machine\n"
    "  simba lock -n report ./report.sh           # skip it if the last still runs\n"
    "  simba lock -w 5m -E 0 sync -c 'a | b'      # after 5 minutes give up quietly\n"
    "  simba -u redis://db1/0 lock nightly ./job  # one at a time on all machines\n";

/* ---- options ---------------------------------------------------------------------------------- */

struct request {
    struct plan plan;
    char *shell[4]; /* all NULL: no -c */
};

static int take_option(struct cli *c, struct request *r, int id, char *value)
{
    struct plan *p = &r->plan;
    char *end;
    long number;
    switch (id) {
    case OPT_NO_WAIT:
        p->wait_ms = 0;
        return -1;
    case OPT_WAIT:
        return cli_take_duration(c, "--wait", value, &p->wait_ms);
    case OPT_CONFLICT:
        number = strtol(value, &end, 10);
        if (*value == '\0' || *end != '\0' || number < 0 || number > 255)
            return usage(c, "--conflict-exit-code is a number from 0 to 255");
        p->conflict_code = (int)number;
        return -1;
    case OPT_COMMAND:
        plan_shell_argv(r->shell, value);
        return -1;
    case OPT_EXCLUSIVE:
        return -1;
    case OPT_CLOSE:
        p->close_live = true;
        return -1;
    case OPT_KILL_REST:
        p->rest = REST_KILL;
        return -1;
    case OPT_LEAVE_REST:
        p->rest = REST_LEAVE;
        return -1;
    case OPT_SHARED:
        return usage(c, "there are no shared locks: a mutex has one owner");
    default:
        return plan_take(p, id, value);
    }
}

/* NAME is the first word, CMD begins with the second. */
static int take_words(struct cli *c, struct request *r)
{
    char *value;
    for (;;) {
        int code, id = args_next(&c->args, &value);
        if (id == ARG_WRONG)
            return EXIT_USAGE;
        if (id == ARG_END)
            break;
        if (id == ARG_WORD && r->plan.mutex == NULL) {
            r->plan.mutex = value;
            continue;
        }
        if (id == ARG_WORD) {
            r->plan.argv = &c->args.argv[c->args.at - 1];
            break;
        }
        if (!cli_common(c, id, value, &code))
            code = take_option(c, r, id, value);
        if (code >= 0)
            return code;
    }
    if (r->plan.mutex == NULL)
        return usage(c, "the name of a mutex is missing: simba lock NAME [CMD…]");
    if (r->shell[0] != NULL && r->plan.argv != NULL)
        return usage(c, "CMD comes from -c or from words, not from both");
    if (r->shell[0] != NULL)
        r->plan.argv = r->shell;
    return -1;
}

/* ---- the lock --------------------------------------------------------------------------------- */

static void on_lost(void *data, const char *mutex, const struct simba_state *state)
{
    (void)mutex;
    (void)state;
    (void)!write(*(int *)data, &(uint64_t){1}, sizeof(uint64_t));
}

static int create_locker(struct plan *p, int *lost, simba_locker **l)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    int code = plan_handle(p, &o);
    if (code != 0)
        return code;
    o.on_released = on_lost;
    o.data = lost;
    int rc = simba_locker_create(p->c->client, p->mutex, &o, l);
    return rc == 0 ? 0 : plan_refused(p, rc);
}

static void print_token(const struct plan *p, const simba_locker *l)
{
    unsigned long long token = (unsigned long long)simba_locker_token(l);
    if (p->c->json)
        print_json("{s:s, s:I, s:s, s:s}", "mutex", p->mutex, "token", (long long)token, "id",
                   simba_locker_id(l), "store", p->c->store);
    else
        printf("%llu\n", token);
    fflush(stdout);
}

/* Without CMD there is nothing to guard: we are the ones who are to be ended. */
static int hold(struct plan *p, simba_locker *l, int lost)
{
    struct signalfd_siginfo info;
    if (!poll_thread_start(p->c))
        return EXIT_TROUBLE;
    print_token(p, l);
    notify_service_manager("READY=1");
    for (;;) {
        struct pollfd fds[] = {{p->signals.fd, POLLIN, 0}, {lost, POLLIN, 0}};
        if (poll(fds, 2, -1) <= 0)
            continue;
        if (fds[1].revents != 0) {
            print_error(p->c, "mutex '%s' on %s: the lock was lost", p->mutex, p->c->store);
            return EXIT_LOST;
        }
        while (read(p->signals.fd, &info, sizeof info) == sizeof info) {
            if (!signal_ends((int)info.ssi_signo))
                continue;
            int rc = simba_locker_release(l);
            if (rc != 0)
                print_error(p->c, "%s", simba_error_text());
            return rc == SIMBA_ELOST ? EXIT_LOST : 0;
        }
    }
}

static int lock(struct plan *p)
{
    static int lost;
    int link = -1, signal = 0;
    pid_t guard = 0;
    simba_locker *l = NULL;
    lost = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lost < 0 || (p->argv != NULL && !relay_fork(p->c)) || !signals_take(&p->signals) ||
        (p->argv != NULL && (guard = guard_fork(p, &link)) < 0)) {
        print_error(p->c, "cannot start: %s", strerror(errno));
        return EXIT_TROUBLE;
    }
    const char *url = p->c->setting[SET_URL].value;
    p->c->is_driven = url == NULL || strncmp(url, "sqlite:", 7) == 0;
    int code = cli_open(p->c);
    cli_forget_url(p->c);
    if (code == 0)
        code = create_locker(p, &lost, &l);
    if (code == 0)
        code = acquire(p, l, &signal);
    if (code == ACQUIRED && p->c->verbose > 0)
        print_error(p->c, "mutex '%s' on %s: acquired by %s, token %llu", p->mutex, p->c->store,
                    simba_locker_id(l), (unsigned long long)simba_locker_token(l));
    if (code == ACQUIRED)
        return p->argv != NULL ? keep(p, l, lost, link, guard) : hold(p, l, lost);
    guard_end(guard);
    if (signal != 0)
        die_of(signal);
    return code;
}

static int run(struct cli *c)
{
    static struct request r = {.plan = {.wait_ms = SIMBA_FOREVER,
                                        .conflict_code = EXIT_CONFLICT,
                                        .signal = SIGTERM,
                                        .signals = {.fd = -1}}};
    r.plan.c = c;
    mallopt(M_ARENA_MAX, 1); /* one for each of our few threads costs more than they ever wait */
    int code = take_words(c, &r);
    if (code < 0)
        code = cli_configure(c);
    if (code < 0)
        code = plan_kill_after(&r.plan);
    if (code < 0) {
        code = lock(&r.plan);
        /* The lock is released and nothing else is owed; taking the client apart in order would
         * only cost time. */
        fflush(stdout);
        _exit(code);
    }
    return code;
}

const struct command lock_command = {
    .name = "lock",
    .words = "NAME [CMD…]",
    .summary = "hold NAME while CMD runs",
    .help = help,
    .options = options,
    .run = run,
};
