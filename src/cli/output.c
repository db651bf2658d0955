/* output.c: lines for people on stderr, data for programs on stdout. */
#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"

#define LINE_MAX_BYTES 2048 /* of what is said */
#define JSON_LINE_BYTES \
    4096 /* of what is written: in one piece, for a pipe has room for it or is full */
#define STORE_BYTES 1024 /* of a store, in a line of JSON */
#define COLUMNS 80       /* of a terminal that does not say */
#define WIDEST 1000      /* far less than LINE_MAX_BYTES */
#define ROOM_WAIT_MS 20  /* the shortest lease has a margin of 50 */

/* ---- characters ---------------------------------------------------------------------------- */

const char *show_name(const char *name, char *out, size_t size)
{
    size_t n = 0, length;
    uint32_t point;
    for (const char *at = name; *at != '\0'; at += length > 0 ? length : 1) {
        length = text_utf8(at, &point);
        bool is_shown = length > 0 && !text_is_hidden(point);
        size_t bytes = is_shown ? length : 1;
        if (n + bytes >= size)
            break;
        memcpy(out + n, is_shown ? at : "?", bytes);
        n += bytes;
    }
    out[n] = '\0';
    return out;
}

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

/* Adds ,"name":"value" to a line of JSON, cut where fewer than `spare` bytes would be left. Of the
 * value show_name() has left nothing that JSON forbids but these two. */
static size_t put_field(char *line, size_t at, size_t spare, const char *name, const char *value)
{
    uint32_t unused;
    at += (size_t)snprintf(line + at, JSON_LINE_BYTES - at, "%s\"%s\":\"", at > 1 ? "," : "", name);
    for (size_t length; *value != '\0'; value += length) {
        length = text_utf8(value, &unused);
        if (at + length + spare + 4 > JSON_LINE_BYTES)
            break;
        if (*value == '"' || *value == '\\')
            line[at++] = '\\';
        memcpy(line + at, value, length);
        at += length;
    }
    line[at++] = '"';
    return at;
}

/* The text is the last, since it may be cut. */
static size_t make_json(const struct cli *c, const struct said *said, const char *text, char *line)
{
    char time_text[40], shown[STORE_BYTES];
    struct timespec now;
    struct tm utc;
    size_t at = 1;
    line[0] = '{';
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(time_text + n, sizeof time_text - n, ".%03ldZ", now.tv_nsec / 1000000);
    at = put_field(line, at, 0, "time", time_text);
    at = put_field(line, at, 0, "level", levels[said->level].name);
    if (c->command != NULL)
        at = put_field(line, at, 0, "command", c->command->name);
    if (c->mutex != NULL)
        at = put_field(line, at, 0, "mutex", show_name(c->mutex, shown, sizeof shown));
    if (c->token != 0)
        at += (size_t)snprintf(line + at, JSON_LINE_BYTES - at, ",\"token\":%llu",
                               (unsigned long long)c->token);
    if (c->store[0] != '\0')
        at = put_field(line, at, 0, "store", show_name(c->store, shown, sizeof shown));
    if (said->reason != NULL)
        at = put_field(line, at, 0, "reason", said->reason);
    at = put_field(line, at, 4, "text", text);
    line[at++] = '}';
    line[at++] = '\n';
    return at;
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

/* In the last column the cursor might go on to the next line. */
int status_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return COLUMNS - 1;
    return size.ws_col < WIDEST ? size.ws_col - 1 : WIDEST;
}

/* To so many characters. */
static void cut(char *text, int width)
{
    size_t keep = 0;
    if (width_of(text, strlen(text)) <= width)
        return;
    while (width_of(text, keep + 1) < width)
        keep++;
    memcpy(text + keep, "…", sizeof "…");
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
    cut(text + shown, status_width());
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

static bool cannot_make_json; /* a line of data is missing on stdout */

void print_json_text(struct json_buffer *t)
{
    json_buffer_add(t, "\n");
    if (!t->failed)
        fwrite(t->at, 1, t->length, stdout);
    cannot_make_json = cannot_make_json || t->failed;
    free(t->at);
}

void print_json(const char *format, ...)
{
    struct json_buffer t = {.is_line = true};
    va_list args;
    va_start(args, format);
    json_buffer_object_of(&t, format, args);
    va_end(args);
    print_json_text(&t);
}

struct step flush_stdout(const struct cli *c)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return !cannot_make_json
                   ? GO_ON
                   : print_error(c, "lines are missing on stdout: no memory to make JSON of them");
    if (errno == EPIPE)
        return end_with(EXIT_NO_READER);
    return print_error(c, "cannot write to stdout: %s", strerror(errno));
}

bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return (no == NULL || no[0] == '\0') && isatty(STDOUT_FILENO) != 0 &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

int width_of(const char *text, size_t bytes)
{
    int width = 0;
    for (size_t i = 0; i < bytes; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

int terminal_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

const char *show_duration(int64_t ms, char *out)
{
    long long s = (long long)(ms < 0 ? 0 : ms) / 1000;
    if (ms < 10000)
        snprintf(out, 24, "%lld.%llds", s, (long long)(ms < 0 ? 0 : ms) / 100 % 10);
    else if (s < 60)
        snprintf(out, 24, "%llds", s);
    else if (s < 3600)
        snprintf(out, 24, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, 24, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, 24, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return out;
}

static size_t show_time(int64_t ms, char out[static TICK_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    size_t length = strftime(out, TICK_SIZE, "%Y-%m-%dT%H:%M:%S", &t);
    if (ms % 1000 != 0)
        length += (size_t)snprintf(out + length, TICK_SIZE - length, ".%03d", (int)(ms % 1000));
    return length;
}

const char *show_tick(int64_t tick, char out[static TICK_SIZE])
{
    size_t length = show_time(tick, out);
    snprintf(out + length, TICK_SIZE - length, "Z");
    return out;
}

const char *show_local_tick(int64_t tick, int32_t offset_s, char out[static TICK_SIZE])
{
    size_t length = show_time(tick + offset_s * INT64_C(1000), out);
    int minutes = (offset_s < 0 ? -offset_s : offset_s) / 60;
    snprintf(out + length, TICK_SIZE - length, "%c%02d:%02d", offset_s < 0 ? '-' : '+',
             minutes / 60, minutes % 60);
    return out;
}

/* ---- suggestions --------------------------------------------------------------------------- */

const char *nearest(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        size_t d = text_distance(name, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}
