/* tls_none.c: no TLS, in the module for URLs that ask for none. Of what is here only
 * tls_context_free and tls_end are called, with nothing to free. */
#include "backend/redis/tls.h"

#include <assert.h>

const char *const tls_schemes[] = {"redis", "redis+unix", "redis+sentinel", NULL};

struct ssl_ctx_st *tls_context(const struct config *c, char *why, size_t why_size)
{
    (void)c, (void)why, (void)why_size;
    assert(false);
    return NULL;
}

void tls_context_free(struct ssl_ctx_st *context)
{
    assert(context == NULL);
    (void)context;
}

bool tls_begin(struct tls *t, struct ssl_ctx_st *context, const char *host, bool verify)
{
    (void)t, (void)context, (void)host, (void)verify;
    assert(false);
    return false;
}

void tls_end(struct tls *t)
{
    assert(t->ssl == NULL);
    (void)t;
}

void tls_put(struct tls *t, const char *bytes, size_t count)
{
    (void)t, (void)bytes, (void)count;
    assert(false);
}

enum tls_state tls_shake(struct tls *t, char *why, size_t why_size)
{
    (void)t, (void)why, (void)why_size;
    assert(false);
    return TLS_FAILED;
}

enum tls_state tls_read(struct tls *t, char *to, size_t size, size_t *count, char *why,
                        size_t why_size)
{
    (void)t, (void)to, (void)size, (void)count, (void)why, (void)why_size;
    assert(false);
    return TLS_FAILED;
}

bool tls_write(struct tls *t, const char *bytes, size_t count)
{
    (void)t, (void)bytes, (void)count;
    assert(false);
    return false;
}

size_t tls_pending(struct tls *t, const char **bytes)
{
    (void)t, (void)bytes;
    assert(false);
    return 0;
}

void tls_sent(struct tls *t)
{
    (void)t;
    assert(false);
}
