/* say.c: words for people on stderr, data for programs on stdout. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

#define LINE_MAX_BYTES 2048

/* One write, so that lines of several processes do not mix. Names and ids may be anybody's: nothing in them
 * moves the cursor or begins another line. */
static void line(const struct cli *c, const char *format, va_list args)
{
    char raw[LINE_MAX_BYTES], text[LINE_MAX_BYTES];
    const char *command = c->args.command;
    int n = snprintf(raw, sizeof raw, "simba%s%s: ", command != NULL ? " " : "",
                     command != NULL ? command : "");
    (void)!vsnprintf(raw + n, sizeof raw - (size_t)n, format, args);
    size_t length = strlen(show_name(raw, text, sizeof text - 1));
    text[length] = '\n';
    if (write(STDERR_FILENO, text, length + 1) < 0)
        return; /* nobody listens: nothing can be said about that */
}

void say(const struct cli *c, const char *format, ...)
{
    va_list args;
    if (c->quiet)
        return;
    va_start(args, format);
    line(c, format, args);
    va_end(args);
}

void complain(const struct cli *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, format, args);
    va_end(args);
}

int usage(const struct cli *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line(c, format, args);
    va_end(args);
    const char *command = c->args.command;
    dprintf(STDERR_FILENO, "Try: simba %s%s--help\n", command != NULL ? command : "",
            command != NULL ? " " : "");
    return EXIT_USAGE;
}

void print_json(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_t *value = json_vpack_ex(NULL, 0, format, args);
    va_end(args);
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    printf("%s\n", text != NULL ? text : "null");
    free(text);
    json_decref(value);
}

void flush_stdout(const struct cli *c)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (errno != EPIPE)
        complain(c, "cannot write to stdout: %s", strerror(errno));
    _exit(errno == EPIPE ? EXIT_NO_READER : EXIT_TROUBLE);
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

/* ---- suggestions ----------------------------------------------------------------------------- */

#define WORD_MAX 32

/* How many letters must be changed, added or left out (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], la = strlen(a), lb = strlen(b);
    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t add = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < add ? change : add;
        }
    }
    return row[lb];
}

const char *nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, words[i]);
        if (d < least) {
            least = d;
            best = words[i];
        }
    }
    return best;
}
