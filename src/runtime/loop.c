/* loop.c: the descriptors that a client waits for.
 *
 * libuv's own timers stand still during suspend; the alarm is a timerfd that does not. An eventfd
 * wakes whoever is inside of libuv. The gate is an epoll descriptor that watches libuv's. */
#include "runtime/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"

/* ---- waking -------------------------------------------------------------------------------- */

void loop_wake_locked(struct simba_client *s)
{
    atomic_fetch_add(&s->loop.wakers, 1);
}

void loop_wake(struct simba_client *s)
{
    static const uint64_t one = 1;
    /* Not write(), where a thread can be cancelled. It can only fail because it is readable
     * already. */
    syscall(SYS_write, s->loop.wake_fd, &one, sizeof one);
    if (atomic_fetch_sub(&s->loop.wakers, 1) == 1)
        futex_wake(&s->loop.wakers);
}

void loop_close_wake(struct simba_client *s)
{
    for (uint32_t n; (n = atomic_load(&s->loop.wakers)) != 0;)
        futex_wait(&s->loop.wakers, n, NEVER);
    close(s->loop.wake_fd);
}

static void read_count(int fd)
{
    uint64_t times;
    ssize_t n = read(fd, &times, sizeof times);
    (void)n; /* the turn that follows does the work */
}

static void on_wake(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    read_count(((struct simba_client *)handle->data)->loop.wake_fd);
}

static void on_alarm(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct simba_client *s = handle->data;
    read_count(s->loop.alarm_fd);
    driver_lock(s);
    s->inbox.alarmed = true;
    driver_unlock(s);
}

void loop_set_alarm(struct simba_client *s, int64_t at)
{
    if (at >= s->loop.alarm_at) /* it comes too early then, and is set anew */
        return;
    s->loop.alarm_at = at;
    struct itimerspec when = {.it_value = {at / 1000000000, at % 1000000000}};
    if (at <= 0) /* zero would switch it off */
        when.it_value = (struct timespec){.tv_nsec = 1};
    int rc = timerfd_settime(s->loop.alarm_fd, TFD_TIMER_ABSTIME, &when, NULL);
    assert(rc == 0);
}

/* ---- the gate ------------------------------------------------------------------------------ */

void loop_shut_gate(struct simba_client *s, bool shut)
{
    struct epoll_event e = {.events = shut ? 0 : EPOLLIN};
    epoll_ctl(s->loop.gate_fd, EPOLL_CTL_MOD, uv_backend_fd(&s->loop.uv), &e);
}

void loop_wait_at_gate(struct simba_client *s, int timeout_ms)
{
    struct epoll_event event;
    epoll_wait(s->loop.gate_fd, &event, 1, timeout_ms);
}

int loop_timeout(struct simba_client *s)
{
    uv_update_time(&s->loop.uv);
    return uv_backend_timeout(&s->loop.uv);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* With the first loop of a process libuv makes a pipe, and aborts where it cannot. So this tries
 * whether as many descriptors are to be had. 0 or an errno. */
static int try_descriptors(void)
{
    int fd[4];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return errno;
    int error = pipe2(fd + 2, O_CLOEXEC) != 0 ? errno : 0;
    for (int i = 0; i < (error == 0 ? 4 : 2); i++)
        close(fd[i]);
    return error;
}

static int open_gate(struct loop *l)
{
    struct epoll_event e = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, uv_backend_fd(&l->uv), &e) != 0) {
        close(fd); /* which leaves errno alone */
        return -1;
    }
    return fd;
}

/* 0 or an errno. */
static int open_descriptors(struct loop *l)
{
    int error = try_descriptors();
    if (error == 0)
        error = -uv_loop_init(&l->uv);
    if (error != 0)
        return error;
    l->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->alarm_fd < 0)
        goto err_after_uv;
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0)
        goto err_after_alarm;
    l->gate_fd = open_gate(l);
    if (l->gate_fd < 0)
        goto err_after_wake;
    return 0;

err_after_wake:
    close(l->wake_fd);
err_after_alarm:
    close(l->alarm_fd);
err_after_uv:
    error = errno;
    uv_loop_close(&l->uv);
    return error;
}

static void listen_to(struct simba_client *s, uv_poll_t *handle, int fd, uv_poll_cb on_readable)
{
    int rc = uv_poll_init(&s->loop.uv, handle, fd);
    assert(rc == 0);
    handle->data = s;
    uv_poll_start(handle, UV_READABLE, on_readable);
}

int loop_init(struct simba_client *s)
{
    struct loop *l = &s->loop;
    l->alarm_at = NEVER;
    int error = open_descriptors(l);
    if (error != 0)
        return error;
    listen_to(s, &l->wake, l->wake_fd, on_wake);
    listen_to(s, &l->alarm, l->alarm_fd, on_alarm);
    return 0;
}

void loop_close_handles(struct simba_client *s)
{
    uv_close((uv_handle_t *)&s->loop.wake, NULL);
    uv_close((uv_handle_t *)&s->loop.alarm, NULL);
}

void loop_end(struct simba_client *s)
{
    int rc = uv_loop_close(&s->loop.uv);
    assert(rc == 0);
    close(s->loop.alarm_fd);
    close(s->loop.gate_fd);
}
