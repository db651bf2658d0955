/* trace.c: what a client does, event by event, as one line of JSON each.
 *
 *     ./trace [URL]        acquires a mutex, does some work, releases it
 *
 * A tracer is attached in the same place. For OpenTelemetry, each event is a span: its name is the
 * kind and `name`, it begins at began_us and lasts duration_us, and the rest are attributes. */
#include <simba.h>
#include <stdio.h>

static const char *kind_name(enum simba_event_kind kind)
{
    static const char *const names[] = {"exchange", "acquired",    "ended",         "callback",
                                        "run",      "failing",     "works",         "not yet",
                                        "reached",  "note failed", "note published"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "other";
}

static const char *reason_name(enum simba_reason reason)
{
    static const char *const names[] = {"",        "acquired", "released",
                                        "expired", "evicted",  "stalled"};
    return (size_t)reason < sizeof names / sizeof *names ? names[reason] : "other";
}

/* Names of mutexes and ids may have any character. */
static void print_string(const char *name, const char *text)
{
    printf(",\"%s\":\"", name);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

/* Called for one event at a time, on a thread of the library's. */
static void print_event(void *data, const struct simba_event *e)
{
    (void)data;
    int64_t began_ms = simba_wall_ms(e->began_us / 1000); /* since 1970, as tracers want it */
    printf("{\"time_ms\":%lld,\"duration_us\":%lld,\"kind\":\"%s\"", (long long)began_ms,
           (long long)e->duration_us, kind_name(e->kind));
    print_string("name", e->name);
    print_string("mutex", e->mutex);
    print_string("id", e->id);
    if (e->text[0] != '\0')
        print_string("text", e->text);
    printf(",\"token\":%llu,\"code\":%d,\"reason\":\"%s\",\"dropped\":%llu}\n",
           (unsigned long long)e->token, (int)e->code, reason_name(e->reason),
           (unsigned long long)e->dropped);
}

int main(int argc, char **argv)
{
    struct simba_options options = SIMBA_OPTIONS_INIT;
    simba_client *client = NULL;
    simba_locker *locker = NULL;
    options.trace = print_event;
    if (simba_open(argc > 1 ? argv[1] : "memory:", &options, &client) != 0 ||
        simba_locker_create(client, "example", NULL, &locker) != 0 ||
        simba_locker_acquire(locker, 10000) != 0 || simba_locker_release(locker) != 0 ||
        simba_close(client, 10000) != 0) {
        fprintf(stderr, "trace: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
