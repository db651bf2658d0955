/* test_offload.c: exit() while a call is under way, which the store has left behind. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "backend/kit/offload.h"

#define EXIT_IN_LIBRARY 3 /* the library ended while the call was in it */

static struct offload_call call;
static sem_t exit_began, is_seen;
static atomic_bool library_ended, call_ended;

/* What OpenSSL does, which is set up before the first call. */
static void end_library(void)
{
    atomic_store(&library_ended, true);
    if (!atomic_load(&call_ended))
        sem_wait(&is_seen); /* for ever: the call ends the process */
}

static void begin_exit(void)
{
    sem_post(&exit_began);
}

/* S: it waits, for us. */
static char state_of_main_thread(void)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state;
}

static void run(struct offload_call *c)
{
    (void)c;
    sem_wait(&exit_began);
    while (!atomic_load(&library_ended) && state_of_main_thread() != 'S')
        ;
    if (atomic_load(&library_ended))
        _exit(EXIT_IN_LIBRARY);
    atomic_store(&call_ended, true);
}

static void ignore_call(struct offload_call *c)
{
    (void)c;
}

static void ignore_end(void *data)
{
    (void)data;
}

static void leave_and_exit(void)
{
    uv_loop_t loop;
    atexit(end_library);
    call = (struct offload_call){
        .run = run, .done = ignore_call, .free = ignore_call, .holds_exit = true};
    if (uv_loop_init(&loop) != 0)
        _exit(1);
    struct offload *o = offload_open(&loop, NULL, NULL);
    if (o == NULL || offload_start(o, &call) != 0)
        _exit(1);
    offload_close(o, ignore_end, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    atexit(begin_exit);
    exit(0);
}

static void exit_waits_for_a_call_that_was_left_behind(void **state)
{
    (void)state;
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        leave_and_exit();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_waits_for_a_call_that_was_left_behind),
    };
    sem_init(&exit_began, 0, 0);
    sem_init(&is_seen, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
