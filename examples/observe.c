/* observe.c: prints who owns what, without contending.
 *
 *     ./observe URL [MUTEX]        all mutexes of the store if none is named; until a signal comes */
#include <pthread.h>
#include <signal.h>
#include <simba.h>
#include <stdio.h>

/* Comes once with what is known first, then at every change. */
static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    if (state->after.id[0] == '\0')
        printf("%s is free\n", mutex);
    else
        printf("%s is owned by %s, token %llu, for at least %lld ms\n", mutex, state->after.id,
               (unsigned long long)state->after.token,
               (long long)(state->after.transition_at - simba_now()));
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
    options.on_changed = on_changed;
    simba_client *client = NULL;
    simba_observer *observer = NULL;
    int signal_number;
    if (argc < 2) {
        fprintf(stderr, "usage: observe URL [MUTEX]\n");
        return 64;
    }
    if (simba_open(argv[1], NULL, &client) != 0 ||
        simba_observer_create(client, argc > 2 ? argv[2] : NULL, &options, &observer) != 0 ||
        sigwait(&quit, &signal_number) != 0 || simba_close(client, 10000) != 0) {
        fprintf(stderr, "observe: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
