/* votes.h: how the answers of the sentinels are counted (sentinel.h says why so), and what is wrong
 * with them. */
#ifndef BACKEND_REDIS_VOTES_H
#define BACKEND_REDIS_VOTES_H

#include "backend/redis/sentinel.h"

size_t votes_known(const struct sentinels *a);  /* sentinels */
size_t votes_needed(const struct sentinels *a); /* a majority of them */

/* How many name that master, in an answer of that round or a later one, and have done so for that
 * time; 0 if any of them knows a later term. */
size_t votes_count(const struct sentinels *a, const struct redis_address *master, int64_t term,
                   uint64_t round, int64_t vouched_ms);
size_t votes_awaited(const struct sentinels *a, uint64_t round); /* may still answer in it */

/* For how long as many as are needed have named the master, as far as is known before they are
 * asked again. */
int64_t votes_vouched_ms(const struct sentinels *a, int64_t now);

/* Which other address leads to it. */
void votes_say_same(const struct sentinel *s, char *line, size_t size);

/* Why they are too few. */
void votes_object(const struct sentinels *a, int64_t vouched_ms, char *why, size_t size);

/* The n-th reason for which two may own a mutex. False: there are no more. */
bool votes_warn(const struct sentinels *a, size_t n, char *line, size_t size);
#endif
