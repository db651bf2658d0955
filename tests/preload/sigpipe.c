/* sigpipe.c: preloaded into a program, it ends the program at the first write to a connection that
 * could raise SIGPIPE there: on a thread that has not blocked the signal, and without MSG_NOSIGNAL.
 * So no connection has to break at the right moment. SIGPIPE_COUNT names a file for the number of
 * writes that were examined. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int examined;

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("SIGPIPE_COUNT");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%d\n", atomic_load(&examined));
    fclose(file);
}

static void examine(int fd, int flags, const char *function)
{
    int type = 0;
    socklen_t size = sizeof type;
    sigset_t blocked;
    if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return;
    atomic_fetch_add(&examined, 1);
    if ((flags & MSG_NOSIGNAL) != 0 ||
        (pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGPIPE)))
        return;
    dprintf(2, "sigpipe: %s to a connection, with SIGPIPE not blocked\n", function);
    abort();
}

ssize_t write(int fd, const void *data, size_t size)
{
    examine(fd, 0, "write");
    return syscall(SYS_write, fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    examine(fd, 0, "writev");
    return syscall(SYS_writev, fd, parts, count);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    examine(fd, flags, "send");
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t to_size)
{
    examine(fd, flags, "sendto");
    return syscall(SYS_sendto, fd, data, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    examine(fd, flags, "sendmsg");
    return syscall(SYS_sendmsg, fd, message, flags);
}
