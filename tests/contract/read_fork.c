/* read_fork.c: asking who owns a mutex; and what is left of handles in a forked child (T15). */
#include "suite.h"

#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the fork of a process with threads, TSan ends a child that makes threads of its own, and in
 * one of ASan another thread may hold the allocator's lock for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define THREADS_AFTER_FORK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define THREADS_AFTER_FORK 0
#endif
#endif
#ifndef THREADS_AFTER_FORK
#define THREADS_AFTER_FORK 1
#endif

/* ---- simba_read ---------------------------------------------------------------------------- */

static bool is_nobody(const struct simba_owner *o)
{
    return o->id[0] == '\0' && o->token == 0 && o->acquired_at == 0 && o->ttl_at == 0 &&
           o->transition_at == 0;
}

static void read_owner(void)
{
    simba_client *one = client_open(), *two = client_open();
    const char *mutex = fresh("read");
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    memset(&owner, 0xff, sizeof owner);
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &owner));
    CHECK(is_nobody(&owner));
    CHECK(!simba_owner_exists(&owner, simba_now()));
    struct probe p = {0};
    probe_start(&p, one, mutex, &o);
    AWAIT(probe_leads(&p));
    simba_client *readers[2] = {one, two};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(simba_read(readers[i], mutex, PATIENCE_MS, &owner));
        CHECK(simba_owner_is(&owner, simba_contender_id(p.c)));
        CHECK(!simba_owner_is(&owner, "somebody else"));
        CHECK(owner.token == simba_contender_token(p.c));
        CHECK(simba_owner_exists(&owner, simba_now()));
        CHECK(owner.transition_at <= simba_now() + o.ttl_ms + o.transition_ms);
    }
    probe_stop(&p);
    CHECK_OK(simba_read(two, mutex, PATIENCE_MS, &owner));
    CHECK(is_nobody(&owner));
    client_close(one);
    client_close(two);
}

static void read_fails(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("read-fail");
    struct simba_owner owner;
    store_set(HANG);
    CHECK_REFUSED(simba_read(s, mutex, 200, &owner), SIMBA_ETIMEOUT, mutex);
    store_set(FAIL);
    CHECK_REFUSED(simba_read(s, mutex, PATIENCE_MS, &owner), SIMBA_ESTORE, mutex);
    store_set(HEALTHY);
    CHECK_OK(simba_read(s, mutex, PATIENCE_MS, &owner));
    CHECK(is_nobody(&owner));
    client_close(s);
}

/* ---- fork ---------------------------------------------------------------------------------- */

struct family {
    simba_client *s;
    struct probe p;
    simba_locker *l;
    uint64_t token, lock_token;
    const char *fresh_name, *busy_name;
    int pipe_end;        /* of fork_draws_ids_again */
    atomic_bool is_over; /* of fork_while_busy */
};

/* In the child: every handle of the parent is not-owner and refuses. */
static void child_checks(struct family *f)
{
    CHECK(!simba_contender_is_owner(f->p.c));
    CHECK(!simba_contender_owns(f->p.c, f->token));
    CHECK(simba_contender_token(f->p.c) == 0);
    CHECK(simba_contender_remaining(f->p.c) == 0);
    CHECK(!simba_locker_is_held(f->l));
    CHECK(simba_locker_token(f->l) == 0);
    CHECK(simba_locker_remaining(f->l) == 0);
    struct simba_owner owner;
    struct simba_handle_options o = lease_long();
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    CHECK_REFUSED(simba_contender_start(f->p.c), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_contender_stop(f->p.c), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_contender_wait(f->p.c, SIMBA_INITIAL, 10), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_locker_acquire(f->l, 10), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_locker_release(f->l), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_read(f->s, "any", 10, &owner), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_contender_create(f->s, "any", &o, &c), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_locker_create(f->s, "any", &o, &l), SIMBA_EFORKED, NULL);
    CHECK_REFUSED(simba_close(f->s, 10), SIMBA_EFORKED, NULL);
}

