/* plan.c: what the commands that run others have in common, before anything is run. */
#include <fcntl.h>
#include <unistd.h>

#include "lock.h"

#define KILL_AFTER_MOST_MS 3000 /* by default; a fifth of the lease if that is less */
#define MARGIN_MOST_MS 1000

/* The lease is renewed at half the ttl; CMD must not be told to end before that had a chance. */
int plan_kill_after(struct plan *p, const char *option)
{
    const struct cli *c = p->c;
    int64_t lease = c->ttl_ms + c->transition_ms, ms = lease / 5;
    if (ms > KILL_AFTER_MOST_MS)
        ms = KILL_AFTER_MOST_MS;
    if (option != NULL) {
        int code = take_duration(c, "--kill-after", option, &ms);
        if (code >= 0)
            return code;
        int64_t most = lease * 8 / 10 - c->ttl_ms / 2 - c->ttl_ms / 8;
        if (ms > most)
            return usage(c,
                         "--kill-after %s leaves no time to renew the lease: at most %lldms with "
                         "this ttl and transition",
                         option, (long long)most);
    }
    p->kill_after = ms * NS_PER_MS;
    return -1;
}

/* As docs/guarantees.md has it. */
int64_t lease_margin(const struct cli *c)
{
    int64_t lease = c->ttl_ms + c->transition_ms;
    int64_t ms = c->transition_ms / 4 > lease / 10 ? c->transition_ms / 4 : lease / 10;
    return (ms < MARGIN_MOST_MS ? ms : MARGIN_MOST_MS) * NS_PER_MS;
}

void open_stdio(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR);
    }
}
