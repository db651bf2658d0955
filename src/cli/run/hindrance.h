/* hindrance.h: why somebody who waits for a mutex does not get it, though no other owns it: the store
 * is away, or grants nothing for a while. Said once when it begins, and once when it is over. */
#ifndef CLI_RUN_HINDRANCE_H
#define CLI_RUN_HINDRANCE_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>

struct run_options;

struct hindrance {
    bool is_away_said, is_shut_said;
    int64_t away_since;
};

/* As it is now, all zero for one that owns the mutex; NULL would be a bug. left_ms: then we give up
 * unless the store answers; SIMBA_FOREVER: never. */
void hindrance_tell(struct hindrance *h, const struct run_options *opts,
                    const struct simba_trouble *t, int64_t left_ms);

/* How long a store that has never answered is asked, where nobody has said how long. */
struct patience {
    int64_t began, absent_since; /* absent_since 0: it may be there, as was seen */
};
struct patience hindrance_patience(void); /* it begins now */

/* Nothing is there, or it refuses: not slow, full or starting. */
bool hindrance_is_absent(const struct simba_trouble *t);

/* The time that is left: little where nothing is there; more where it is slow, or lets nobody in for
 * now, for then it is busy as a rule. 0: give up. */
int64_t hindrance_left_ms(struct patience *opts, const struct simba_trouble *t);

/* Do exchanges with the store fail? */
bool hindrance_is_away(const struct simba_trouble *t);

/* "nobody may own it for another 12s: the server has just started …"; "": it is not so. */
const char *hindrance_shut_text(const struct simba_trouble *t, char *out, size_t size);
#endif
