/* children.c: starts the processes of a run, stops, continues and ends them, and takes note of what
 * has become of them. */
#include "lab/torture/children.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lab/torture/network.h"

void run_add(struct run *r, enum entry_kind kind, unsigned worker, unsigned life, unsigned detail,
             int64_t before, int64_t after)
{
    struct entry e = {.kind = (uint8_t)kind,
                      .worker = (uint16_t)worker,
                      .life = (uint16_t)life,
                      .detail = (uint8_t)detail,
                      .before = before,
                      .after = after};
    record_add(r->record, &e);
}

bool child_start(struct run *r, unsigned number)
{
    struct child *k = &r->children[number];
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signals_give_back(&r->signals);
        close(r->signals.fd);
        worker_main(r->t, number, k->life);
    }
    k->pid = pid > 0 ? pid : 0;
    k->is_killed = k->is_ending = false;
    k->restart_at = 0;
    return pid > 0;
}

void child_kill(struct child *k)
{
    if (k->pid == 0)
        return;
    kill(k->pid, SIGKILL);
    k->is_killed = true;
}

void child_thaw(struct run *r, unsigned number, int64_t now)
{
    struct child *k = &r->children[number];
    if (k->frozen_at == 0)
        return;
    if (k->pid != 0)
        kill(k->pid, SIGCONT);
    run_add(r, ENTRY_FAULT, number, k->life, FAULT_FREEZE, k->frozen_at, now);
    k->frozen_at = k->thaw_at = 0;
}

void child_end(struct run *r, unsigned number)
{
    struct child *k = &r->children[number];
    atomic_store(&r->t->control->worker[number].last_life, k->life + 1);
    k->is_ending = true;
}

void children_reap(struct run *r, bool is_late)
{
    for (unsigned i = 0; i <= r->t->workers; i++) {
        struct child *k = &r->children[i];
        int status;
        if (k->pid == 0 || waitpid(k->pid, &status, WNOHANG) != k->pid)
            continue;
        int64_t now = clock_now();
        bool is_by_us = k->is_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        unsigned how = !is_by_us ? DEATH_BY_ITSELF : is_late ? DEATH_HUNG : DEATH_BY_US;
        struct entry e = {.kind = ENTRY_DEATH,
                          .worker = (uint16_t)i,
                          .life = (uint16_t)k->life,
                          .detail = (uint8_t)how,
                          .code = status,
                          .before = now,
                          .after = now};
        record_add(r->record, &e);
        k->pid = 0;
        if (k->restart_at == 0)
            k->restart_at = now; /* it crashed: the judge says so, the run goes on */
    }
}

void child_restart(struct run *r, unsigned number, int64_t now)
{
    struct child *k = &r->children[number];
    child_thaw(r, number, now);
    if (k->gone_at != 0)
        run_add(r, ENTRY_FAULT, number, k->life, k->fault, k->gone_at, now);
    k->gone_at = 0;
    k->life++;
    if (!child_start(r, number))
        k->restart_at = now + 100 * NS_PER_MS; /* no process can be had just now */
}

void child_freeze(struct child *k, int64_t now, int64_t until)
{
    if (k->frozen_at == 0) {
        kill(k->pid, SIGSTOP);
        k->frozen_at = now;
    }
    if (until > k->thaw_at)
        k->thaw_at = until;
}

void child_mend_network(struct run *r, unsigned number)
{
    struct child *k = &r->children[number];
    if (k->net_since == 0)
        return;
    r->has_lost_proxy |= !network_set(r->t, number, FAULT_KINDS, 0);
    run_add(r, ENTRY_FAULT, number, k->life, k->net_fault, k->net_since, clock_now());
    k->net_since = 0;
}

bool children_are_there(const struct run *r)
{
    for (unsigned i = 0; i <= r->t->workers; i++) {
        if (r->children[i].pid != 0)
            return true;
    }
    return false;
}
