/* watch.h: simba watch, which simba runs, and with --record simba-serve. */
#ifndef CLI_COMMANDS_WATCH_H
#define CLI_COMMANDS_WATCH_H

#include "cli/commands/commands.h"

struct follow;
struct seen_tenure;

/* What is done with tenures. */
struct recording {
    struct step (*open)(const struct cli *c, const char *path,
                        int64_t keep_ms); /* keep_ms 0: as usual */
    /* Of these mutexes, or (count 0) of all; `over` is an eventfd, which is written to when the file is gone. */
    struct step (*begin)(struct follow *f, char *const *names, size_t count, int over);
    void (*add)(struct seen_tenure *t); /* under the lock of f */
    bool (*is_gone)(void);
    void (*end)(void);
};

/* recording NULL: --record is for simba-serve, which is started. The exit code. */
int watch(struct cli *c, const struct recording *recording);
#endif
