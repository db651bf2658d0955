/* tls.c: see tls.h. */
#include "backend/redis/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "base/text.h"

const char *const tls_schemes[] = {"redis",          "rediss",          "redis+unix",
                                   "redis+sentinel", "rediss+sentinel", NULL};

/* OpenSSL's last word, which is about certificates and files and holds no secret. */
static void say(const char *what, char *why, size_t why_size)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = error != 0 ? ERR_reason_error_string(error) : NULL;
    snprintf(why, why_size, "%s: %s", what, reason != NULL ? reason : "OpenSSL gives no reason");
    ERR_clear_error();
}

static void add_name(struct text *names, const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];
    const ASN1_STRING *s = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char *bytes = ASN1_STRING_get0_data(s);
    int length = ASN1_STRING_length(s);
    if (length <= 0)
        return;
    text_add(names, names->length > 0 ? ", " : "");
    if (name->type == GEN_DNS)
        text_add_bytes(names, (const char *)bytes, (size_t)length);
    else if (inet_ntop(length == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address) != NULL)
        text_add(names, address);
}

static bool is_name(const GENERAL_NAME *name)
{
    int length = name->type == GEN_IPADD ? ASN1_STRING_length(name->d.iPAddress) : 0;
    return name->type == GEN_DNS || length == 4 || length == 16;
}

/* Whom the certificate names: it is at hand only while it is being verified. */
static int on_verify(int is_fine, X509_STORE_CTX *store)
{
    int error = X509_STORE_CTX_get_error(store);
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = ssl != NULL ? SSL_get_app_data(ssl) : NULL;
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    bool is_another =
        error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH;
    if (is_fine || !is_another || t == NULL || certificate == NULL)
        return is_fine;
    struct text names;
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    text_init(&names, t->names, sizeof t->names);
    for (int i = 0; all != NULL && i < sk_GENERAL_NAME_num(all); i++)
        if (is_name(sk_GENERAL_NAME_value(all, i)))
            add_name(&names, sk_GENERAL_NAME_value(all, i));
    text_add(&names, names.length == 0 ? "nobody (it has no subjectAltName)" : "");
    text_end(&names);
    GENERAL_NAMES_free(all);
    return is_fine;
}

SSL_CTX *tls_context(const struct config *c, char *why, size_t why_size)
{
    ERR_clear_error();
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT,
                        NULL); /* the loop may be in it when exit() is called */
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) {
        say("TLS", why, why_size);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_verify(context, c->tls_verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, on_verify);
    const char *what = NULL;
    if (c->tls_ca != NULL) {
        if (SSL_CTX_load_verify_locations(context, c->tls_ca, NULL) != 1)
            what = "option tls_ca: the file holds no certificates";
    } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
        what = "the system's certificates cannot be read";
    }
    if (what == NULL && c->tls_cert != NULL) {
        if (SSL_CTX_use_certificate_chain_file(context, c->tls_cert) != 1)
            what = "option tls_cert: the file holds no certificate";
        else if (SSL_CTX_use_PrivateKey_file(context, c->tls_key, SSL_FILETYPE_PEM) != 1)
            what = "option tls_key: the file holds no key, or one with a passphrase";
        else if (SSL_CTX_check_private_key(context) != 1)
            what = "tls_key is not the key of tls_cert";
    }
    if (what == NULL)
        return context;
    say(what, why, why_size);
    SSL_CTX_free(context);
    return NULL;
}

void tls_context_free(SSL_CTX *context)
{
    SSL_CTX_free(context);
}

static bool expect_host(SSL *ssl, const char *host, bool verify)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool literal =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    if (literal)
        return !verify || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set_tlsext_host_name(ssl, host) == 1 && (!verify || SSL_set1_host(ssl, host) == 1);
}

bool tls_begin(struct tls *t, SSL_CTX *context, const char *host, bool verify)
{
    *t = (struct tls){.ssl = SSL_new(context),
                      .in = BIO_new(BIO_s_mem()),
                      .out = BIO_new(BIO_s_mem()),
                      .host = host};
    if (t->ssl == NULL || t->in == NULL || t->out == NULL) {
        SSL_free(t->ssl);
        BIO_free(t->in);
        BIO_free(t->out);
        *t = (struct tls){.ssl = NULL};
        return false;
    }
    BIO_set_mem_eof_return(t->in, -1); /* "come again", not the end */
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    SSL_set_app_data(t->ssl, t);
    if (expect_host(t->ssl, host, verify))
        return true;
    tls_end(t);
    return false;
}

void tls_end(struct tls *t)
{
    SSL_free(t->ssl); /* and its BIOs */
    *t = (struct tls){.ssl = NULL};
}

void tls_put(struct tls *t, const char *bytes, size_t count)
{
    BIO_write(t->in, bytes, (int)count);
}

static enum tls_state state_of(struct tls *t, int rc, char *why, size_t why_size)
{
    int error = SSL_get_error(t->ssl, rc);
    long result = SSL_get_verify_result(t->ssl);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return TLS_GOES_ON;
    if (error == SSL_ERROR_ZERO_RETURN)
        return TLS_ENDED;
    unsigned long last = ERR_peek_last_error();
    if (error == SSL_ERROR_SSL && ERR_GET_REASON(last) == SSL_R_WRONG_VERSION_NUMBER) {
        snprintf(why, why_size,
                 "the server speaks no TLS on this port: write redis: instead of rediss:, or the "
                 "port for TLS");
        ERR_clear_error();
    } else if (t->names[0] != '\0') {
        snprintf(
            why, why_size,
            "TLS: the server's certificate is for %s, not for %s: write one of its names in the "
            "URL, or in its option tls_name (tls_verify=off asks for none, for tests)",
            t->names, t->host);
        ERR_clear_error();
    } else if (result != X509_V_OK && (SSL_get_verify_mode(t->ssl) & SSL_VERIFY_PEER) != 0) {
        snprintf(why, why_size,
                 "TLS: the server's certificate is not accepted: %s; is option tls_ca right?",
                 X509_verify_cert_error_string(result));
        ERR_clear_error();
    } else {
        say("TLS", why, why_size);
    }
    return TLS_FAILED;
}

enum tls_state tls_shake(struct tls *t, char *why, size_t why_size)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(t->ssl);
    return rc == 1 ? TLS_READY : state_of(t, rc, why, why_size);
}

enum tls_state tls_read(struct tls *t, char *to, size_t size, size_t *count, char *why,
                        size_t why_size)
{
    ERR_clear_error();
    int rc = SSL_read_ex(t->ssl, to, size, count);
    if (rc == 1)
        return TLS_READY;
    *count = 0;
    enum tls_state state = state_of(t, rc, why, why_size);
    return state == TLS_GOES_ON ? TLS_READY : state;
}

bool tls_write(struct tls *t, const char *bytes, size_t count)
{
    while (count > 0) {
        size_t written = 0;
        ERR_clear_error();
        if (SSL_write_ex(t->ssl, bytes, count, &written) != 1)
            return false;
        bytes += written;
        count -= written;
    }
    return true;
}

size_t tls_pending(struct tls *t, const char **bytes)
{
    char *at = NULL;
    long n = BIO_get_mem_data(t->out, &at);
    *bytes = at;
    return n > 0 ? (size_t)n : 0;
}

void tls_sent(struct tls *t)
{
    (void)BIO_reset(t->out);
}
