/* service_watchdog.h: systemd's WatchdogSec=, which watches simba itself: WATCHDOG=1 is sent at half of
 * WATCHDOG_USEC, as long as the main loop and the library's loop get on. */
#ifndef CLI_RUN_SERVICE_WATCHDOG_H
#define CLI_RUN_SERVICE_WATCHDOG_H

#include <simba.h>

/* Before anything is forked: asks the environment, and takes it out of there, for CMD is not meant. */
void service_watchdog_take(void);

void service_watchdog_begin(simba_client *client); /* when threads may be */
void service_watchdog_end(void);                   /* before the client is closed */

/* The main loop: each turn; the next is due in at most so many of these ms. When it is left, it is not
 * awaited any more. */
int service_watchdog_turn(int ms);
void service_watchdog_leave(void);
#endif
