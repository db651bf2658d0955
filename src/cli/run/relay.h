/* relay.h: a keeper with nothing below it but its guard and CMD's tree. */
#ifndef CLI_RUN_RELAY_H
#define CLI_RUN_RELAY_H

#include <stdbool.h>

struct cli;

/* Before guard_fork(): makes sure that nobody but the guard and CMD's tree comes below this
 * process. Where there may be others it is a new process that returns, while the old one waits
 * for its end and never returns. false: errno. */
bool relay_fork(struct cli *c);

void relay_notify_ready(void); /* tells systemd, if it asked to be told */
void relay_notify_alive(void); /* the same: WATCHDOG=1 */
#endif
