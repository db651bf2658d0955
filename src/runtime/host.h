/* host.h: what a store may call. */
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

struct simba_client;
struct simba_request;

void host_init(struct simba_client *s);
void host_cancel(struct simba_client *s, struct simba_request *batch); /* the store has gone */
#endif
