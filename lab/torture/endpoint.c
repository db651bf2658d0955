/* endpoint.c: see endpoint.h. A URL is rewritten as text, part by part, so that whatever we do not
 * know in it tenures.
 *
 * TLS must not get weaker by the way: mysql: takes TLS to other hosts by default, and a certificate
 * names its host. libpq is told address and name apart (hostaddr), so that it goes on comparing the
 * name. The others compare what the URL says, so a proxy fits only where the certificate is for
 * localhost, or nothing is compared. */
#include "lab/torture/endpoint.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schemes.h"
#include "base/text.h"

#define LOCAL "127.0.0.1"

struct url_span {
    const char *at;
    size_t length;
};

struct parts {
    struct url_span scheme, user, hosts, path, query; /* user: with its @; query: without the ? */
};

/* What becomes of the URL. */
struct rewrite {
    struct parts in;
    const char *scheme;     /* another one; NULL: the same */
    const char *dropped[3]; /* options that a host in the URL replaces */
    const char *added;      /* an option; NULL: none */
    struct url_span path;   /* as an option of redis+unix: says it */
    bool keeps_names;       /* of the hosts: the address is an option of its own */
    bool path_is_db;
};

/* ---- text ---------------------------------------------------------------------------------- */

static bool is(struct url_span s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.at, text, s.length) == 0;
}

/* The part of *rest before the separator; *rest is what comes after it. */
static struct url_span cut(struct url_span *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->length);
    struct url_span first = {rest->at, end != NULL ? (size_t)(end - rest->at) : rest->length};
    size_t taken = first.length + (end != NULL ? 1 : 0);
    *rest = (struct url_span){rest->at + taken, rest->length - taken};
    return first;
}

/* Copies with %XX decoded; "" where that is malformed, or too long for a name or a path. */
static void decode(struct url_span s, char *out, size_t size)
{
    if (s.length >= size || text_unescape(out, s.at, s.length) != NULL)
        out[0] = '\0';
}

static struct url_span option(const struct parts *p, const char *name)
{
    for (struct url_span rest = p->query; rest.length > 0;) {
        struct url_span value = cut(&rest, '&');
        if (is(cut(&value, '='), name))
            return value;
    }
    return (struct url_span){"", 0};
}

static bool option_is(const struct parts *p, const char *name, const char *value)
{
    return is(option(p, name), value);
}

static bool has(const struct parts *p, const char *name)
{
    return option(p, name).length > 0;
}

static struct parts take_apart(const char *url)
{
    struct parts p = {.hosts = {"", 0}};
    struct url_span rest = {url, strlen(url)};
    p.scheme = cut(&rest, ':');
    p.path = cut(&rest, '?');
    p.query = rest;
    p.user = (struct url_span){p.path.at, 0};
    if (p.path.length < 2 || memcmp(p.path.at, "//", 2) != 0)
        return p;
    const char *authority = p.path.at + 2, *end = p.path.at + p.path.length;
    const char *slash = memchr(authority, '/', (size_t)(end - authority));
    slash = slash != NULL ? slash : end;
    const char *at = memrchr(authority, '@', (size_t)(slash - authority));
    p.user = (struct url_span){authority, at != NULL ? (size_t)(at + 1 - authority) : 0};
    p.hosts.at = authority + p.user.length;
    p.hosts.length = (size_t)(slash - p.hosts.at);
    p.path = (struct url_span){slash, (size_t)(end - slash)};
    return p;
}

/* HOST, HOST:PORT or [ADDRESS]:PORT */
static struct endpoint host_of(struct url_span s, uint16_t default_port, struct url_span *name)
{
    struct endpoint e = {.port = default_port};
    struct url_span rest = s;
    bool is_bracketed = s.length > 0 && s.at[0] == '[';
    struct url_span host = cut(&rest, is_bracketed ? ']' : ':');
    if (is_bracketed) {
        *name = (struct url_span){host.at, host.length + 1};
        host = (struct url_span){host.at + 1, host.length - 1};
        cut(&rest, ':');
    } else {
        *name = host;
    }
    decode(host, e.host, sizeof e.host);
    if (rest.length > 0)
        e.port = (uint16_t)strtoul(rest.at, NULL, 10);
    return e;
}

