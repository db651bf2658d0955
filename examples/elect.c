/* elect.c: one leader among all the processes that run this program on the same store.
 *
 *     ./elect [URL]        memory: by default, a store inside this process only */
#include <pthread.h>
#include <signal.h>
#include <simba.h>
#include <stdio.h>

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data; /* as given in the options below */
    printf("I lead %s, token %llu\n", mutex, (unsigned long long)state->after.token);
}

/* Nobody else leads before this has returned, unless the lease was lost (state->reason). */
static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    printf("I no longer lead %s%s\n", mutex,
           state->reason == SIMBA_RELEASED ? "" : ": the lease was lost");
}

int main(int argc, char **argv)
{
    sigset_t quit; /* blocked before there are threads, so that only sigwait() gets them */
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &quit, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);

    struct simba_handle_options options = SIMBA_HANDLE_OPTIONS_INIT;
    options.on_acquired = on_acquired;
    options.on_released = on_released;
    simba_client *client = NULL;
    simba_contender *contender = NULL;
    int signal_number;
    if (simba_open(argc > 1 ? argv[1] : "memory:", NULL, &client) != 0 ||
        simba_contender_create(client, "example", &options, &contender) != 0 ||
        simba_contender_start(contender) != 0 || sigwait(&quit, &signal_number) != 0 ||
        simba_close(client, 10000) != 0) { /* stops, hands over, frees everything */
        fprintf(stderr, "elect: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
