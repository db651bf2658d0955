/* http_sample.c: a server made with src/serve/http, for tests/cli/http_server.bats: what simba serve does not
 * use of it, too.
 *
 *     http_sample ADDRESS      says where it listens, then does what the lines on stdin say:
 *         publish TEXT         an event to all streams
 *         bytes N              an event of N bytes
 *         count                says how many streams there are
 * It ends when stdin does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "serve/http/http.h"

#define TOPIC 7

static void on_echo(void *data, struct http_request *r)
{
    char text[256];
    const char *x = http_query(r, "x"), *agent = http_request_header(r, "User-Agent");
    (void)data;
    snprintf(text, sizeof text, "%s %s %s\n", http_path(r), x != NULL ? x : "none",
             agent != NULL ? agent : "none");
    http_header(r, "Cache-Control", "max-age=60");
    http_header(r, "X-Bad", "a\r\nb: c");
    http_answer(r, 200, HTTP_TEXT, text, strlen(text));
    http_answer(r, 500, HTTP_TEXT, "twice", 5); /* is left out */
}

static void on_events(void *data, struct http_request *r)
{
    static const char first[] = "data: first\n\n";
    (void)data;
    http_answer_stream(r, TOPIC, first, strlen(first));
}

static void on_nothing(void *data, struct http_request *r)
{
    (void)data;
    (void)r;
}

static const struct http_route routes[] = {
    {"/echo/*", on_echo},
    {"/events", on_events},
    {"/nothing", on_nothing},
    {NULL, NULL},
};

static void publish_bytes(struct http *h, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (text == NULL)
        abort();
    snprintf(text, bytes + 1, "data: %*s\n\n", (int)bytes - 8, "x");
    http_publish(h, TOPIC, text, bytes);
    free(text);
}

int main(int argc, char **argv)
{
    static struct cli c;
    struct http *h;
    struct http_options o = {.routes = routes, .streams = 3, .hosts = "one.example,two.example"};
    char line[256], event[300];
    if (argc != 2)
        return EXIT_USAGE;
    struct step step = http_listen(&c, "ADDRESS", true, argv[1], &h);
    step = AND_THEN(step, http_start(h, &o));
    if (step.ends)
        return step.code;
    printf("%s\n", http_address(h)->text);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "publish ", 8) == 0) {
            snprintf(event, sizeof event, "data: %s\n\n", line + 8);
            http_publish(h, TOPIC, event, strlen(event));
        } else if (strncmp(line, "bytes ", 6) == 0) {
            publish_bytes(h, strtoul(line + 6, NULL, 10));
        }
        printf("%u\n", http_streams(h, TOPIC));
        fflush(stdout);
    }
    http_stop(h);
    return 0;
}
