/* metrics.c: what a client has counted, as text that Prometheus understands.
 *
 *     ./metrics [URL]        acquires a mutex, does some work, prints the metrics
 *
 * A daemon would write the same text into the answer to GET /metrics. One that has several clients
 * opens each with labels of its own, and gives all of them to simba_metrics_prometheus(). */
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    simba_client *client = NULL;
    simba_locker *locker = NULL;
    if (simba_open(argc > 1 ? argv[1] : "memory:", NULL, &client) != 0 ||
        simba_locker_create(client, "example", NULL, &locker) != 0)
        goto err;
    for (int i = 0; i < 3; i++) {
        if (simba_locker_acquire(locker, 10000) != 0 || simba_locker_release(locker) != 0)
            goto err;
    }
    int64_t length = simba_metrics_prometheus(&client, 1, SIMBA_PER_HANDLE, NULL, 0);
    if (length < 0)
        goto err;
    size_t size = (size_t)length + 1024; /* it may grow until the next call */
    char *text = malloc(size);
    if (text == NULL || simba_metrics_prometheus(&client, 1, SIMBA_PER_HANDLE, text, size) < 0)
        goto err;
    fputs(text, stdout);
    free(text);
    return simba_close(client, 10000) == 0 ? 0 : 1;

err:
    fprintf(stderr, "metrics: %s\n", simba_error_text());
    return 1;
}
