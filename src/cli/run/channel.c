/* channel.c: messages between keeper and guard, whole or not at all (SOCK_SEQPACKET). */
#include "cli/run/channel.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool channel_send(int fd, const struct message *m, int pass)
{
    union control control;
    /* only START has words in it */
    size_t size = m->kind == MESSAGE_START ? sizeof *m : offsetof(struct message, id);
    struct iovec part = {.iov_base = (void *)(uintptr_t)m, .iov_len = size};
    struct msghdr out = {.msg_iov = &part, .msg_iovlen = 1};
    if (pass >= 0) {
        memset(&control, 0, sizeof control);
        out.msg_control = control.bytes;
        out.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&out);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof pass);
        memcpy(CMSG_DATA(c), &pass, sizeof pass);
    }
    ssize_t n;
    /* Never waiting: a guard that was stopped long ago must not stop its keeper. */
    while ((n = sendmsg(fd, &out, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)size;
}

int channel_receive(int fd, struct message *m, int *passed)
{
    union control control;
    struct iovec part = {.iov_base = m, .iov_len = sizeof *m};
    struct msghdr in = {.msg_iov = &part,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes};
    memset(m, 0, sizeof *m);
    *passed = -1;
    ssize_t n;
    /* ECONNRESET: it went without reading all of ours, but what it said is still there. */
    while ((n = recvmsg(fd, &in, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0 &&
           (errno == EINTR || errno == ECONNRESET))
        ;
    if (n < 0)
        return errno == EAGAIN ? -1 : 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&in);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(c), sizeof *passed);
    return n > 0;
}
