/* lock_async.c: many locks at once, without a thread that waits for each.
 *
 *     ./lock_async [URL]         memory: by default, a store inside this process only
 *
 * The program has one thread, and a loop that any program may have: it waits for the client's
 * descriptor. Each result comes to a function, inside simba_poll(). */
#include <poll.h>
#include <simba.h>
#include <stdio.h>

enum { PARTS = 100 };

struct part {
    int number;
    simba_locker *locker;
};

static int open_parts = PARTS, failures;

static void released(void *data, int code)
{
    struct part *part = data;
    open_parts--;
    if (code == 0)
        return;
    failures++; /* SIMBA_ELOST: we were not alone to the end */
    fprintf(stderr, "lock_async: part %d: %s\n", part->number, simba_error_text());
}

static void acquired(void *data, int code)
{
    struct part *part = data;
    if (code != 0) {
        released(data, code);
        return;
    }
    if (part->number % 20 == 0)
        printf("alone with part %d, token %llu\n", part->number,
               (unsigned long long)simba_locker_token(part->locker));
    if (simba_locker_release_async(part->locker, released, part) != 0)
        released(data, SIMBA_ESTATE);
}

static int fail(void)
{
    fprintf(stderr, "lock_async: %s\n", simba_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    static struct part parts[PARTS];
    simba_client *client = NULL;
    struct simba_options options = SIMBA_OPTIONS_INIT;
    options.flags = SIMBA_NO_THREAD;
    if (simba_open(argc > 1 ? argv[1] : "memory:", &options, &client) != 0)
        return fail();
    for (int i = 0; i < PARTS; i++) {
        char mutex[32];
        snprintf(mutex, sizeof mutex, "example-part-%d", i);
        parts[i].number = i;
        if (simba_locker_create(client, mutex, NULL, &parts[i].locker) != 0 ||
            simba_locker_acquire_async(parts[i].locker, 10000, acquired, &parts[i]) != 0)
            return fail();
    }
    while (open_parts > 0) {
        struct pollfd fd = {.fd = simba_poll_fd(client), .events = POLLIN};
        poll(&fd, 1, (int)simba_poll_timeout(client));
        simba_poll(client);
    }
    if (simba_close(client, 10000) != 0)
        return fail();
    printf("all parts are done\n");
    return failures > 0;
}
