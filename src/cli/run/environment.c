/* environment.c: see environment.h. */
#include "cli/run/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_VARIABLES 5

static const char *const names[OWN_VARIABLES] = {
    "SIMBA_MUTEX=", "SIMBA_CONTENDER_ID=", "SIMBA_STORE=", "SIMBA_FENCING_TOKEN=", "SIMBA_REASON="};

static bool is_own(const char *variable)
{
    for (size_t i = 0; i < OWN_VARIABLES; i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

char **environment_make(const struct environment *e)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)e->token);
    const char *const values[OWN_VARIABLES] = {e->mutex, e->id, e->store, number, e->reason};
    size_t count = OWN_VARIABLES + 1, n = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        count++;
    char **all = calloc(count, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < OWN_VARIABLES; i++) {
        if (values[i] == NULL)
            continue;
        if (asprintf(&all[n], "%s%s", names[i], values[i]) < 0) {
            all[n] = NULL;
            environment_free(all);
            return NULL;
        }
        n++;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        if (!is_own(*variable))
            all[n++] = *variable;
    }
    return all;
}

void environment_free(char **all)
{
    for (char **variable = all; all != NULL && *variable != NULL; variable++) {
        if (is_own(*variable))
            free(*variable);
    }
    free(all);
}
