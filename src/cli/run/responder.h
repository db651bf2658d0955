/* responder.h: answers a few fixed GETs and HEADs, for --listen. It knows of HTTP what checks of health,
 * Prometheus and a curious browser need, and no more; simba serve has a real server.
 *
 * Threads: one, made by responder_start(), does all of it: it accepts, reads, asks for the answers and
 *   writes. An answer must not wait for anything but shortly: while it does, nobody else is answered.
 *   Nothing here ever waits for a client. Limits: those of cli/http_rules.h. */
#ifndef CLI_RUN_RESPONDER_H
#define CLI_RUN_RESPONDER_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/address.h"
#include "cli/http_rules.h"

struct responder;

struct response {
    int status;
    const char *type;
    char *body; /* given, and free()d; NULL: there is no answer, 500 */
    size_t length;
};

/* Called on the responder's thread; data is that of responder_start(). Between its return and the first
 * byte of the answer there is nothing but the responder's own work. */
typedef void respond_fn(void *data, struct response *out);

struct responder_route {
    const char *path;
    respond_fn *respond;
};

/* As address_open(). */
struct step responder_open(const struct cli *c, const char *option, bool by_flag,
                           const char *address, struct responder **out);
const struct listen_address *responder_address(const struct responder *r);

/* Begins to answer. routes: up to one with path NULL; they and hosts, which is that of address_allows(),
 * are borrowed while it runs. The limit of descriptors may be raised: whoever is spawned later is to get
 * the one of before. */
struct step responder_start(struct responder *r, const struct responder_route *routes, void *data,
                            const char *hosts);

/* Ends the thread and all connections, removes a socket file, frees r. NULL: does nothing. */
void responder_stop(struct responder *r);
#endif
