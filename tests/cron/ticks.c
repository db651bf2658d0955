/* ticks.c: the next ticks of cron expressions, for tests/cron/compare. Each line of stdin is ZONE,
 * AFTER (ms since 1970) and EXPRESSION, separated by tabs; the answer is the next four ticks, or
 * "refused". */
#include <inttypes.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICKS 4

static void answer(char *line)
{
    struct simba_schedule s = SIMBA_SCHEDULE_INIT;
    char *rest = line, *zone = strsep(&rest, "\t"), *after = strsep(&rest, "\t");
    int64_t tick = after != NULL ? strtoll(after, NULL, 10) : 0;
    s.pace = SIMBA_CRON;
    s.cron = rest;
    s.zone = zone;
    for (int i = 0; i < TICKS; i++) {
        if (simba_schedule_next(&s, tick, &tick, NULL) != 0) {
            puts("refused");
            return;
        }
        printf("%" PRId64 "%c", tick, i + 1 < TICKS ? ' ' : '\n');
    }
}

int main(void)
{
    char line[512];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        answer(line);
    }
    return 0;
}
