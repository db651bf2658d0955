/* figures.h: how many tenures ended, and how many of them were lost, in the last minutes to hours. They are counted when
 * they end, so that the figures are right also where a page, or the memory, keeps only some of the tenures. */
#ifndef SERVE_FIGURES_H
#define SERVE_FIGURES_H

#include "base/json.h"
#include "cli/follow.h"

#define FIGURES_SPAN_MS (INT64_C(24) * 3600 * 1000) /* nothing older is counted */
#define FIGURES_SLOT_MS 15000                       /* so exact they are */
#define FIGURES_SLOTS (FIGURES_SPAN_MS / FIGURES_SLOT_MS + 1)

struct figures_slot {
    int64_t number; /* since 1970 */
    uint64_t ended, lost;
};

/* All zero: nothing was counted. */
struct figures {
    struct figures_slot slots[FIGURES_SLOTS];
};

/* A tenure that is over. */
void figures_count(struct figures *f, const struct seen_tenure *t);

/* "figures": for 15 min, 1 h, 6 h and 24 h before the wall time given. */
void figures_write(const struct figures *f, int64_t now_ms, struct json_buffer *t);
#endif
