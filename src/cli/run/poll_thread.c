/* poll_thread.c: a client without a thread of its own, and a thread for it when it lasts. A lock
 * that is free is taken, and a short CMD run under it, before a thread would have begun to be of
 * use. */
#include "cli/run/poll_thread.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/messages.h"

#define SLICE_MS 60000

static pthread_t thread;
static int stop = -1; /* eventfd */
static sem_t begun;   /* from then on nobody else is taken for the driver */

static void *drive(void *arg)
{
    simba_client *client = arg;
    simba_poll(client);
    sem_post(&begun);
    for (;;) {
        int64_t ms = simba_poll_timeout(client);
        struct pollfd fds[] = {{simba_poll_fd(client), POLLIN, 0}, {stop, POLLIN, 0}};
        poll(fds, 2, ms < 0 || ms > SLICE_MS ? SLICE_MS : (int)ms);
        if (fds[1].revents != 0)
            return NULL;
        simba_poll(client);
    }
}

bool poll_thread_start(struct cli *c)
{
    if (!c->is_driven || stop >= 0)
        return true;
    stop = eventfd(0, EFD_CLOEXEC);
    sem_init(&begun, 0, 0);
    if (stop >= 0 && pthread_create(&thread, NULL, drive, c->client) == 0) {
        while (sem_wait(&begun) != 0)
            ;
        return true;
    }
    print_error(c, "cannot start the thread that renews on %s: out of threads or file descriptors",
                c->store);
    return false;
}

void poll_thread_stop(struct cli *c)
{
    if (!c->is_driven || stop < 0)
        return;
    (void)!write(stop, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(thread, NULL);
    close(stop);
    stop = -1;
    simba_poll(c->client); /* the calling thread is the driver now, and drives it by waiting */
}
