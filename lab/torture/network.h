/* network.h: the ways of the workers to the servers, each through a proxy of ours. */
#ifndef LAB_TORTURE_NETWORK_H
#define LAB_TORTURE_NETWORK_H

#include "lab/torture/torture.h"

/* Which servers the URL names. Where there is none that a proxy can stand before, no fault of the
 * network is left in t->faults. */
void network_find(struct torture *t);

/* Starts a proxy for each, if they are needed. */
struct step network_start(struct torture *t);

/* In a child: its URL leads through its own routes. */
void network_take_route(const struct torture *t, unsigned worker);

/* A fault of that worker's connections begins, or with FAULT_KINDS ends. False: a proxy is gone. */
bool network_set(const struct torture *t, unsigned worker, enum fault fault, int64_t amount);

void network_stop(struct torture *t);
#endif
