/* embed_glib.c: as embed_epoll.c, inside a program that has GLib's main loop.
 *
 *     ./embed_glib [URL]        leads until a signal comes */
#include <glib-unix.h>
#include <glib.h>
#include <simba.h>
#include <stdio.h>

/* A source that is ready when the client is, and knows its timeout. */
struct source {
    GSource base;
    simba_client *client;
    gpointer tag;
};

static gboolean prepare(GSource *base, gint *timeout)
{
    *timeout = (gint)simba_poll_timeout(((struct source *)base)->client);
    return *timeout == 0;
}

static gboolean check(GSource *base)
{
    struct source *source = (struct source *)base;
    return g_source_query_unix_fd(base, source->tag) != 0 ||
           simba_poll_timeout(source->client) == 0;
}

static gboolean dispatch(GSource *base, GSourceFunc unused, gpointer data)
{
    (void)unused, (void)data;
    return simba_poll(((struct source *)base)->client) == 0;
}

static GSourceFuncs functions = {.prepare = prepare, .check = check, .dispatch = dispatch};

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

static gboolean on_signal(gpointer loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
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
        fprintf(stderr, "embed_glib: %s\n", simba_error_text());
        return 1;
    }
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    GSource *source = g_source_new(&functions, sizeof(struct source));
    ((struct source *)source)->client = client;
    ((struct source *)source)->tag = g_source_add_unix_fd(source, simba_poll_fd(client), G_IO_IN);
    g_source_attach(source, NULL);
    g_unix_signal_add(SIGINT, on_signal, loop);
    g_unix_signal_add(SIGTERM, on_signal, loop);
    g_main_loop_run(loop);

    g_source_destroy(source);
    g_source_unref(source);
    g_main_loop_unref(loop);
    if (simba_close(client, 10000) != 0) { /* drives the client itself */
        fprintf(stderr, "embed_glib: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
