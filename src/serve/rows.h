/* rows.h: what simba serve knows, as JSON. */
#ifndef SERVE_ROWS_H
#define SERVE_ROWS_H

#include "serve/model.h"

/* A mutex; NULL: nobody owns it or waits for it any more. */
void row_write(struct json_buffer *t, const struct followed *f, const char *mutex, uint64_t change);

/* Whether the store answers, and if not, why, and since when. */
void store_write(const struct model *m, struct json_buffer *t);
#endif
