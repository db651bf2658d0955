/* serve.c: simba serve: who owns what on a store, as a page for a browser and as JSON. It only reads. What
 * may be written on its command line is in cli/commands/serve.c.
 *
 * The page is three files, embedded when this is built; it loads nothing from elsewhere, and its policy
 * lets it run its own script and no other. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/commands/serve.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/metrics_page.h"
#include "cli/notify.h"
#include "cli/run/signals.h"
#include "serve/commands.h"
#include "serve/http/http.h"
#include "serve/model.h"
#include "serve/page_html.h" /* generated: serve_page_head, SERVE_PAGE_POLICY */

#define CONNECTIONS 576
#define STREAMS 512
#define SINCE_MS 3600000

struct viewer {
    struct model model;
    int64_t keep_ms;
    struct signals signals;
    char *page; /* the strings of the template, put together */
    size_t page_length;
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct viewer *s = data;
    if (id == OPT_KEEP)
        return cli_take_keep(c, value, &s->keep_ms);
    if (id == OPT_HISTORY)
        cli_set(c, SET_HISTORY, value, "--history");
    else if (id == OPT_HOST)
        cli_set(c, SET_SERVE_HOST, value, "--host");
    else
        cli_set(c, SET_LISTEN, value, "--listen");
    return GO_ON;
}

/* ---- answers; on the server's thread ------------------------------------------------------- */

static void answer(struct http_request *r, int status, const char *type, struct json_buffer *t)
{
    static const char sorry[] = "out of memory, or the history cannot be read\n";
    if (t->failed) {
        free(t->at);
        http_answer(r, 500, HTTP_TEXT, sorry, sizeof sorry - 1);
    } else {
        char *all = realloc(t->at, t->length); /* it may have to wait for its client */
        http_answer_given(r, status, type, all != NULL ? all : t->at, t->length);
    }
}

static void refuse(struct http_request *r, const char *why)
{
    http_answer(r, 400, HTTP_TEXT, why, strlen(why));
}

/* Digits at the beginning of a text, as a number: what is behind them, or NULL if there are none. A number
 * that is too great stays at the greatest. */
static const char *take_number(const char *text, int64_t *number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return NULL;
    *number = strtoll(text, &end, 10);
    return end;
}

/* False: it was refused. */
static bool take_limit(struct http_request *r, size_t *limit)
{
    const char *text = http_query(r, "limit"), *end = NULL;
    int64_t number = ROWS_MAX;
    if (text != NULL && ((end = take_number(text, &number)) == NULL || *end != '\0')) {
        refuse(r, "limit is a number: /api/history?limit=100\n");
        return false;
    }
    *limit = number > 0 && number < ROWS_MAX ? (size_t)number : ROWS_MAX;
    return true;
}

/* What the answer before said as `next`: the end of a tenure and its row. */
static bool parse_before(const char *text, struct history_page *q)
{
    const char *end = take_number(text, &q->before_ms);
    if (end == NULL || *end != '.')
        return false;
    end = take_number(end + 1, &q->before_row);
    return end != NULL && *end == '\0';
}

static void answer_page(void *data, struct http_request *r)
{
    const struct viewer *s = data;
    http_header(r, "Content-Security-Policy", SERVE_PAGE_POLICY);
    http_answer_static(r, 200, HTTP_HTML, s->page, s->page_length);
}

static void answer_mutexes(void *data, struct http_request *r)
{
    struct viewer *s = data;
    struct json_buffer t = {0};
    size_t limit;
    if (!take_limit(r, &limit))
        return;
    model_write_mutexes(&s->model, http_query(r, "after"), http_query(r, "names"), limit, &t);
    answer(r, 200, HTTP_JSON, &t);
}

static void answer_history(void *data, struct http_request *r)
{
    struct viewer *s = data;
    struct json_buffer t = {0};
    struct history_page q = {
        .mutex = http_query(r, "mutex"), .before_ms = INT64_MAX, .before_row = INT64_MAX};
    const char *since = http_query(r, "since"), *before = http_query(r, "before");
    int64_t ms = SINCE_MS;
    if (since != NULL && simba_duration_parse(since, &ms) != 0) {
        refuse(r, "since is a duration: /api/history?since=6h\n");
    } else if (before != NULL && !parse_before(before, &q)) {
        refuse(r,
               "before is what the last answer has as next: /api/history?before=NUMBER.NUMBER\n");
    } else if (take_limit(r, &q.limit)) {
        q.since_ms = simba_wall_ms(simba_now()) - ms;
        model_write_history(&s->model, &q, &t);
        answer(r, 200, HTTP_JSON, &t);
    }
}

