/* check.h: the command of --check, which the guard runs again and again to see whether all is well. */
#ifndef CLI_RUN_CHECK_H
#define CLI_RUN_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_options;
struct cmd_tenure;

struct check {
    const struct run_options *opts;
    pid_t pid;       /* 0: it does not run */
    int64_t began;   /* the last run */
    int64_t next_at; /* the next is due, and the last has to be over; 0: none is to be run */
    bool is_late;    /* it was killed because of that … */
    bool is_dropped; /* … or because nobody needs it */
    int failures;    /* in a row */
    int error;       /* it could not be run */
    int status;      /* of the last that has failed */
};

void check_begin(struct check *c);
void check_end(struct check *c);
void check_drop(struct check *c); /* kills the run that is on: it shows nothing */

/* At next_at. live: as for spawn_command(). False: it cannot be run. */
bool check_tick(struct check *c, const struct cmd_tenure *t, int live);

/* After SIGCHLD, before others are waited for. */
enum check_result { CHECK_NONE, CHECK_PASSED, CHECK_FAILED };
enum check_result check_reap(struct check *c);

/* "--check 'curl …' ended with status 22" */
#define CHECK_TEXT_MAX 192
const char *check_explain(const struct check *c, char out[CHECK_TEXT_MAX]);
#endif
