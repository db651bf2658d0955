/* duration.h: lengths of time as people write them. */
#ifndef CORE_DURATION_H
#define CORE_DURATION_H

#include <stdint.h>

/* Digits, optionally a point and more digits, then ms, s, m, h or nothing (seconds). On failure
 * SIMBA_EINVAL and the broken rule in *why (a constant sentence). No sign, blank or exponent; finer
 * than a millisecond or longer than ten years is an error, never rounded. */
int duration_parse(const char *text, int64_t *ms, const char **why);
#endif
