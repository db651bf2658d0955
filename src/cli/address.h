/* address.h: where a server listens, and whom it lets in. */
#ifndef CLI_ADDRESS_H
#define CLI_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define HTTP_ADDRESS_MAX 256
#define SOCKETS_MAX 8 /* a name may have several addresses */

struct listen_address {
    char text
        [HTTP_ADDRESS_MAX]; /* to show: "http://127.0.0.1:8080", with the port as the system has chosen it,
                                    also on every address of the machine; "unix:/run/x.sock" */
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

struct cli;

/* What is wrong with an address, before anything is bound; NULL: nothing. */
const char *address_check(const char *text);

/* Takes an address: [HOST]:PORT, where no HOST is 127.0.0.1 and * or [::] is every address of the
 * machine; unix:PATH, a socket. PORT 0: the system chooses. Binds and listens, so that from here on
 * connections wait; to be called after every fork, since a child would keep the address.
 * The end is EXIT_USAGE for what is no address if by_flag, else EXIT_TROUBLE. `option` names where it comes from, as in "--listen". */
struct step address_open(struct listen_address *a, const struct cli *c, const char *option,
                         bool by_flag, const char *text);
void address_close(struct listen_address *a); /* removes a socket file */

/* To be said behind its text: that there are others, or "". */
const char *address_others(const struct listen_address *a);

/* May a request have this as its Host? An address of a machine, localhost, HOST of the address, or one
 * of these names, with commas between them (NULL: none); a port behind it does not count. Else a page in
 * a browser could read us by a name of its own. A socket file is reached by no browser: there is any. */
extern const char address_refusal[]; /* what to say to others */
bool address_allows(const struct listen_address *a, const char *hosts, const char *host);

/* Accepts a connection. -1: there is none now; errno. */
int address_accept(int socket);

/* As many connections as leave some descriptors free, after the limit was raised as far as it is needed and
 * allowed. Whoever is spawned later is to get the one of before. The system gives the lowest number that is
 * free, so `highest` says about how many are in use. The descriptors from the result on are not for clients. */
int descriptors_fit(int highest, unsigned *connections);
#endif