/* ---- stores -------------------------------------------------------------------------------- */

static bool is_this_host(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, LOCAL) == 0;
}

static void refuse(struct endpoints *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(e->limit, sizeof e->limit, format, args);
    va_end(args);
    e->count = 0;
}

static void find_hosts(const struct parts *p, uint16_t port, struct endpoints *e)
{
    struct url_span rest = p->hosts, name;
    while (rest.length > 0 && e->count < ENDPOINTS_MAX)
        e->at[e->count++] = host_of(cut(&rest, ','), port, &name);
    if (e->count == 0)
        e->at[e->count++] = (struct endpoint){.host = LOCAL, .port = port};
}

static void set_socket(struct url_span path, struct endpoints *e)
{
    e->at[0] = (struct endpoint){.host = ""};
    decode(path, e->at[0].path, sizeof e->at[0].path);
    e->count = 1;
}

static void refuse_certificate(struct endpoints *e)
{
    if (e->count == 0 || e->at[0].host[0] == '\0' || is_this_host(e->at[0].host))
        return;
    char host[sizeof e->at[0].host];
    memcpy(host, e->at[0].host, sizeof host);
    refuse(e,
           "no network faults: TLS expects a certificate for %.100s, and a proxy is at " LOCAL
           "; add tls_verify=off to the URL of a test server",
           host);
}

static void rewrite_redis(struct rewrite *r, struct endpoints *e)
{
    const struct parts *in = &r->in;
    if (is(in->scheme, "redis+unix")) {
        set_socket(in->path, e);
        r->scheme = "redis";
        r->dropped[0] = "db";
        r->path = option(in, "db");
        r->path_is_db = true;
        return;
    }
    bool asks_sentinels = is(in->scheme, "redis+sentinel") || is(in->scheme, "rediss+sentinel");
    bool is_secret = is(in->scheme, "rediss") ||
                     (is(in->scheme, "rediss+sentinel") && !option_is(in, "sentinel_tls", "off"));
    if (asks_sentinels)
        snprintf(e->limit, sizeof e->limit,
                 "network faults reach the sentinels alone: the servers are where these say");
    if (is_secret && !option_is(in, "tls_verify", "off"))
        refuse_certificate(e);
}

static void rewrite_mysql(struct rewrite *r, struct endpoints *e)
{
    const struct parts *in = &r->in;
    if (has(in, "socket")) {
        set_socket(option(in, "socket"), e);
        r->dropped[0] = "socket";
        return;
    }
    const char *host = e->at[0].host;
    bool by_default =
        strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0 && strcmp(host, "localhost") != 0;
    bool any = option_is(in, "tls", "on") || has(in, "tls_ca") || has(in, "tls_cert");
    if (option_is(in, "tls", "off") || (!by_default && !any))
        return;
    if (!has(in, "tls"))
        r->added = "tls=on";
    if (!option_is(in, "tls_verify", "off"))
        refuse_certificate(e);
}

/* libpq takes hosts from the URL, from its options, from a file of services and from the
 * environment. */
static void rewrite_postgres(struct rewrite *r, struct endpoints *e)
{
    const struct parts *in = &r->in;
    char folder[sizeof e->at[0].path] = "", port[8] = "5432";
    struct url_span first = option(in, "host");
    if (in->hosts.length > 0)
        decode(in->hosts, folder, sizeof folder);
    else
        decode(first, folder, sizeof folder);
    bool is_mixed = folder[0] == '/' && strchr(folder, ',') != NULL;
    if (is_mixed || has(in, "hostaddr") || has(in, "service") ||
        (in->hosts.length > 0 && first.length > 0)) {
        refuse(e, "no network faults: options host, hostaddr and service hide where the server is");
    } else if (folder[0] == '/') {
        if (has(in, "port"))
            decode(option(in, "port"), port, sizeof port);
        set_socket((struct url_span){"", 0}, e);
        snprintf(e->at[0].path, sizeof e->at[0].path, "%.90s/.s.PGSQL.%s", folder, port);
        r->dropped[0] = "host";
        r->dropped[1] = "port";
    } else if (in->hosts.length == 0) {
        refuse(e, "no network faults: the URL names no host");
    } else {
        r->keeps_names = true;
    }
}

