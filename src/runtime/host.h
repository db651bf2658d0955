/* host.h: what a store may call. */
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

struct simba;
struct simba_request;

void host_init(struct simba *s);
void host_cancel(struct simba *s, struct simba_request *batch); /* the store has gone */
#endif