/* Under the lock, so that no change is lost between the two. */
static void answer_events(void *data, struct http_request *r)
{
    struct viewer *s = data;
    struct json_buffer t = {0};
    pthread_mutex_lock(&s->model.follow.lock);
    model_write_hello(&s->model, &t);
    if (!t.failed)
        http_answer_stream(r, 0, t.at, t.length);
    s->model.looked_at = simba_now();
    pthread_cond_broadcast(&s->model.asked);
    pthread_mutex_unlock(&s->model.follow.lock);
    if (t.failed)
        answer(r, 500, HTTP_TEXT, &t);
    else
        free(t.at);
}

static void answer_metrics(void *data, struct http_request *r)
{
    struct viewer *s = data;
    struct json_buffer t = {0};
    model_write_metrics(&s->model, &t);
    answer(r, 200, METRICS_PAGE_TYPE, &t);
}

static void answer_health(void *data, struct http_request *r)
{
    struct viewer *s = data;
    struct json_buffer t = {0};
    bool is_answering = model_write_health(&s->model, &t);
    answer(r, is_answering ? 200 : 503, HTTP_TEXT, &t);
}

static const struct http_route routes[] = {
    {"/", answer_page},
    {"/api/mutexes", answer_mutexes},
    {"/api/history", answer_history},
    {"/events", answer_events},
    {"/metrics", answer_metrics},
    {"/healthz", answer_health},
    {NULL, NULL},
};

/* ---- all of it ----------------------------------------------------------------------------- */

static struct step make_page(struct viewer *s, const struct cli *c)
{
    struct json_buffer t = {0};
    for (const char *const *at = serve_page_head; *at != NULL; at++)
        json_buffer_add(&t, *at);
    s->page = t.at;
    s->page_length = t.length;
    return t.failed ? print_error(c, "out of memory") : GO_ON;
}

static struct step open_history(struct viewer *s, const struct cli *c)
{
    const char *path = c->setting[SET_HISTORY].value;
    if (path == NULL && s->keep_ms > 0)
        return usage(c, "--keep needs --history FILE");
    if (path == NULL)
        return GO_ON;
    s->model.keep_ms = s->keep_ms > 0 ? s->keep_ms : HISTORY_KEEP_MS;
    signals_let_end(&s->signals, true); /* whatever the file makes SQLite do */
    struct step step = recorder_open(c, path, s->model.keep_ms, &s->model.recorder);
    signals_let_end(&s->signals, false);
    return AND_THEN(step, recorder_reader(s->model.recorder, &s->model.reader));
}

static void say_where(const struct cli *c, const struct http *h)
{
    if (c->json)
        print_json("{s:s, s:s}", "address", http_address(h)->text, "store", c->store);
    else
        printf("%s\n", http_address(h)->text);
    print_note(c, "shows %s at %s%s", c->store, http_address(h)->text,
               address_others(http_address(h)));
}

static _Noreturn void serve_until_signal(struct viewer *s)
{
    struct pollfd fd = {s->signals.fd, POLLIN, 0};
    struct signalfd_siginfo info;
    for (;;) {
        poll(&fd, 1, -1);
        while (read(s->signals.fd, &info, sizeof info) == sizeof info) {
            if (!signal_ends((int)info.ssi_signo))
                continue;
            model_end(&s->model);
            http_stop(s->model.http);
            recorder_end(s->model.recorder);
            die_of((int)info.ssi_signo);
        }
    }
}

static struct step listen_as_set(struct viewer *s, const struct cli *c)
{
    const struct setting *set = &c->setting[SET_LISTEN];
    return http_listen(c, set->value != NULL ? set->where : "--listen", set->by_flag,
                       set->value != NULL ? set->value : SERVE_ADDRESS, &s->model.http);
}

static struct step start(struct viewer *s, struct cli *c)
{
    struct http_options o = {.routes = routes,
                             .data = s,
                             .connections = CONNECTIONS,
                             .streams = STREAMS,
                             .hosts = c->setting[SET_SERVE_HOST].value};
    if (!signals_take(&s->signals))
        return print_error(c, "cannot take signals");
    struct step step = model_init(&s->model, c);
    step = AND_THEN(step, make_page(s, c));
    step = AND_THEN(step, open_history(s, c));
    step = AND_THEN(step, cli_open_existing(c));
    step = AND_THEN(step, listen_as_set(s, c));
    if (step.ends)
        return step;
    cli_forget_url(c);
    step = model_begin(&s->model);
    step = AND_THEN(step, http_start(s->model.http, &o));
    if (step.ends)
        return step;
    say_where(c, s->model.http);
    return flush_stdout(c);
}

int serve_run(struct cli *c)
{
    static struct viewer s;
    struct step step = cli_take(c, take_option, cli_take_url, &s);
    step = AND_THEN(step, cli_configure(c));
    step = AND_THEN(step, start(&s, c));
    if (step.ends)
        return step.code;
    notify_service_manager("READY=1");
    serve_until_signal(&s);
}
