/* address.h: where a server listens. */
#ifndef CLI_HTTP_ADDRESS_H
#define CLI_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include "cli/http/http.h"

#define SOCKETS_MAX 8 /* a name may have several addresses */

struct address {
    char text[HTTP_ADDRESS_MAX]; /* to show: as http_address() says it */
    char host[HTTP_ADDRESS_MAX]; /* "": none was given, or a socket file */
    char port[8];
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": no socket file */
    int sockets[SOCKETS_MAX];
    size_t count;
    bool is_everywhere; /* on every address of the machine */
    bool is_bound;      /* there is a socket file to be removed, if it is still ours: this one */
    dev_t device;
    ino_t inode;
};

/* NULL, or what is wrong with the text. */
const char *address_parse(struct address *a, const char *text);

/* Binds and listens. NULL, or why not and what to do (until the next call). */
const char *address_listen(struct address *a);

void address_close(struct address *a);
#endif
