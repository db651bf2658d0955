/* notify.h: tells systemd that we are ready, if it asked to be told. */
#ifndef CLI_RUN_NOTIFY_H
#define CLI_RUN_NOTIFY_H

void notify_service_manager(const char *state);

/* From now on another process of ours tells it, because systemd listens to the one that it started. */
void notify_through(int fd);
#endif
