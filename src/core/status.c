/* status.c: the table of status.h. */
#include "core/status.h"

#include <assert.h>

#define NO SIMBA_ESTATE
static const int table[4][5] = {
    /*                   START           ANSWERED       FAILED         STOP            IDLE */
    [SIMBA_INITIAL] = {SIMBA_STARTING, NO, NO, NO, NO},
    [SIMBA_STARTING] = {NO, SIMBA_RUNNING, SIMBA_INITIAL, SIMBA_STOPPING, NO},
    [SIMBA_RUNNING] = {NO, NO, NO, SIMBA_STOPPING, NO},
    [SIMBA_STOPPING] = {NO, NO, NO, NO, SIMBA_INITIAL},
};

int status_next(enum simba_status status, enum status_event event)
{
    assert(status <= SIMBA_STOPPING);
    assert(event <= STATUS_IDLE);
    return table[status][event];
}

const char *status_name(enum simba_status status)
{
    static const char *const names[] = {"INITIAL", "STARTING", "RUNNING", "STOPPING"};
    assert(status <= SIMBA_STOPPING);
    return names[status];
}
