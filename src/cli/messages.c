/* messages.c: see messages.h. */
#include "cli/messages.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/shown.h"
#include "cli/terminal.h"

#define LINE_MAX_BYTES 2048 /* of what is said */
#define JSON_LINE_BYTES \
    4096 /* of what is written: in one piece, for a pipe has room for it or is full */
#define STORE_BYTES 1024 /* of a store, in a line of JSON */
#define ROOM_WAIT_MS 20  /* the shortest lease has a margin of 50 */

/* ---- lines --------------------------------------------------------------------------------- */

static bool has_room(int fd)
{
    struct pollfd out = {fd, POLLOUT, 0};
    return poll(&out, 1, ROOM_WAIT_MS) != 0;
}

/* What is said, and how. */
struct said {
    enum simba_level level;
    const char *reason; /* of a loss; NULL: none */
    bool has_hint;      /* how to find out more */
};

static const struct {
    const char *name;
    int priority; /* as the journal counts: 3 an error, 4 a warning, 6 for information, 7 debugging */
} levels[] = {[SIMBA_LOG_ERROR] = {"error", 3},
              [SIMBA_LOG_WARN] = {"warning", 4},
              [SIMBA_LOG_INFO] = {"info", 6},
              [SIMBA_LOG_DEBUG] = {"debug", 7}};

bool log_format_parse(const char *text, enum log_format *out)
{
    bool is_json = strcmp(text, "json") == 0;
    *out = is_json ? LOG_JSON : LOG_PLAIN;
    return is_json || strcmp(text, "plain") == 0;
}

/* Does the journal read what is written there? It says so by the numbers of its socket. */
static bool is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat s;
    char *end;
    if (stream == NULL || fstat(fd, &s) != 0)
        return false;
    unsigned long long device = strtoull(stream, &end, 10);
    return *end == ':' && device == s.st_dev && strtoull(end + 1, &end, 10) == s.st_ino &&
           *end == '\0';
}

/* False: there is no room for it. */
static bool write_json(const struct cli *c, const struct said *said, const char *text,
                       struct json_buffer *j)
{
    char shown[STORE_BYTES], at[TIME_SIZE];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t length = show_time(now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000, true, at);
    snprintf(at + length, sizeof at - length, "Z");
    json_buffer_add(j, "{");
    json_buffer_string_of(j, "time", at);
    json_buffer_string_of(j, "level", levels[said->level].name);
    if (c->command != NULL)
        json_buffer_string_of(j, "command", c->command->name);
    if (c->mutex != NULL)
        json_buffer_string_of(j, "mutex", show_name(c->mutex, shown, sizeof shown));
    if (c->token != 0)
        json_buffer_token_of(j, "token", c->token);
    if (c->store[0] != '\0')
        json_buffer_string_of(j, "store", show_name(c->store, shown, sizeof shown));
    if (said->reason != NULL)
        json_buffer_string_of(j, "reason", said->reason);
    json_buffer_string_of(j, "text", text);
    json_buffer_add(j, "}\n");
    return !j->failed;
}

/* In a line that is too long the text loses its end. */
static size_t make_json(const struct cli *c, const struct said *said, char *text, char *line)
{
    for (int width = width_of(text, strlen(text)); width >= 0; width--) {
        struct json_buffer j = {
            .at = line, .room = JSON_LINE_BYTES, .is_line = true, .is_fixed = true};
        if (write_json(c, said, text, &j))
            return j.length;
        cut_to_width(text, width);
    }
    return 0;
}

static size_t make_plain(const struct cli *c, const struct said *said, const char *text, char *line)
{
    char priority[8] = "";
    const char *name = c->command != NULL ? c->command->name : "", *blank = &" "[name[0] == '\0'];
    if (is_journal(STDERR_FILENO))
        snprintf(priority, sizeof priority, "<%d>", levels[said->level].priority);
    int n = snprintf(line, JSON_LINE_BYTES, "%ssimba%s%s: %s\n", priority, blank, name, text);
    if (said->has_hint)
        n += snprintf(line + n, JSON_LINE_BYTES - (size_t)n, "%sTry: simba %s%s--help\n", priority,
                      name, blank);
    return (size_t)n;
}

/* One write, so that lines of several processes do not mix. Names and ids may be anybody's:
 * nothing in them moves the cursor or begins another line. */
static void line(const struct cli *c, struct said said, const char *format, va_list args)
{
    char raw[LINE_MAX_BYTES], text[LINE_MAX_BYTES], whole[JSON_LINE_BYTES];
    (void)!vsnprintf(raw, sizeof raw, format, args);
    show_name(raw, text, sizeof text);
    size_t length =
        c->log == LOG_JSON ? make_json(c, &said, text, whole) : make_plain(c, &said, text, whole);
    if (c->drops_lines && !has_room(STDERR_FILENO))
        return;
    if (write(STDERR_FILENO, whole, length) < 0)
        return; /* nobody listens: nothing can be said about that */
}

void print_note(const struct cli *c, const char *format, ...)
{
    va_list args;
    if (c->quiet)
        return;
    va_start(args, format);
    line(c, (struct said){.level = SIMBA_LOG_INFO}, format, args);
    va_end(args);
}

void print_level(const struct cli *c, enum simba_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, (struct said){.level = level}, format, args);
    va_end(args);
}

void print_loss(const struct cli *c, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, (struct said){.level = SIMBA_LOG_ERROR, .reason = reason}, format, args);
    va_end(args);
}

void print_status(const struct cli *c, const char *format, ...)
{
    char raw[LINE_MAX_BYTES - 8], text[LINE_MAX_BYTES] = "\r\033[K";
    size_t begin = strlen(text);
    va_list args;
    if (c->log == LOG_JSON)
        return;
    va_start(args, format);
    (void)!vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    size_t shown = begin;
    if (raw[0] != '\0')
        snprintf(text + begin, sizeof text - begin, "simba %s: ", c->command->name);
    begin = strlen(text);
    show_name(raw, text + begin, sizeof text - begin);
    cut_to_width(text + shown, status_width());
    if (has_room(STDERR_FILENO))
        (void)!write(STDERR_FILENO, text, strlen(text));
}

struct step print_error(const struct cli *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, (struct said){.level = SIMBA_LOG_ERROR}, format, args);
    va_end(args);
    return end_with(EXIT_TROUBLE);
}

struct step usage(const struct cli *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, (struct said){.level = SIMBA_LOG_ERROR, .has_hint = true}, format, args);
    va_end(args);
    return end_with(EXIT_USAGE);
}
