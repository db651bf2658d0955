/* embed_uv.c: as embed_epoll.c, inside a program that has a libuv loop.
 *
 *     ./embed_uv [URL]        leads until a signal comes */
#include <simba.h>
#include <stdio.h>
#include <uv.h>

static simba_client *client;
static uv_poll_t readable;
static uv_timer_t timeout;
static uv_signal_t quit[2];

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

static void on_timeout(uv_timer_t *timer);

/* After each poll the client may want to be called at another time. */
static void poll_client(void)
{
    simba_poll(client);
    int64_t ms = simba_poll_timeout(client);
    if (ms >= 0)
        uv_timer_start(&timeout, on_timeout, (uint64_t)ms, 0);
    else
        uv_timer_stop(&timeout);
}

static void on_timeout(uv_timer_t *timer)
{
    (void)timer;
    poll_client();
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)handle, (void)status, (void)events;
    poll_client();
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

int main(int argc, char **argv)
{
    static const int numbers[2] = {SIGINT, SIGTERM};
    uv_loop_t *loop = uv_default_loop();
    setvbuf(stdout, NULL, _IOLBF, 0);

    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.flags = SIMBA_NO_THREAD;
    struct simba_handle_options contender_options = SIMBA_HANDLE_OPTIONS_INIT;
    contender_options.on_acquired = on_acquired;
    contender_options.on_released = on_released;
    simba_contender *contender = NULL;
    if (simba_open(argc > 1 ? argv[1] : "memory:", &options, &client) != 0 ||
        simba_contender_create(client, "example", &contender_options, &contender) != 0 ||
        simba_contender_start(contender) != 0) {
        fprintf(stderr, "embed_uv: %s\n", simba_error_text());
        return 1;
    }
    uv_timer_init(loop, &timeout);
    uv_poll_init(loop, &readable, simba_poll_fd(client));
    uv_poll_start(&readable, UV_READABLE, on_readable);
    for (int i = 0; i < 2; i++) {
        uv_signal_init(loop, &quit[i]);
        uv_signal_start(&quit[i], on_signal, numbers[i]);
    }
    poll_client();
    uv_run(loop, UV_RUN_DEFAULT);

    uv_close((uv_handle_t *)&readable, NULL); /* before its descriptor goes */
    uv_close((uv_handle_t *)&timeout, NULL);
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&quit[i], NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
    if (simba_close(client, 10000) != 0) { /* drives the client itself */
        fprintf(stderr, "embed_uv: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
