/* endpoint.h: the servers that the URL of a store names, and the same URL through proxies. */
#ifndef LAB_TORTURE_ENDPOINT_H
#define LAB_TORTURE_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "lab/torture/proxy.h"

#define ENDPOINTS_MAX 16

struct endpoints {
    struct endpoint at[ENDPOINTS_MAX];
    size_t count;    /* 0: no proxy can stand before this store, `limit` says why */
    char limit[256]; /* what network faults do not reach, a phrase for people; "": they reach all */
};

/* The URL has been opened before, so that it is well formed. */
void endpoints_find(const char *url, struct endpoints *out);

/* Writes the URL of those endpoints with 127.0.0.1 and ports[i] in place of the i-th. A user, a
 * password, the options and TLS stay as they are. 0, or -1: it needs more than `size` bytes. */
int endpoints_rewrite(const char *url, const uint16_t *ports, char *out, size_t size);

#endif
