/* worker.c: contends for mutexes beside clients of the JVM, and writes down every time that it was
 * the owner, for judge.py, as Worker.java does:
 *     NAME MUTEX TOKEN BEFORE_NS AFTER_NS
 * The answer was yes at some moment between the two readings of CLOCK_MONOTONIC, which is what
 * Java's System.nanoTime() reads on Linux. Each line is one write, so a kill -9 loses none. A tenure
 * lasts up to HOLD_MS, unless it is lost; then the worker stays away for up to PAUSE_MS.
 *
 * worker URL NAME FILE SEED HOLD_MS PAUSE_MS contender:MUTEX|locker:MUTEX...     until it is killed
 *
 * MUTEX=OTHER is a planted mistake: it contends for OTHER, and takes that for MUTEX. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MUTEXES_MAX 8
#define WAIT_MS 60000

static const char *name;
static simba_client *client;
static int record;
static unsigned first_seed;
static int hold_ms, pause_ms;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void write_yes(const char *mutex, uint64_t token, int64_t before, int64_t after)
{
    if (dprintf(record, "%s %s %" PRIu64 " %" PRId64 " %" PRId64 "\n", name, mutex, token, before,
                after) < 0)
        die("the record cannot be written");
}

/* Whichever of the two it is, it says yes to this token. */
struct handle {
    simba_contender *contender;
    simba_locker *locker;
};

static bool owns(const struct handle *h, uint64_t token)
{
    return h->contender != NULL ? simba_contender_owns(h->contender, token)
                                : simba_locker_token(h->locker) == token;
}

/* Asks every millisecond until the tenure is over, or has lasted for long enough. */
static void hold(const struct handle *h, const char *mutex, uint64_t token, int64_t hold_ns)
{
    int64_t end = now_ns() + hold_ns;
    for (;;) {
        int64_t before = now_ns();
        bool is_owner = owns(h, token);
        int64_t after = now_ns();
        if (!is_owner)
            return;
        write_yes(mutex, token, before, after);
        if (after > end)
            return;
        nap_ms(1);
    }
}

static uint64_t acquire(const struct handle *h)
{
    if (h->locker != NULL)
        return simba_locker_acquire(h->locker, WAIT_MS) == 0 ? simba_locker_token(h->locker) : 0;
    if (simba_contender_start(h->contender) != 0)
        die(simba_error_text());
    uint64_t token = 0;
    while ((token = simba_contender_token(h->contender)) == 0)
        nap_ms(1);
    return token;
}

/* A tenure may have been lost, or never begun: that is not for this program to judge. */
static void release(const struct handle *h)
{
    if (h->locker != NULL)
        simba_locker_release(h->locker);
    else if (simba_contender_stop(h->contender) != 0 ||
             simba_contender_wait(h->contender, SIMBA_INITIAL, WAIT_MS) != 0)
        die(simba_error_text());
}

static void *contend(void *arg)
{
    char *mutex = strchr(arg, ':');
    struct handle h = {NULL, NULL};
    if (mutex == NULL)
        die("contender:MUTEX or locker:MUTEX");
    *mutex++ = '\0';
    char *other = strchr(mutex, '=');
    if (other != NULL)
        *other++ = '\0';
    const char *wanted = other != NULL ? other : mutex;
    bool is_locker = strcmp(arg, "locker") == 0;
    if ((is_locker ? simba_locker_create(client, wanted, NULL, &h.locker)
                   : simba_contender_create(client, wanted, NULL, &h.contender)) != 0)
        die(simba_error_text());
    unsigned seed = first_seed + (unsigned char)mutex[0];
    for (;;) {
        uint64_t token = acquire(&h);
        if (token != 0)
            hold(&h, mutex, token, rand_r(&seed) % hold_ms * INT64_C(1000000));
        release(&h);
        nap_ms(rand_r(&seed) % pause_ms);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread[MUTEXES_MAX];
    if (argc < 8 || argc - 7 > MUTEXES_MAX) {
        fprintf(stderr, "usage: worker URL NAME FILE SEED HOLD_MS PAUSE_MS "
                        "contender:MUTEX|locker:MUTEX...\n");
        return 64;
    }
    name = argv[2];
    record = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    first_seed = (unsigned)strtoul(argv[4], NULL, 10);
    hold_ms = (int)strtol(argv[5], NULL, 10);
    pause_ms = (int)strtol(argv[6], NULL, 10);
    if (record < 0 || hold_ms < 1 || pause_ms < 1)
        die("no record, or no HOLD_MS and PAUSE_MS");
    if (simba_open(argv[1], NULL, &client) != 0)
        die(simba_error_text());
    for (int i = 7; i < argc; i++) {
        if (pthread_create(&thread[i - 7], NULL, contend, argv[i]) != 0)
            die("no thread");
    }
    pthread_join(thread[0], NULL);
    return 1;
}
