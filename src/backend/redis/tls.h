/* tls.h: OpenSSL without sockets: bytes in, bytes out.
 *
 * To load OpenSSL is a good part of what a cold `simba lock` costs, so only what serves rediss: is
 * linked with it and with tls.c: the module simba-rediss.so, and a library with this store
 * built in. The module simba-redis.so has tls_none.c instead. */
#ifndef BACKEND_REDIS_TLS_H
#define BACKEND_REDIS_TLS_H

#include "backend/redis/config.h"

/* Of OpenSSL, SSL_CTX, SSL and BIO; only tls.c needs its headers. */
struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

extern const char *const tls_schemes[]; /* of this store: with rediss, or without */

/* What all connections share; NULL, and why, if a file cannot be used. */
struct ssl_ctx_st *tls_context(const struct config *c, char *why, size_t why_size);
void tls_context_free(struct ssl_ctx_st *context); /* may be NULL */

#define TLS_NAMES_MAX 160

struct tls {
    struct ssl_st *ssl; /* NULL: this connection has none */
    struct bio_st *in, *out;
    const char *host;          /* borrowed: whom the certificate has to name … */
    char names[TLS_NAMES_MAX]; /* … and whom it names; "": that is not what is wrong with it */
};

enum tls_state { TLS_GOES_ON, TLS_READY, TLS_FAILED, TLS_ENDED };

/* Begins the handshake with the server of that name, which is borrowed until tls_end(). False: out of
 * memory. */
bool tls_begin(struct tls *t, struct ssl_ctx_st *context, const char *host, bool verify);
void tls_end(struct tls *t);

/* Takes what the network brought. */
void tls_put(struct tls *t, const char *bytes, size_t count);

enum tls_state tls_shake(struct tls *t, char *why, size_t why_size);

/* Up to `size` bytes of what the other side says; 0: no more now. TLS_READY, or why not. */
enum tls_state tls_read(struct tls *t, char *to, size_t size, size_t *count, char *why,
                        size_t why_size);
bool tls_write(struct tls *t, const char *bytes, size_t count);

/* What is to be sent; valid until tls_sent(). */
size_t tls_pending(struct tls *t, const char **bytes);
void tls_sent(struct tls *t);
#endif
