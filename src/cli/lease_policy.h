/* lease_policy.h: what follows from a lease for people, and for commands that run under one. Pure. */
#ifndef CLI_LEASE_POLICY_H
#define CLI_LEASE_POLICY_H

#include <stdint.h>

struct period;

/* The store may be away for so long at the worst moment, right before a renewal, and no tenure
 * ends. */
int64_t policy_outage(const struct period *p);

/* When another owns it at the latest, from the last renewal of one that has died; the store
 * keeps the lease for that long. An exchange comes on top. */
int64_t policy_takeover(const struct period *p, int64_t lease);

/* How long before the end of the right to act a command is asked to end, before it is killed: by
 * default, and at most, so that a renewal has a chance before. */
int64_t policy_kill_after(int64_t ttl, int64_t transition);
int64_t policy_kill_after_max(int64_t ttl, int64_t transition);
#endif