/* Fills it, and finds the servers. */
static void examine(const char *url, struct rewrite *r, struct endpoints *e)
{
    *r = (struct rewrite){.in = take_apart(url)};
    *e = (struct endpoints){.count = 0};
    r->path = r->in.path;
    const struct scheme *scheme = scheme_of(url);
    enum store_kind kind = scheme_kind(url);
    if (scheme == NULL || kind == STORE_SQLITE || kind == STORE_MEMORY) {
        refuse(e, "no network faults: %.*s: has no server that is known here",
               (int)r->in.scheme.length, r->in.scheme.at);
        return;
    }
    find_hosts(&r->in, scheme->port, e);
    if (kind == STORE_REDIS)
        rewrite_redis(r, e);
    else if (kind == STORE_MYSQL)
        rewrite_mysql(r, e);
    else if (kind == STORE_POSTGRES)
        rewrite_postgres(r, e);
}

void endpoints_find(const char *url, struct endpoints *out)
{
    struct rewrite r;
    examine(url, &r, out);
}

/* ---- the URL again ------------------------------------------------------------------------- */

static void put(FILE *out, struct url_span s)
{
    fwrite(s.at, 1, s.length, out);
}

static void put_hosts(FILE *out, const struct rewrite *r, const struct endpoints *e,
                      const uint16_t *ports)
{
    struct url_span rest = r->in.hosts, name;
    for (size_t i = 0; i < e->count; i++) {
        host_of(cut(&rest, ','), 0, &name);
        fputs(i > 0 ? "," : "", out);
        if (r->keeps_names || (name.length > 0 && is(name, "localhost")))
            put(out, name); /* what a certificate may be for */
        else
            fputs(LOCAL, out);
        fprintf(out, ":%u", (unsigned)ports[i]);
    }
}

static bool is_dropped(const struct rewrite *r, struct url_span pair)
{
    struct url_span name = cut(&pair, '=');
    bool yes = false;
    for (size_t i = 0; i < sizeof r->dropped / sizeof *r->dropped; i++)
        yes = yes || (r->dropped[i] != NULL && is(name, r->dropped[i]));
    return yes;
}

static void put_options(FILE *out, const struct rewrite *r, size_t hosts)
{
    char separator = '?';
    for (struct url_span rest = r->in.query; rest.length > 0;) {
        struct url_span pair = cut(&rest, '&');
        if (is_dropped(r, pair))
            continue;
        fputc(separator, out);
        put(out, pair);
        separator = '&';
    }
    if (r->added != NULL) {
        fprintf(out, "%c%s", separator, r->added);
        separator = '&';
    }
    for (size_t i = 0; r->keeps_names && i < hosts; i++) {
        fprintf(out, "%c%s" LOCAL, separator, i == 0 ? "hostaddr=" : "");
        separator = ',';
    }
}

int endpoints_rewrite(const char *url, const uint16_t *ports, char *out, size_t size)
{
    struct rewrite r;
    struct endpoints e;
    examine(url, &r, &e);
    FILE *file = fmemopen(out, size, "w");
    if (file == NULL)
        return -1;
    if (e.count == 0) {
        fputs(url, file);
    } else {
        if (r.scheme != NULL)
            fputs(r.scheme, file);
        else
            put(file, r.in.scheme);
        fputs("://", file);
        put(file, r.in.user);
        put_hosts(file, &r, &e, ports);
        fputs(r.path_is_db && r.path.length > 0 ? "/" : "", file);
        put(file, r.path);
        put_options(file, &r, e.count);
    }
    fputc('\0', file);
    int failed = fflush(file) != 0;
    fclose(file);
    return failed ? -1 : 0;
}
