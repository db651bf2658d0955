/* fuzz_request.c: any bytes as what a client of --listen sends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request_head q;
    char *bytes = malloc(size > 0 ? size : 1); /* of its own, so that a byte too far is seen */
    if (bytes == NULL)
        return 0;
    memcpy(bytes, data, size);
    size_t length = request_length(bytes, size);
    if (length > size)
        abort();
    if (length > 0 && request_parse(bytes, length, &q) == 0 &&
        strlen(q.method) + strlen(q.path) + (q.host != NULL ? strlen(q.host) : 0) > length)
        abort();
    free(bytes);
    return 0;
}
