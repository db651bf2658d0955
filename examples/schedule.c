/* schedule.c: work that runs every second, in one of all the processes that run this program on the
 * same store. End it with ctrl-c, or kill it, and another one goes on.
 *
 *     ./schedule [URL [PERIOD]]        memory: and 1s by default */
#include <pthread.h>
#include <signal.h>
#include <simba.h>
#include <stdio.h>
#include <time.h>

#define STEPS 5

/* Runs on a thread of its own, one at a time, only while this process leads. */
static int work(void *data, const simba_run *run)
{
    unsigned *count = data;
    printf("run %u, token %llu\n", ++*count, (unsigned long long)simba_run_token(run));
    for (int i = 0; i < STEPS; i++) { /* a longer work asks now and then */
        if (simba_run_should_stop(run)) {
            printf("run %u stops early\n", *count);
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return 0; /* anything else is logged, and the schedule goes on */
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    printf("I lead %s, token %llu\n", mutex, (unsigned long long)state->after.token);
}

/* After the last run has ended, and before anybody else is told that the mutex is free. */
static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)state;
    printf("I no longer lead %s, after %u runs\n", mutex, *(unsigned *)data);
}

int main(int argc, char **argv)
{
    sigset_t quit; /* blocked before there are threads, so that only sigwait() gets them */
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &quit, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);

    unsigned count = 0;
    struct simba_handle_options options = SIMBA_HANDLE_OPTIONS_INIT;
    options.on_acquired = on_acquired;
    options.on_released = on_released;
    options.data = &count;
    struct simba_schedule schedule = SIMBA_SCHEDULE_INIT;
    schedule.pace = SIMBA_FIXED_RATE;
    simba_client *client = NULL;
    simba_scheduler *scheduler = NULL;
    int signal_number;
    if (simba_duration_parse(argc > 2 ? argv[2] : "1s", &schedule.period_ms) != 0 ||
        simba_open(argc > 1 ? argv[1] : "memory:", NULL, &client) != 0 ||
        simba_scheduler_create(client, "example", &schedule, work, &options, &scheduler) != 0 ||
        simba_contender_start(simba_scheduler_contender(scheduler)) != 0 ||
        sigwait(&quit, &signal_number) != 0 ||
        simba_close(client, 10000) != 0) { /* waits for the run, hands over, frees everything */
        fprintf(stderr, "schedule: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
