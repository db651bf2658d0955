/* request.c: see request.h. What is no plain request is refused, and not mended: whoever sends it means
 * something else than we would understand. */
#include "cli/run/request.h"

#include <string.h>
#include <strings.h>

#define BLANKS " \t"

size_t request_length(const char *bytes, size_t count)
{
    const char *end = bytes + count, *at = bytes;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        size_t more = at < end && *at == '\r' ? 1 : 0;
        if (at + more < end && at[more] == '\n')
            return (size_t)(at - bytes) + more + 1;
    }
    return 0;
}

static bool parse_header(char *line, struct request_head *q)
{
    char *value = strchr(line, ':');
    if (value == NULL || value == line || strcspn(line, BLANKS) < (size_t)(value - line))
        return false;
    *value++ = '\0';
    value += strspn(value, BLANKS);
    for (size_t n = strlen(value); n > 0 && strchr(BLANKS, value[n - 1]) != NULL; n--)
        value[n - 1] = '\0';
    if (strcasecmp(line, "Host") == 0)
        q->host = q->host == NULL ? value : "";
    else if (strcasecmp(line, "Connection") == 0)
        q->keeps = q->keeps && strcasestr(value, "close") == NULL;
    else if (strcasecmp(line, "Content-Length") == 0)
        q->has_body = q->has_body || strcmp(value, "0") != 0;
    else if (strcasecmp(line, "Transfer-Encoding") == 0)
        q->has_body = true;
    return true;
}

static char *next_line(char **text)
{
    char *line = strsep(text, "\n");
    size_t n = line != NULL ? strlen(line) : 0;
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    return line;
}

int request_parse(char *bytes, size_t length, struct request_head *q)
{
    *q = (struct request_head){.host = NULL};
    if (memchr(bytes, '\0', length) != NULL)
        return 400;
    bytes[length - 1] = '\0';
    char *text = bytes, *rest = next_line(&text), *line;
    q->method = strsep(&rest, " ");
    char *path = strsep(&rest, " ");
    q->path = path;
    if (rest == NULL || q->method[0] == '\0' || path[0] == '\0' || strncmp(rest, "HTTP/", 5) != 0 ||
        strchr(rest, ' ') != NULL)
        return 400;
    q->keeps = strcmp(rest, "HTTP/1.1") == 0;
    if (!q->keeps && strcmp(rest, "HTTP/1.0") != 0)
        return 505;
    q->is_head = strcmp(q->method, "HEAD") == 0;
    path[strcspn(path, "?")] = '\0';
    while ((line = next_line(&text)) != NULL && line[0] != '\0') {
        if (!parse_header(line, q))
            return 400;
    }
    return 0;
}
