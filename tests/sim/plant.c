/* plant.c: switches on one of the bugs of core/planted.h, in the build that has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"
#include "world.h"

#ifdef SIMBA_PLANTED
enum planted planted_bug;

bool plant(const char *name)
{
#define PLANTED_X(bug, text) {#bug, text},
    static const struct {
        const char *name, *text;
    } bugs[] = {PLANTED_BUGS(PLANTED_X)};
#undef PLANTED_X
    bool list = strcmp(name, "list") == 0;
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        if (list)
            printf("%-22s %s\n", bugs[i].name, bugs[i].text);
        else if (strcmp(bugs[i].name, name) == 0)
            planted_bug = (enum planted)(i + 1);
    }
    if (list)
        exit(0);
    return planted_bug != PLANTED_NONE;
}
#else
bool plant(const char *name)
{
    fprintf(stderr, "this build has no planted bugs, so not %s either: see make mutants\n", name);
    return false;
}
#endif
