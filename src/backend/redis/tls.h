/* tls.h: OpenSSL without sockets: bytes in, bytes out. */
#ifndef BACKEND_REDIS_TLS_H
#define BACKEND_REDIS_TLS_H

#include <openssl/ssl.h>

#include "backend/redis/config.h"

/* What all connections share; NULL, and why, if a file cannot be used. */
SSL_CTX *tls_context(const struct config *c, char *why, size_t why_size);

struct tls {
    SSL *ssl; /* NULL: this connection has none */
    BIO *in, *out;
};

enum tls_state { TLS_GOES_ON, TLS_READY, TLS_FAILED, TLS_ENDED };

/* Begins the handshake with the server of that name. False: out of memory. */
bool tls_begin(struct tls *t, SSL_CTX *context, const char *host, bool verify);
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