/* A store whose client library does not survive a fork says so at once, and does not hang. */
static void child_opens(const struct family *f)
{
    simba_client *s = NULL;
    int code = simba_open(suite_url(), NULL, &s);
    if (code == SIMBA_EFORKED && !suite_is_memory())
        return;
    CHECK(code == 0);
    struct simba_handle_options o = lease_long();
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(s, f->fresh_name, &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK(simba_locker_is_held(l));
    CHECK_OK(simba_locker_release(l));
    client_close(s);
}

/* The child ends by _exit, because all that exit() would clean up is the parent's. */
static void in_child(struct family *f, void (*run)(struct family *f))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run(f);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_and_open(struct family *f)
{
    child_checks(f);
    if (THREADS_AFTER_FORK)
        child_opens(f);
}

static void destroy_all(struct family *f)
{
    simba_contender_destroy(f->p.c);
    simba_locker_destroy(f->l);
}

static void *make_child(void *arg)
{
    in_child(arg, check_and_open);
    return NULL;
}

/* The parent keeps owning whatever its children do with its handles. */
static void fork_child_refuses(void)
{
    struct family f = {.s = client_open(), .fresh_name = fresh("child")};
    struct simba_handle_options o = lease_steady();
    probe_start(&f.p, f.s, fresh("parent"), &o);
    AWAIT(probe_leads(&f.p));
    CHECK_OK(simba_locker_create(f.s, fresh("parent-l"), &o, &f.l));
    CHECK_OK(simba_locker_acquire(f.l, PATIENCE_MS));
    f.token = simba_contender_token(f.p.c);
    f.lock_token = simba_locker_token(f.l);
    in_child(&f, check_and_open);
    in_child(&f, destroy_all);
    join(spawn(make_child, &f)); /* also from another thread */
    for (int64_t end = simba_now() + o.ttl_ms + o.transition_ms; simba_now() < end; nap(20)) {
        CHECK(simba_contender_owns(f.p.c, f.token));
        CHECK(simba_locker_token(f.l) == f.lock_token);
    }
    CHECK(atomic_load(&f.p.released) == 0);
    CHECK_OK(simba_locker_release(f.l));
    probe_stop(&f.p);
    client_close(f.s);
}

static void *lock_busily(void *arg)
{
    struct family *f = arg;
    struct simba_handle_options o = lease_long();
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(f->s, f->busy_name, &o, &l));
    while (!atomic_load(&f->is_over)) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    return NULL;
}

static void open_in_time(struct family *f)
{
    alarm(20); /* ends the child alone, so that the line of the parent is named */
    child_opens(f);
}

/* Whatever locks the parent's threads held at the moment of the fork, the child does not wait for
 * them. */
static void fork_while_busy(void)
{
    struct family f = {
        .s = client_open(), .fresh_name = fresh("busy-child"), .busy_name = fresh("busy")};
    pthread_t thread[2] = {spawn(lock_busily, &f), spawn(lock_busily, &f)};
    for (int i = 0; i < 40 && THREADS_AFTER_FORK; i++)
        in_child(&f, open_in_time);
    atomic_store(&f.is_over, true);
    for (int i = 0; i < 2; i++)
        join(thread[i]);
    client_close(f.s);
}

static void make_id(struct family *f)
{
    char id[SIMBA_ID_MAX + 1];
    CHECK_OK(simba_id_host(id, sizeof id));
    CHECK(write(f->pipe_end, id, sizeof id) == (ssize_t)sizeof id);
}

/* T7: the random part is drawn again in the child, so that its ids are its own. */
static void fork_draws_ids_again(void)
{
    char mine[SIMBA_ID_MAX + 1], theirs[2][SIMBA_ID_MAX + 1];
    CHECK_OK(simba_id_host(mine, sizeof mine));
    for (int i = 0; i < 2; i++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        struct family f = {.pipe_end = ends[1]};
        in_child(&f, make_id);
        CHECK(read(ends[0], theirs[i], sizeof theirs[i]) == (ssize_t)sizeof theirs[i]);
        close(ends[0]);
        close(ends[1]);
    }
    const char *random[3] = {strrchr(mine, '-'), strrchr(theirs[0], '-'), strrchr(theirs[1], '-')};
    CHECK(random[0] != NULL && random[1] != NULL && random[2] != NULL);
    CHECK(strcmp(random[0], random[1]) != 0);
    CHECK(strcmp(random[1], random[2]) != 0);
}

const struct test read_tests[] = {
    {"read_owner", read_owner, ANY_STORE, 0},
    {"read_fails", read_fails, MEMORY_FAULTS, 0},
    {NULL, NULL, ANY_STORE, 0},
};

const struct test fork_tests[] = {
    {"fork_child_refuses", fork_child_refuses, ANY_STORE, 0},
    {"fork_while_busy", fork_while_busy, PUSHES, 0},
    {"fork_draws_ids_again", fork_draws_ids_again, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
