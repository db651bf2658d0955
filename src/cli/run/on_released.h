/* on_released.h: the command of --on-released, without a guard. */
#ifndef CLI_RUN_ON_RELEASED_H
#define CLI_RUN_ON_RELEASED_H

#include <stdint.h>

struct plan;

/* Runs it for the tenure that we still own, and kills it if it has not ended by then. */
void on_released_run(const struct plan *p, const char *id, uint64_t token, int64_t until);
#endif
