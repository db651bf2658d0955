/* check.c: see check.h. A run has a process group of its own, which is killed when the run has ended
 * or is late: so nothing of it goes on beside the next one, and a run that hangs holds up nobody. It is
 * below the guard, like CMD, and so it ends with the tenure at the latest. */
#include "cli/run/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/run/run_options.h"
#include "cli/run/spawn.h"
#include "cli/shown.h"

void check_begin(struct check *c)
{
    if (c->opts->check == NULL)
        return;
    c->failures = 0;
    c->next_at = clock_now() + c->opts->check_every;
}

void check_drop(struct check *c)
{
    c->is_dropped = true;
    if (c->pid > 0)
        kill(-c->pid, SIGKILL);
}

void check_end(struct check *c)
{
    c->next_at = 0;
    check_drop(c);
}

bool check_tick(struct check *c, const struct cmd_tenure *t, int live)
{
    c->next_at = clock_now() + c->opts->check_every;
    if (c->pid > 0) {
        c->is_late = true;
        kill(-c->pid, SIGKILL);
        return true; /* that it has failed is seen when it is waited for */
    }
    c->began = clock_now();
    c->is_late = c->is_dropped = false;
    c->error = spawn_check(c->opts, t, live, &c->pid);
    if (c->pid < 0)
        c->pid = 0;
    if (c->error != 0)
        c->failures++;
    return c->error == 0;
}

/* The group of one that is not waited for yet cannot be another's. */
enum check_result check_reap(struct check *c)
{
    siginfo_t info = {.si_pid = 0};
    int status;
    if (c->pid <= 0 || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return CHECK_NONE;
    kill(-c->pid, SIGKILL);
    waitpid(c->pid, &status, 0);
    c->pid = 0;
    if (c->is_dropped || c->error != 0)
        return CHECK_NONE; /* nobody asks any more, or that is known */
    if (status == 0 && !c->is_late) {
        c->failures = 0;
        return CHECK_PASSED;
    }
    c->status = status;
    c->failures++;
    return CHECK_FAILED;
}

const char *check_explain(const struct check *c, char out[CHECK_TEXT_MAX])
{
    const char *text = c->opts->check[2];
    char took[24];
    if (c->error != 0)
        snprintf(out, CHECK_TEXT_MAX, "--check '%.100s' cannot be run: %s", text,
                 strerror(c->error));
    else if (c->is_late || c->failures == 0) /* none has failed: then the first still runs */
        snprintf(
            out, CHECK_TEXT_MAX, "--check '%.100s' has not ended after %s", text,
            show_duration((c->is_late ? c->opts->check_every : clock_now() - c->began) / NS_PER_MS,
                          took));
    else if (WIFSIGNALED(c->status))
        snprintf(out, CHECK_TEXT_MAX, "--check '%.100s' was killed by signal %d", text,
                 WTERMSIG(c->status));
    else
        snprintf(out, CHECK_TEXT_MAX, "--check '%.100s' ended with status %d", text,
                 WEXITSTATUS(c->status));
    return out;
}
