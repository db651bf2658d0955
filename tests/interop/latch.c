/* latch.c: contenders of ours for tests/interop/curator; the same as CuratorLatch.java.
 *
 * latch URL MUTEX FOLDER THREADS SECONDS */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 64

static const char *mutex, *folder;
static simba_client *client;
static int64_t until;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "latch: %s\n", what);
    exit(1);
}

static void append(const char *name, const char *line)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%s\n", line) < 0)
        die(strerror(errno));
    close(fd);
}

static void enter(const simba_locker *l, const char *who)
{
    char held[512], lost[160];
    snprintf(held, sizeof held, "%s/held", folder);
    int fd = open(held, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        append("overlaps", who);
        return;
    }
    close(fd);
    append("turns", who);
    usleep(1000);
    if (!simba_locker_is_held(l)) {
        snprintf(lost, sizeof lost, "%s lost it", who);
        append("overlaps", lost);
    }
    unlink(held);
}

static void *contend(void *arg)
{
    char who[64];
    simba_locker *l = NULL;
    snprintf(who, sizeof who, "c %d-%d", (int)getpid(), *(int *)arg);
    if (simba_locker_create(client, mutex, NULL, &l) != 0)
        die(simba_error_text());
    while (simba_now() < until) {
        if (simba_locker_acquire(l, 20000) != 0)
            die(simba_error_text());
        enter(l, who);
        if (simba_locker_release(l) != 0)
            die(simba_error_text());
    }
    simba_locker_destroy(l);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS_MAX];
    int number[THREADS_MAX];
    if (argc != 6)
        die("URL MUTEX FOLDER THREADS SECONDS");
    mutex = argv[2];
    folder = argv[3];
    int threads = (int)strtol(argv[4], NULL, 10);
    until = simba_now() + 1000 * strtol(argv[5], NULL, 10);
    if (threads < 1 || threads > THREADS_MAX || simba_open(argv[1], NULL, &client) != 0)
        die(simba_error_text());
    for (int i = 0; i < threads; i++) {
        number[i] = i;
        if (pthread_create(&thread[i], NULL, contend, &number[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    return simba_close(client, 10000) != 0;
}
