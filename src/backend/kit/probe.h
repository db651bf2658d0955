/* probe.h: why no connection can be made, where a client library does not say it. Blocks: for a
 * thread of its own. */
#ifndef BACKEND_KIT_PROBE_H
#define BACKEND_KIT_PROBE_H

#include <stddef.h>

/* Tries to connect to host and port, or to the socket at path if that is not NULL. 0: a connection can
 * be made, so the reason is another; else an errno, EHOSTUNREACH for a name that is unknown, and
 * `why` is written, as in "cannot connect to HOST:PORT: Connection refused". */
int probe_explain(const char *host, int port, const char *path, int timeout_ms, char *why,
                  size_t why_size);
#endif
