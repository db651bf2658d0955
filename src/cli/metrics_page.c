/* metrics_page.c: see metrics_page.h. The library is asked once, if the page fits: each time, it may have to
 * wait for its loop. */
#include "cli/metrics_page.h"

#include <stdlib.h>

#include "cli/cli.h"

#define FIRST_BYTES ((size_t)64 * 1024) /* more than the page of a command */
#define SPARE_BYTES 4096                /* it may grow between two calls */

char *metrics_page(simba_client *client, uint64_t flags, size_t *length, const char **why)
{
    size_t size = FIRST_BYTES;
    for (;;) {
        char *page = malloc(size);
        int64_t n = page != NULL ? simba_metrics_prometheus(&client, 1, flags, page, size) : 0;
        if (page == NULL || n < 0) {
            *why = page == NULL ? "out of memory" : simba_error_text();
            free(page);
            return NULL;
        }
        if ((size_t)n < size) {
            *length = (size_t)n;
            return page;
        }
        free(page);
        size = (size_t)n + SPARE_BYTES;
    }
}
