/* progress.h: is CMD getting on with its work? With --progress D somebody has to say so at least that
 * often: CMD itself, in the protocol of sd_notify(3), or a command that is run to see (check.h).
 * Of the guard; the keeper reads running->progress_until, for the case that the guard hangs. */
#ifndef CLI_RUN_PROGRESS_H
#define CLI_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct run_options;

struct progress {
    const struct run_options *opts;
    int fd;            /* CMD reports here; -1: it does not */
    char address[48];  /* the same, as NOTIFY_SOCKET has it */
    int64_t limit;     /* of silence; CMD may change it */
    int64_t since;     /* the last report, or the beginning */
    bool has_reported; /* since the beginning */
    bool has_failed;   /* it says so itself */
    unsigned ignored;  /* so many messages were not from CMD's tree */
};

/* Before any CMD. False: see errno. */
bool progress_open(struct progress *x, const struct run_options *opts);

void progress_begin(struct progress *x); /* from now on it is asked for … */
void progress_end(struct progress *x);   /* … and no more */
void progress_report(struct progress *x, int64_t at);

/* When it is too late; 0: it is not asked for. */
int64_t progress_due_at(const struct progress *x);

/* Takes what was sent. True: so much that the sender has to wait. */
bool progress_read(struct progress *x);

/* "CMD has reported no progress for 30s (…)" */
#define PROGRESS_TEXT_MAX 192
const char *progress_explain(const struct progress *x, char out[PROGRESS_TEXT_MAX]);
#endif
