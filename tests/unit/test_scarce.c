/* test_scarce.c: a client for which memory, threads or file descriptors end. Whatever it is that
 * cannot be had, nothing crashes, nothing leaks, and every call that fails says why. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "unit/scarce.h"

/* ---- a life of a client -------------------------------------------------------------------- */

static char url[PATH_MAX], folder[] = "/tmp/simba-scarce.XXXXXX";

static void changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

static int work(void *data, const simba_run *run)
{
    (void)data;
    (void)run;
    return 0;
}

static void use_handles(simba_client *s, const char *word)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    struct simba_schedule every = SIMBA_SCHEDULE_INIT;
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    simba_observer *w = NULL;
    simba_scheduler *x = NULL;
    struct simba_owner owner;
    o.ttl_ms = 100;
    o.transition_ms = 100;
    every.period_ms = 1000;
    if (make(simba_contender_create(s, "m", &o, &c), word) == 0) {
        MUST(simba_contender_start(c) == 0);
        say(simba_contender_wait(c, SIMBA_RUNNING, 100), "");
    }
    o.on_changed = changed;
    make(simba_observer_create(s, "n", &o, &w), word);
    o.on_changed = NULL;
    if (make(simba_locker_create(s, "n", &o, &l), word) == 0 &&
        say(simba_locker_acquire(l, 100), "") == 0) {
        say(simba_read(s, "n", 100, &owner), "");
        say(simba_locker_release(l), "");
    }
    if (make(simba_scheduler_create(s, "o", &every, work, &o, &x), word) == 0)
        MUST(simba_contender_start(simba_scheduler_contender(x)) == 0);
    simba_locker_destroy(l);
    simba_contender_destroy(c);
    simba_observer_destroy(w);
    simba_scheduler_destroy(x);
}

/* False: there was not enough to open it. */
static bool live(const char *word)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    o.log = log_line;
    o.command_timeout_ms = 100;
    if (make(simba_open(url, &o, &s), word) < 0) {
        MUST(s == NULL);
        return false;
    }
    use_handles(s, word);
    MUST(say(simba_close(s, PATIENCE_MS), "") == 0);
    return true;
}

static void memory_ends(void **state)
{
    (void)state;
    for_good = false;
    whatever_fails(&memory, live, "out of memory");
}

static void memory_ends_for_good(void **state)
{
    (void)state;
    for_good = true;
    whatever_fails(&memory, live, "out of memory");
}

static void threads_end(void **state)
{
    (void)state;
    for_good = false;
    whatever_fails(&threads, live, "cannot start a thread");
}

static void threads_end_for_good(void **state)
{
    (void)state;
    for_good = true;
    whatever_fails(&threads, live, "cannot start a thread");
}

/* ---- descriptors that end ------------------------------------------------------------------ */

/* 0: opened, locked, unlocked, closed. Else the code. */
static int lock_once(void)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    simba_locker *l = NULL;
    o.command_timeout_ms = PATIENCE_MS; /* it must not be late: that is said in other words */
    int rc = make(simba_open(url, &o, &s), "ulimit -n");
    if (rc < 0)
        return rc;
    MUST(simba_locker_create(s, "m", NULL, &l) == 0);
    rc = simba_locker_acquire(l, 0);
    say(rc, "ulimit -n");
    if (rc == 0)
        MUST(simba_locker_release(l) == 0);
    simba_locker_destroy(l);
    MUST(simba_close(s, PATIENCE_MS) == 0);
    return rc;
}

/* A module that could not be loaded anyway. */
static int load_module(void)
{
    simba_client *s = NULL;
    setenv("SIMBA_MODULE_PATH", folder, 1);
    int rc = simba_open("scarce://127.0.0.1", NULL, &s);
    if (rc == SIMBA_ELIMIT)
        say(rc, "ulimit -n");
    else
        MUST(rc == SIMBA_EMODULE);
    return rc == SIMBA_EMODULE ? 0 : rc;
}

/* In a process of its own for each number, since libuv and SQLite keep some descriptors for good. */
static void until_there_are_enough(int (*try)(void))
{
    int status = -1, more = 0;
    for (; status != 0 && more < 40; more++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct rlimit limit;
            close_range(STDERR_FILENO + 1, UINT_MAX, 0);
            getrlimit(RLIMIT_NOFILE, &limit);
            limit.rlim_cur = (rlim_t)(STDERR_FILENO + 1 + more);
            setrlimit(RLIMIT_NOFILE, &limit);
            _exit(try() == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
            fail_msg("with %d descriptors to be had: status %x", more, (unsigned)status);
    }
    assert_int_equal(status, 0);
    assert_true(more > 1);
}

static void descriptors_end(void **state)
{
    (void)state;
    until_there_are_enough(lock_once);
}

static void module_finds_no_descriptor(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/simba-scarce.so", folder);
    FILE *empty = fopen(path, "we");
    assert_non_null(empty);
    fclose(empty);
    until_there_are_enough(load_module);
    unlink(path);
}

/* ---- stores -------------------------------------------------------------------------------- */

static int use_memory(void **state)
{
    (void)state;
    snprintf(url, sizeof url, "memory:scarce");
    return 0;
}

static int use_sqlite(void **state)
{
    (void)state;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(url, sizeof url, "sqlite:%s/locks.db", folder);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    static const char *const names[] = {"", "-wal", "-shm", "-live", "-tree", "-bell"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/locks.db%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

#define ON_MEMORY(f)                             \
    {                                            \
        "memory: " #f, f, use_memory, NULL, NULL \
    }
#define ON_SQLITE(f)                                     \
    {                                                    \
        "sqlite: " #f, f, use_sqlite, remove_files, NULL \
    }

/* ---- words --------------------------------------------------------------------------------- */

static void errors_of_the_system_say_what_to_do(void **state)
{
    (void)state;
    assert_non_null(strstr(errno_text(EMFILE), "ulimit -n"));
    assert_non_null(strstr(errno_text(ENFILE), "fs.file-max"));
    assert_string_equal(errno_text(ENOMEM), "out of memory");
    assert_string_equal(errno_text(EACCES), strerror(EACCES));
    assert_true(errno_is_limit(EMFILE));
    assert_true(errno_is_limit(ENFILE));
    assert_true(errno_is_limit(ENOMEM));
    assert_false(errno_is_limit(EACCES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_the_system_say_what_to_do),
        ON_MEMORY(descriptors_end),
        ON_SQLITE(descriptors_end),
        ON_SQLITE(module_finds_no_descriptor),
        ON_MEMORY(memory_ends),
        ON_SQLITE(memory_ends),
        ON_MEMORY(memory_ends_for_good),
        ON_SQLITE(memory_ends_for_good),
        ON_MEMORY(threads_end),
        ON_SQLITE(threads_end),
        ON_MEMORY(threads_end_for_good),
        ON_SQLITE(threads_end_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
