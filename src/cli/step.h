/* step.h: what a part of a command says to the whole: go on, or end with this exit code. It has a type of
 * its own, so that the compiler tells it from exit codes and from errors of the library. */
#ifndef CLI_STEP_H
#define CLI_STEP_H

#include <stdbool.h>

struct step {
    bool ends; /* what there was to say has been said */
    int code;  /* of an end: how the command exits */
};

#define GO_ON ((struct step){.ends = false})

/* The next part, unless this step ends: step = AND_THEN(step, next_part()). */
#define AND_THEN(step, next) ((step).ends ? (step) : (next))

static inline struct step end_with(int code)
{
    return (struct step){.ends = true, .code = code};
}
#endif
