/* request.c: from a request to its answer. */
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http/server.h"

static const struct {
    const char *name, *value;
    bool is_default; /* a handler may say otherwise */
} every_answer[] = {
#define X(name, value, is_default) {name, value, is_default},
    HTTP_EVERY_ANSWER(X)
#undef X
};

/* ---- what was asked ------------------------------------------------------------------------ */

const char *http_path(const struct http_request *r)
{
    return r->path;
}

const char *http_query(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_request_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static const char *keep(struct http_request *r, const char *text)
{
    size_t size = strlen(text) + 1;
    if (r->text_used + size > sizeof r->text)
        return NULL;
    char *copy = memcpy(r->text + r->text_used, text, size);
    r->text_used += size;
    return copy;
}

void http_header(struct http_request *r, const char *name, const char *value)
{
    if (r->header_count == HTTP_HEADERS || strpbrk(value, "\r\n") != NULL)
        return;
    const char *kept_name = keep(r, name), *kept_value = keep(r, value);
    if (kept_name == NULL || kept_value == NULL)
        return;
    r->headers[r->header_count].name = kept_name;
    r->headers[r->header_count++].value = kept_value;
}

static bool has_header(const struct http_request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++) {
        if (strcasecmp(r->headers[i].name, name) == 0)
            return true;
    }
    return false;
}

void request_send(struct http_request *r, int status, const char *type,
                  struct MHD_Response *response)
{
    if (response == NULL || r->is_answered) {
        if (response != NULL)
            MHD_destroy_response(response);
        return;
    }
    for (size_t i = 0; i < sizeof every_answer / sizeof *every_answer; i++) {
        if (!every_answer[i].is_default || !has_header(r, every_answer[i].name))
            MHD_add_response_header(response, every_answer[i].name, every_answer[i].value);
    }
    for (size_t i = 0; i < r->header_count; i++)
        MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
    MHD_add_response_header(response, "Content-Type", type);
    r->result = MHD_queue_response(r->mhd, (unsigned)status, response);
    r->is_answered = true;
    MHD_destroy_response(response);
}

/* The library does not write to the body. It keeps it until the client has taken it. */
static void answer(struct http_request *r, int status, const char *type, const void *body,
                   size_t length, enum MHD_ResponseMemoryMode mode)
{
    static const char full[] = HTTP_SAYS_FULL;
    void *bytes = (void *)(uintptr_t)body;
    struct http *h = r->h;
    if (mode != MHD_RESPMEM_PERSISTENT && length > HTTP_SMALL_BYTES &&
        h->unsent + length > HTTP_UNSENT_BYTES) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(bytes);
        http_answer_static(r, MHD_HTTP_SERVICE_UNAVAILABLE, HTTP_TEXT, full, strlen(full));
        return;
    }
    if (mode != MHD_RESPMEM_PERSISTENT && !r->is_answered)
        connection_set_unsent(h, r->connection, length);
    request_send(r, status, type, MHD_create_response_from_buffer(length, bytes, mode));
}

void http_answer(struct http_request *r, int status, const char *type, const void *body,
                 size_t length)
{
    answer(r, status, type, body, length, MHD_RESPMEM_MUST_COPY);
}

void http_answer_given(struct http_request *r, int status, const char *type, void *body,
                       size_t length)
{
    answer(r, status, type, body, length, MHD_RESPMEM_MUST_FREE);
}

void http_answer_static(struct http_request *r, int status, const char *type, const void *body,
                        size_t length)
{
    answer(r, status, type, body, length, MHD_RESPMEM_PERSISTENT);
}

static void answer_text(struct http_request *r, int status, const char *text)
{
    http_answer(r, status, HTTP_TEXT, text, strlen(text));
}

/* ---- which handler ------------------------------------------------------------------------- */

static bool matches(const char *route, const char *path)
{
    size_t length = strlen(route);
    if (length > 0 && route[length - 1] == '*')
        return strncmp(route, path, length - 1) == 0;
    return strcmp(route, path) == 0;
}

static void answer_not_found(struct http_request *r)
{
    char text[512];
    size_t n = 0;
    if (r->h->o.extra_hint != NULL) {
        answer_text(r, MHD_HTTP_NOT_FOUND, r->h->o.extra_hint);
        return;
    }
    n += (size_t)snprintf(text, sizeof text, HTTP_SAYS_NO_PATH);
    for (const struct http_route *at = r->h->o.routes; at->path != NULL; at++) {
        int more = snprintf(text + n, sizeof text - n, " %s", at->path);
        n = n + (size_t)more < sizeof text - 2 ? n + (size_t)more : n;
    }
    snprintf(text + n, sizeof text - n, "\n");
    answer_text(r, MHD_HTTP_NOT_FOUND, text);
}

struct hosts {
    const struct http *h;
    bool are_known;
};

static enum MHD_Result check_host(void *data, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct hosts *all = data;
    (void)kind;
    if (strcasecmp(name, "Host") == 0 &&
        !address_allows(&all->h->address, all->h->o.hosts, value != NULL ? value : ""))
        all->are_known = false;
    return MHD_YES;
}

/* With none it is HTTP/1.0, or no browser. Of several, a proxy may have taken another than we would. */
static bool has_known_hosts(const struct http_request *r)
{
    struct hosts all = {.h = r->h, .are_known = true};
    MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, check_host, &all);
    return all.are_known;
}

static const struct http_route *find_route(const struct http_request *r)
{
    const struct http_route *at = r->h->o.routes;
    while (at->path != NULL && !matches(at->path, r->path))
        at++;
    return at;
}

static void dispatch(struct http_request *r)
{
    const struct http_route *route = find_route(r);
    if (!has_known_hosts(r)) {
        answer_text(r, MHD_HTTP_FORBIDDEN, address_refusal);
    } else if (route->path == NULL) {
        answer_not_found(r);
    } else {
        route->handler(r->h->o.data, r);
        if (!r->is_answered)
            answer_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, HTTP_SAYS_NOTHING);
    }
}

/* ---- what libmicrohttpd calls -------------------------------------------------------------- */

static bool has_body(const struct http_request *r)
{
    const char *length = http_request_header(r, "Content-Length");
    return (length != NULL && strcmp(length, "0") != 0) ||
           http_request_header(r, "Transfer-Encoding") != NULL;
}

/* It is called when the headers are there, and again when the request is complete. What is no
 * business of ours is refused the first time, so that its body is never read. */
enum MHD_Result request_take(void *data, struct MHD_Connection *mhd, const char *path,
                             const char *method, const char *version, const char *body,
                             size_t *body_size, void **state)
{
    static char seen;
    struct http *h = data;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_request r = {
        .h = h,
        .connection = info != NULL ? (struct http_connection *)info->socket_context : NULL,
        .mhd = mhd,
        .path = path,
        .result = MHD_NO};
    (void)version;
    (void)body;
    bool is_first = *state == NULL;
    *state = &seen;
    if (r.connection == NULL || r.connection->is_dropped)
        return MHD_NO;
    r.connection->changed_at = simba_now();
    r.connection->deadline = r.connection->changed_at + HTTP_ANSWER_MS;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        http_header(&r, "Allow", "GET, HEAD");
        answer_text(&r, MHD_HTTP_METHOD_NOT_ALLOWED, HTTP_SAYS_READ_ONLY);
    } else if (is_first && has_body(&r)) {
        answer_text(&r, MHD_HTTP_BAD_REQUEST, HTTP_SAYS_NO_BODY);
    } else if (is_first) {
        return MHD_YES;
    } else {
        *body_size = 0;
        dispatch(&r);
    }
    return r.result;
}
