/* embed_epoll.c: a client inside a program that has an epoll loop, and no thread of the library.
 *
 *     ./embed_epoll [URL]        leads until a signal comes
 *
 * The loop waits for three things: a signal, the client, and the client's timeout. Callbacks run
 * inside simba_poll(), on this thread, between two events of the program: no locks are needed. A
 * callback that takes long delays the renewals; with an executor in the options it would not. */
#include <signal.h>
#include <simba.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    printf("I lead %s, token %llu\n", mutex, (unsigned long long)state->after.token);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)state;
    printf("I no longer lead %s\n", mutex);
}

static int add(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    sigprocmask(SIG_BLOCK, &quit, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);

    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.flags = SIMBA_NO_THREAD;
    struct simba_handle_options contender_options = SIMBA_HANDLE_OPTIONS_INIT;
    contender_options.on_acquired = on_acquired;
    contender_options.on_released = on_released;
    simba_client *client = NULL;
    simba_contender *contender = NULL;
    if (simba_open(argc > 1 ? argv[1] : "memory:", &options, &client) != 0 ||
        simba_contender_create(client, "example", &contender_options, &contender) != 0 ||
        simba_contender_start(contender) != 0) {
        fprintf(stderr, "embed_epoll: %s\n", simba_error_text());
        return 1;
    }
    int loop = epoll_create1(EPOLL_CLOEXEC), signals = signalfd(-1, &quit, SFD_CLOEXEC);
    if (loop < 0 || signals < 0 || add(loop, signals) != 0 ||
        add(loop, simba_poll_fd(client)) != 0) {
        perror("embed_epoll");
        return 1;
    }
    struct epoll_event event;
    do {
        simba_poll(client); /* whatever has happened; it never waits */
        event.data.fd = -1;
        epoll_wait(loop, &event, 1, (int)simba_poll_timeout(client));
    } while (event.data.fd != signals);

    if (simba_close(client, 10000) != 0) { /* drives the client itself */
        fprintf(stderr, "embed_epoll: %s\n", simba_error_text());
        return 1;
    }
    close(signals);
    close(loop);
    return 0;
}
