/* yaml.c: the configuration file: mappings and scalars, whose keys become one key with dots, so
 * that
 *     simba: {redis: {ttl: 15s}}      and      simba.redis.ttl: 15s
 * are the same. Read by libyaml; what YAML has beyond that (lists, anchors, several documents)
 * has no meaning here and is refused with its line. */
#include "cli/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "cli/cli.h"
#include "cli/messages.h"

#define FILE_BYTES_MAX 65536
#define KEY_BYTES_MAX 256
#define DEPTH_MAX 8

struct reader {
    struct cli *c;
    const char *path;
    yaml_fn *found;
    void *data;
    char key[KEY_BYTES_MAX];
    size_t length[DEPTH_MAX]; /* of the key, at each depth */
    int depth;                /* 0: outside of all mappings */
    bool has_key;             /* a key stands there, its value is next */
};

static struct step wrong(const struct reader *r, const yaml_mark_t *mark, const char *what)
{
    return print_error(r->c, "%s:%zu: %s", r->path, mark->line + 1, what);
}

static struct step take_key(struct reader *r, const yaml_event_t *e)
{
    size_t at = r->length[r->depth - 1];
    int n = snprintf(r->key + at, sizeof r->key - at, "%s%s", at > 0 ? "." : "",
                     (const char *)e->data.scalar.value);
    if (n < 0 || (size_t)n >= sizeof r->key - at)
        return wrong(r, &e->start_mark, "the key is too long");
    r->has_key = true;
    return GO_ON;
}

static struct step take_scalar(struct reader *r, const yaml_event_t *e)
{
    const char *value = (const char *)e->data.scalar.value;
    if (r->depth == 0)
        return value[0] == '\0' ? GO_ON : wrong(r, &e->start_mark, "not of the form KEY: VALUE");
    if (strlen(value) != e->data.scalar.length)
        return wrong(r, &e->start_mark, "the value holds a NUL byte");
    if (!r->has_key)
        return take_key(r, e);
    r->has_key = false;
    const char *why = r->found(r->data, r->key, value, (long)e->start_mark.line + 1);
    return why == NULL ? GO_ON : wrong(r, &e->start_mark, why);
}

static struct step take_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(r, e);
    case YAML_MAPPING_START_EVENT:
        if (r->depth == DEPTH_MAX || (r->depth > 0 && !r->has_key))
            return wrong(r, &e->start_mark, "nested too deeply, or a mapping used as a key");
        r->length[r->depth] = r->depth == 0 ? 0 : strlen(r->key);
        r->depth++;
        r->has_key = false;
        return GO_ON;
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        r->key[r->length[r->depth]] = '\0';
        r->has_key = false;
        return GO_ON;
    case YAML_SEQUENCE_START_EVENT:
        return wrong(r, &e->start_mark, "unexpected list: values are words, numbers or durations");
    case YAML_ALIAS_EVENT:
        return wrong(r, &e->start_mark, "unexpected alias (*name): write the value itself");
    default:
        return GO_ON;
    }
}

static struct step read_events(struct reader *r, yaml_parser_t *parser)
{
    yaml_event_t e;
    for (bool end = false; !end;) {
        if (yaml_parser_parse(parser, &e) == 0) {
            /* libyaml's own words; they quote nothing of the file */
            return wrong(r, &parser->problem_mark,
                         parser->problem != NULL ? parser->problem : "not YAML");
        }
        end = e.type == YAML_STREAM_END_EVENT;
        struct step step = take_event(r, &e);
        yaml_event_delete(&e);
        if (step.ends)
            return step;
    }
    return GO_ON;
}

static ssize_t read_all(int fd, char *out, size_t size)
{
    size_t at = 0;
    for (ssize_t n = 1; n > 0 && at < size; at += (size_t)n) {
        n = read(fd, out + at, size - at);
        if (n < 0)
            return -1;
    }
    return (ssize_t)at;
}

struct step yaml_read(struct cli *c, const char *path, yaml_fn *found, void *data)
{
    static char bytes[FILE_BYTES_MAX + 1];
    struct reader r = {.c = c, .path = path, .found = found, .data = data};
    yaml_parser_t parser;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return GO_ON;
    ssize_t size = fd < 0 ? -1 : read_all(fd, bytes, sizeof bytes);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0) /* going on without it could mean another store, and so another lock */
        return print_error(c, "cannot read the configuration file %s: %s", path, strerror(error));
    if (size > FILE_BYTES_MAX)
        return print_error(c, "the configuration file %s is longer than %d bytes", path,
                           FILE_BYTES_MAX);
    if (yaml_parser_initialize(&parser) == 0)
        return print_error(c, "cannot read the configuration file %s: out of memory", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, (size_t)size);
    struct step step = read_events(&r, &parser);
    yaml_parser_delete(&parser);
    explicit_bzero(bytes, sizeof bytes); /* there may be a password in it */
    return step;
}
