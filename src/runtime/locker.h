/* locker.h: what is said about the result of a locker's call. */
#ifndef RUNTIME_LOCKER_H
#define RUNTIME_LOCKER_H

struct actor;
struct call;

/* simba_error_text() of this thread is what the blocking call would have left. */
void locker_say(const struct actor *a, const struct call *call);
#endif
