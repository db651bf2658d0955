/* service_watchdog.c: see service_watchdog.h.
 *
 * A thread of its own sends the reports, because the main thread waits for the lock for as long as that
 * takes. Before each report it asks the library's loop a question that needs no store. Who asks drives the loop
 * where its own thread does not; but a turn of the loop that hangs leaves it without an answer, and systemd
 * without a report. So does a main loop that does not turn. */
#include "cli/run/service_watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/run/relay.h"

#define LEAST_MS 10
#define MOST_MS 3600000
#define END_MS 1000 /* a loop that hangs does not keep us from ending */

static struct {
    int every_ms; /* 0: nobody asks */
    simba_client *client;
    pthread_mutex_t lock; /* held while the client is used */
    bool is_over;
    _Atomic int64_t turned_at; /* as simba_now(); 0: the main thread is not in its loop */
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* 0: it is no number. */
static unsigned long long number_of(const char *name)
{
    const char *text = secure_getenv(name);
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return 0;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' ? value : 0;
}

void service_watchdog_take(void)
{
    unsigned long long us = number_of("WATCHDOG_USEC");
    bool is_ours = secure_getenv("WATCHDOG_PID") == NULL ||
                   number_of("WATCHDOG_PID") == (unsigned long long)getpid();
    if (us == 0 || !is_ours || secure_getenv("NOTIFY_SOCKET") == NULL)
        return;
    unsigned long long half_ms = us / 2000;
    watchdog.every_ms = half_ms < LEAST_MS ? LEAST_MS : half_ms > MOST_MS ? MOST_MS : (int)half_ms;
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void ignore_handle(void *data, const struct simba_handle_metrics *m)
{
    (void)data;
    (void)m;
}

/* False: it is over. */
static bool report(void)
{
    pthread_mutex_lock(&watchdog.lock);
    bool is_over = watchdog.is_over;
    int rc = is_over ? -1 : simba_metrics_each(watchdog.client, ignore_handle, NULL);
    pthread_mutex_unlock(&watchdog.lock);
    int64_t turned_at = watchdog.turned_at;
    if (rc == 0 && (turned_at == 0 || simba_now() - turned_at <= 2 * (int64_t)watchdog.every_ms))
        relay_notify_alive();
    return !is_over;
}

static void *report_on(void *unused)
{
    (void)unused;
    while (report())
        poll(NULL, 0, watchdog.every_ms);
    return NULL;
}

void service_watchdog_begin(simba_client *client)
{
    pthread_t thread;
    watchdog.client = client;
    if (watchdog.every_ms > 0 && pthread_create(&thread, NULL, report_on, NULL) == 0)
        pthread_detach(thread);
}

void service_watchdog_end(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    if (pthread_mutex_timedlock(&watchdog.lock, &until) != 0)
        return; /* then the client cannot be closed either */
    watchdog.is_over = true;
    pthread_mutex_unlock(&watchdog.lock);
}

int service_watchdog_turn(int ms)
{
    if (watchdog.every_ms == 0)
        return ms;
    watchdog.turned_at = simba_now();
    return ms < watchdog.every_ms ? ms : watchdog.every_ms;
}

void service_watchdog_leave(void)
{
    watchdog.turned_at = 0;
}
