/* reconnect.c: see reconnect.h. */
#include "backend/kit/reconnect.h"

#include "base/rng.h"

#define FIRST_MS 50
#define DOUBLINGS_MAX 5 /* beyond the longest */
#define LONGEST_MS 1000
#define AT_ONCE_MS 10
#define LASTED_MS 1000
#define LATE_DOUBLINGS_MAX 2

void reconnect_init(struct reconnect *r)
{
    *r = (struct reconnect){.rng = rng_seed()};
}

void reconnect_ready(struct reconnect *r, int64_t now)
{
    r->ready_at = now;
}

int64_t reconnect_pause(struct reconnect *r, int64_t now)
{
    bool lasted = r->ready_at != 0 && now - r->ready_at >= LASTED_MS;
    r->ready_at = 0;
    if (lasted) {
        r->failures = 0;
        return rng_between(&r->rng, 1, AT_ONCE_MS);
    }
    int64_t longest = FIRST_MS << (r->failures < DOUBLINGS_MAX ? r->failures : DOUBLINGS_MAX);
    r->failures++;
    if (longest > LONGEST_MS)
        longest = LONGEST_MS;
    return rng_between(&r->rng, longest / 2, longest);
}

int64_t reconnect_pause_late(struct reconnect *r, int64_t now, int64_t attempt_ms)
{
    int64_t pause = reconnect_pause(r, now);
    unsigned doublings = r->failures < LATE_DOUBLINGS_MAX ? r->failures : LATE_DOUBLINGS_MAX;
    return pause + rng_between(&r->rng, 0, attempt_ms << doublings);
}

bool reconnect_is_hopeful(const struct reconnect *r)
{
    return r->failures == 0;
}
