/* progress.c: see progress.h. The socket is an abstract one: it has no file that somebody would
 * have to remove, it is gone with the guard, and a CMD that has changed its user reaches it. So
 * does everybody else on the machine, and therefore only the tree counts: the kernel says who has
 * sent a message. Descriptors that come with one are never received, because there is no room for
 * them: the kernel closes them at once, which is what BARRIER=1 waits for. */
#include "cli/run/progress.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run/process_tree.h"
#include "cli/run/run_options.h"
#include "cli/shown.h"

#define MESSAGE_BYTES 4096        /* as systemd has it; a longer one is not looked at */
#define BATCH 512                 /* so many, then the guard has other things to do */
#define OFTEN_NS (10 * NS_PER_MS) /* more often than that nobody has to look who it was */

struct report {
    bool is_alive, has_failed;
    int64_t limit, extend; /* 0: not said */
};

static int64_t nanoseconds(const char *microseconds)
{
    char *end;
    unsigned long long us = strtoull(microseconds, &end, 10);
    if (*microseconds < '0' || *microseconds > '9' || *end != '\0')
        return 0;
    return us < PROGRESS_MAX_MS * 1000 ? (int64_t)us * 1000 : PROGRESS_MAX_MS * NS_PER_MS;
}

static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 ? line + length : NULL;
}

static void take_line(struct report *r, const char *line)
{
    const char *limit = value_of(line, "WATCHDOG_USEC=");
    const char *extend = value_of(line, "EXTEND_TIMEOUT_USEC=");
    if (strcmp(line, "WATCHDOG=1") == 0)
        r->is_alive = true;
    else if (strcmp(line, "WATCHDOG=trigger") == 0)
        r->has_failed = true;
    else if (limit != NULL)
        r->limit = nanoseconds(limit);
    else if (extend != NULL)
        r->extend = nanoseconds(extend);
}

static struct report parse(char *text)
{
    struct report r = {.is_alive = false};
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        take_line(&r, line);
    return r;
}

/* Each report counts anew: the last one says how long there may be silence after it. */
static void take(struct progress *x, const struct report *r, int64_t now)
{
    if (r->limit > 0)
        x->limit = r->limit;
    progress_report(x, now);
    if (r->extend > 0)
        *x->opts->running->progress_until = now + r->extend;
    if (r->has_failed) {
        x->has_failed = true;
        *x->opts->running->progress_until = now;
    }
}

static void on_message(struct progress *x, char *text, pid_t sender)
{
    struct report r = parse(text);
    int64_t now = clock_now();
    bool is_only_alive = r.is_alive && !r.has_failed && r.limit == 0 && r.extend == 0;
    bool says_nothing = !r.is_alive && !r.has_failed && r.limit == 0 && r.extend == 0;
    if (progress_due_at(x) == 0 || x->has_failed || says_nothing ||
        (is_only_alive && x->has_reported && now - x->since < OFTEN_NS))
        return;
    if (process_tree_has(sender))
        take(x, &r, now);
    else
        x->ignored++;
}

/* Who has sent it; 0: nobody of our process namespace; -1: there is none. */
static pid_t receive(int fd, char text[MESSAGE_BYTES + 1], bool *is_whole)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = MESSAGE_BYTES};
    struct msghdr in = {.msg_iov = &part,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes};
    struct ucred sender = {.pid = 0};
    ssize_t n = recvmsg(fd, &in, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -1;
    text[n] = '\0';
    *is_whole = (in.msg_flags & MSG_TRUNC) == 0;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&in);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(c), sizeof sender);
    return sender.pid;
}

bool progress_read(struct progress *x)
{
    char text[MESSAGE_BYTES + 1];
    bool is_whole;
    for (int i = 0; x->fd >= 0 && i < BATCH; i++) {
        pid_t sender = receive(x->fd, text, &is_whole);
        if (sender < 0)
            return false;
        if (is_whole)
            on_message(x, text, sender);
    }
    return x->fd >= 0;
}

/* ---- what it comes to ---------------------------------------------------------------------- */

bool progress_open(struct progress *x, const struct run_options *opts)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    uint64_t number;
    int on = 1;
    *x = (struct progress){.opts = opts, .fd = -1};
    if (opts->progress == 0 || opts->check != NULL)
        return true;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return false;
    snprintf(x->address, sizeof x->address, "@simba-%d-%016llx", (int)getpid(),
             (unsigned long long)number);
    size_t length = strlen(x->address);
    memcpy(at.sun_path + 1, x->address + 1, length - 1);
    x->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return x->fd >= 0 && setsockopt(x->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
           bind(x->fd, (struct sockaddr *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0;
}

void progress_begin(struct progress *x)
{
    x->limit = x->opts->progress;
    x->has_reported = x->has_failed = false;
    x->ignored = 0;
    if (x->limit == 0)
        return;
    x->since = clock_now();
    *x->opts->running->progress_until = x->since + x->limit;
}

void progress_end(struct progress *x)
{
    *x->opts->running->progress_until = 0;
}

void progress_report(struct progress *x, int64_t at)
{
    x->has_reported = true;
    x->since = at;
    *x->opts->running->progress_until = at + x->limit;
}

int64_t progress_due_at(const struct progress *x)
{
    return *x->opts->running->progress_until;
}

const char *progress_explain(const struct progress *x, char out[PROGRESS_TEXT_MAX])
{
    char since[24], ignored[64] = "";
    show_duration((clock_now() - x->since) / NS_PER_MS, since);
    if (x->ignored > 0)
        snprintf(ignored, sizeof ignored, "; ignored: %u messages of processes that are not CMD's",
                 x->ignored);
    if (x->has_failed)
        snprintf(out, PROGRESS_TEXT_MAX, "CMD says that it has failed (WATCHDOG=trigger)");
    else if (x->has_reported)
        snprintf(out, PROGRESS_TEXT_MAX,
                 "CMD has reported no progress for %s (WATCHDOG=1 on NOTIFY_SOCKET%s)", since,
                 ignored);
    else
        snprintf(out, PROGRESS_TEXT_MAX,
                 "CMD has reported no progress since it began, %s ago (WATCHDOG=1 on "
                 "NOTIFY_SOCKET%s)",
                 since, ignored);
    return out;
}
