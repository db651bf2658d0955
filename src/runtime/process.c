/* process.c: ids, and standard files that are closed.
 *
 * A forked child inherits what its parent has drawn, and would make the same "random" ids. So that
 * is kept where it finds nothing. */
#include "runtime/process.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <simba.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fork.h"
#include "core/id.h"
#include "runtime/error.h"

#define ADDRESSES_MAX 16 /* those of more interfaces are not looked at */

/* Of this process; NULL: out of memory when the library was loaded. */
static struct ids {
    pthread_mutex_t lock; /* for the rest */
    bool drawn;
    uint32_t random;
    uint64_t counter;
    char address[INET6_ADDRSTRLEN];
    char name[ID_HOST_MAX + 1]; /* of the host; "": none that can be shown */
} * ids;

__attribute__((constructor)) static void take_room(void)
{
    ids = fork_wiped(sizeof *ids);
}

void process_hold_stdio(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int got = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        if (got > STDERR_FILENO) /* another thread was faster */
            close(got);
    }
}

static void draw(void *out, size_t size)
{
    unsigned char *at = out;
    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        assert(n > 0);
        at += n;
        size -= (size_t)n;
    }
}

/* The first address that others could know us by; the loopback one if there is no other. One
 * call to the kernel: getifaddrs() takes ten times as long, which shows in a command that runs
 * for two milliseconds. */
static void find_address(char *out, size_t size)
{
    struct ifreq all[ADDRESSES_MAX] = {0};
    struct ifconf list = {.ifc_len = sizeof all, .ifc_req = all};
    struct in_addr found = {htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && ioctl(fd, SIOCGIFCONF, &list) == 0) { /* IPv4, of interfaces that are up */
        for (size_t i = (size_t)list.ifc_len / sizeof *all; i-- > 0;) {
            struct sockaddr_in in;
            memcpy(&in, &all[i].ifr_addr, sizeof in);
            if (ntohl(in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
                found = in.sin_addr;
        }
    }
    if (fd >= 0)
        close(fd);
    inet_ntop(AF_INET, &found, out, (socklen_t)size);
}

static void find_name(char out[ID_HOST_MAX + 1])
{
    struct utsname u;
    id_host_name(out, uname(&u) == 0 ? u.nodename : "");
}

int process_make_id(char *out, size_t size, bool is_short)
{
    struct ids *p = ids;
    if (p == NULL)
        return error_say(SIMBA_ELIMIT, "out of memory when the library was loaded");
    pthread_mutex_lock(&p->lock);
    if (!p->drawn) {
        draw(&p->random, sizeof p->random);
        find_address(p->address, sizeof p->address);
        find_name(p->name);
        p->drawn = true;
    }
    int rc =
        id_host(out, size, p->counter++, getpid(), is_short ? "" : p->name, p->address, p->random);
    pthread_mutex_unlock(&p->lock);
    if (rc < 0)
        return error_say(rc, "an id needs room for %d bytes", SIMBA_ID_MAX + 1);
    return 0;
}

int simba_id_host(char *out, size_t size)
{
    if (out == NULL)
        return error_say(SIMBA_EINVAL, "simba_id_host needs a place for the id");
    return process_make_id(out, size, false);
}

int simba_id_uuid(char *out, size_t size)
{
    if (out == NULL)
        return error_say(SIMBA_EINVAL, "simba_id_uuid needs a place for the id");
    uint8_t random[16];
    draw(random, sizeof random);
    int rc = id_uuid(out, size, random);
    if (rc < 0)
        return error_say(rc, "an id needs room for %d bytes", SIMBA_ID_MAX + 1);
    return 0;
}
