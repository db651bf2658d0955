/* test_torture_server.c: faults on a server, which is a process that does nothing here. */
#include "lab/torture/server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/torture/history.h"

static struct world {
    char folder[64], pid[24], pid_file[96], trace[96];
    pid_t child;
    char why[256];
} w;

static struct torture_server *open_server(const char *pid, const char *start, const char *command)
{
    const char *const commands[] = {command};
    struct server_options o = {pid, start, commands, command != NULL};
    return server_open(&o, w.why, sizeof w.why);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *trace(void)
{
    static char text[256];
    FILE *file = fopen(w.trace, "r");
    size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[n] = '\0';
    return text;
}

static int begin(void **state)
{
    (void)state;
    w = (struct world){.folder = "/tmp/simba-server.XXXXXX"};
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.pid_file, sizeof w.pid_file, "%s/pid", w.folder);
    snprintf(w.trace, sizeof w.trace, "%s/trace", w.folder);
    w.child = fork();
    if (w.child == 0) {
        for (;;)
            pause();
    }
    snprintf(w.pid, sizeof w.pid, "%d", (int)w.child);
    write_text(w.pid_file, w.pid);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (w.child != 0) {
        kill(w.child, SIGKILL);
        waitpid(w.child, NULL, 0);
    }
    unlink(w.pid_file);
    unlink(w.trace);
    assert_int_equal(rmdir(w.folder), 0);
    return 0;
}

static void is_entry(const struct entry *e, enum fault fault)
{
    assert_int_equal(e->kind, ENTRY_FAULT);
    assert_int_equal(e->detail, fault);
    assert_int_equal(e->worker, FAULT_ON_ALL);
    assert_true(0 < e->before && e->before <= e->after);
}

static void freeze_stops_and_continues(void **state)
{
    (void)state;
    struct entry e;
    int status;
    struct torture_server *s = open_server(w.pid, NULL, NULL);
    assert_non_null(s);
    assert_int_equal(server_faults(s), FAULT_BIT(FAULT_SERVER_FREEZE));
    assert_true(server_begin(s, FAULT_SERVER_FREEZE));
    assert_int_equal(waitpid(w.child, &status, WUNTRACED), w.child);
    assert_true(WIFSTOPPED(status));
    assert_true(server_is_busy(s));
    assert_false(server_poll(s, &e));
    assert_false(server_begin(s, FAULT_SERVER_FREEZE));
    server_end(s);
    assert_int_equal(waitpid(w.child, &status, WCONTINUED), w.child);
    assert_true(WIFCONTINUED(status));
    assert_true(server_poll(s, &e));
    is_entry(&e, FAULT_SERVER_FREEZE);
    assert_false(server_is_busy(s));
    assert_true(server_begin(s, FAULT_SERVER_FREEZE));
    assert_int_equal(waitpid(w.child, &status, WUNTRACED), w.child);
    server_close(s); /* not left behind like that */
    assert_int_equal(waitpid(w.child, &status, WCONTINUED), w.child);
}

/* The second of each is killed, too: so its pid was learnt. */
static void kill_and_start(const char *pid, const char *start)
{
    struct entry e;
    int status;
    struct torture_server *s = open_server(pid, start, NULL);
    assert_non_null(s);
    assert_int_equal(server_faults(s),
                     FAULT_BIT(FAULT_SERVER_FREEZE) | FAULT_BIT(FAULT_SERVER_KILL));
    for (int i = 0; i < 3; i++) {
        assert_true(server_begin(s, FAULT_SERVER_KILL));
        if (i == 0) {
            assert_int_equal(waitpid(w.child, &status, 0), w.child);
            assert_true(WIFSIGNALED(status));
            w.child = 0;
        }
        assert_true(server_settle(s, &e));
        assert_string_equal(server_error(s), "");
        is_entry(&e, FAULT_SERVER_KILL);
    }
    long last = 0;
    FILE *file = fopen(w.pid_file, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &last), 1);
    fclose(file);
    assert_int_equal(kill((pid_t)last, SIGKILL), 0);
    server_close(s);
}

static void kill_starts_again(void **state)
{
    (void)state;
    setenv("PID_FILE", w.pid_file, 1);
    kill_and_start(w.pid, "tail -f /dev/null >/dev/null 2>&1 & echo $! | tee \"$PID_FILE\"; :");
}

static void a_file_holds_the_pid(void **state)
{
    (void)state;
    setenv("PID_FILE", w.pid_file, 1);
    kill_and_start(w.pid_file, "tail -f /dev/null >/dev/null 2>&1 & echo $! >\"$PID_FILE\"; :");
}

static void commands_begin_and_end(void **state)
{
    (void)state;
    struct entry e;
    setenv("TRACE", w.trace, 1);
    struct torture_server *s =
        open_server(NULL, NULL, "read-only=f() { echo \"$@\" >>\"$TRACE\"; }; f now");
    assert_non_null(s);
    assert_int_equal(server_faults(s), FAULT_BIT(FAULT_READ_ONLY));
    assert_true(server_begin(s, FAULT_READ_ONLY));
    server_end(s); /* the beginning may run still: its end comes after it */
    assert_true(server_settle(s, &e));
    is_entry(&e, FAULT_READ_ONLY);
    assert_string_equal(trace(), "now begin\nnow end\n");
    assert_false(server_settle(s, &e));
    server_close(s);

    s = open_server(w.pid, NULL, "server-kill=:"); /* also instead of a signal */
    assert_non_null(s);
    assert_true(server_begin(s, FAULT_SERVER_KILL));
    assert_true(server_settle(s, &e));
    assert_string_equal(server_error(s), "");
    assert_int_equal(kill(w.child, 0), 0);
    server_close(s);
}

static void failures_are_reported(void **state)
{
    (void)state;
    struct entry e;
    struct torture_server *s = open_server(NULL, NULL, "full=exit 3;");
    assert_non_null(s);
    assert_true(server_begin(s, FAULT_FULL));
    assert_true(server_settle(s, &e));
    assert_string_equal(server_error(s), "'exit 3;' failed with status 3");
    server_close(s);

    s = open_server(w.pid, ":", NULL);
    assert_non_null(s);
    assert_true(server_begin(s, FAULT_SERVER_KILL));
    assert_true(server_settle(s, &e));
    assert_string_equal(server_error(s), "':' did not report the pid of the server");
    assert_false(server_begin(s, FAULT_SERVER_FREEZE));
    server_close(s);
    assert_int_equal(waitpid(w.child, NULL, 0), w.child);
    w.child = 0;
    assert_null(open_server(w.pid, NULL, NULL));
}

static void options_are_checked(void **state)
{
    (void)state;
    assert_null(open_server("1", NULL, NULL));
    assert_string_equal(w.why, "there is no process 1, or it is not ours to stop");
    assert_null(open_server("/no/such/file", NULL, NULL));
    assert_string_equal(w.why, "/no/such/file does not hold the number of a process of ours");
    assert_null(open_server(NULL, "x", NULL));
    assert_string_equal(w.why, "a command that starts the server needs its pid, too");
    assert_null(open_server(NULL, NULL, "kill=x"));
    assert_string_equal(w.why, "'kill=x' is not NAME=CMD with the name of a fault of the server");
    assert_null(open_server(NULL, NULL, "full"));
    assert_string_equal(w.why, "'full' is not NAME=CMD with the name of a fault of the server");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(freeze_stops_and_continues), CASE(kill_starts_again),     CASE(a_file_holds_the_pid),
        CASE(commands_begin_and_end),     CASE(failures_are_reported), CASE(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
