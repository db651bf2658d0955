/* lock.c: a critical section that only one process on any machine is in.
 *
 *     ./lock [URL]         memory: by default, a store inside this process only */
#include <simba.h>
#include <stdio.h>

static int fail(void)
{
    fprintf(stderr, "lock: %s\n", simba_error_text());
    return 1; /* the end of the process ends the rest; the lease runs out by itself */
}

int main(int argc, char **argv)
{
    simba_client *client = NULL;
    simba_locker *locker = NULL;
    struct simba_handle_options options = SIMBA_HANDLE_OPTIONS_INIT;
    if (simba_open(argc > 1 ? argv[1] : "memory:", NULL, &client) != 0 ||
        simba_locker_create(client, "example", &options, &locker) != 0 ||
        simba_locker_acquire(locker, 10000) != 0) /* waits at most ten seconds */
        return fail();

    /* What is protected takes the token along and refuses one lower than it has seen. */
    printf("alone here, token %llu\n", (unsigned long long)simba_locker_token(locker));

    if (simba_locker_release(locker) != 0) /* SIMBA_ELOST: we were not alone to the end */
        return fail();
    return simba_close(client, 10000) == 0 ? 0 : fail();
}
