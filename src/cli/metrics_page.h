/* metrics_page.h: what the library has counted, for /metrics. */
#ifndef CLI_METRICS_PAGE_H
#define CLI_METRICS_PAGE_H

#include <simba.h>
#include <stddef.h>

#define METRICS_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* A page for Prometheus, ended by a NUL; free() it. flags as of simba_metrics_prometheus(). NULL: *why says
 * why not, until the next call. */
char *metrics_page(simba_client *client, uint64_t flags, size_t *length, const char **why);
#endif
