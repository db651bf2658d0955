/* notify.h: tells systemd, or whoever started us with NOTIFY_SOCKET, how we are. */
#ifndef CLI_NOTIFY_H
#define CLI_NOTIFY_H

void notify_service_manager(const char *state); /* such as "READY=1" */
#endif
