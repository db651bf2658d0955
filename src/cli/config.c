/* config.c: what is set, and where: flags, then SIMBA_*, then the user's file, then the machine's,
 * then defaults. In a file the keys are those of Simba for the JVM where it has them: what stands
 * under the kind of store (simba.redis.ttl) counts for URLs of that kind, before what stands under
 * simba itself. Options in the URL count before files. */
#include "cli/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schemes.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/yaml.h"

#define MACHINE_FILE "/etc/simba/simba.yaml"

static const struct {
    const char *variable, *key; /* variable NULL: none */
    bool in_groups;             /* the key exists below the kinds of stores, too */
} known[SETTINGS] = {
    [SET_URL] = {"SIMBA_URL", "url", false},
    [SET_TTL] = {"SIMBA_TTL", "ttl", true},
    [SET_TRANSITION] = {"SIMBA_TRANSITION", "transition", true},
    [SET_ID] = {"SIMBA_ID", "id", false},
    [SET_INITIAL_DELAY] = {"SIMBA_INITIAL_DELAY", "initial-delay", true},
    [SET_LISTEN] = {"SIMBA_LISTEN", "listen", false},
    [SET_LOG] = {"SIMBA_LOG", "log", false},
    [SET_HISTORY] = {"SIMBA_HISTORY", "history", false},
    [SET_SERVE_LISTEN] = {NULL, "serve.listen", false}, /* SIMBA_LISTEN is for every command */
    [SET_SERVE_HOST] = {"SIMBA_SERVE_HOST", "serve.host", false},
};

enum group { GENERAL, REDIS, JDBC, ZOOKEEPER, SQLITE, GROUPS };
static const char *const group_names[GROUPS] = {"", "redis.", "jdbc.", "zookeeper.", "sqlite."};

/* What one file says. */
struct file {
    char path[PATH_MAX];
    struct {
        char *value; /* NULL: nothing */
        long line;
    } said[GROUPS][SETTINGS];
    char why[256];
};

/* ---- files --------------------------------------------------------------------------------- */

static bool find_key(const char *key, enum group *group, enum setting_id *id)
{
    if (strncmp(key, "simba.", 6) != 0)
        return false;
    key += 6;
    *group = GENERAL;
    for (enum group g = REDIS; g < GROUPS; g++) {
        size_t length = strlen(group_names[g]);
        if (strncmp(key, group_names[g], length) == 0) {
            *group = g;
            key += length;
            break;
        }
    }
    for (*id = SET_URL; *id < SETTINGS; (*id)++) {
        if (strcmp(key, known[*id].key) == 0)
            return *group == GENERAL || known[*id].in_groups;
    }
    return false;
}

/* Keys of the JVM's Simba that say what the command does anyhow. */
static bool is_switch(const char *key)
{
    size_t length = strlen(key), end = strlen(".enabled");
    return strncmp(key, "simba.", 6) == 0 && length > end &&
           strcmp(key + length - end, ".enabled") == 0;
}

static bool is_ours(const char *key)
{
    return strncmp(key, "simba.", 6) == 0;
}

static const char *suggest(const char *key)
{
    static char texts[GROUPS * SETTINGS][40];
    const char *names[GROUPS * SETTINGS];
    size_t count = 0;
    for (enum group g = GENERAL; g < GROUPS; g++) {
        for (enum setting_id id = SET_URL; id < SETTINGS; id++) {
            if (g != GENERAL && !known[id].in_groups)
                continue;
            snprintf(texts[count], sizeof texts[count], "simba.%s%s", group_names[g],
                     known[id].key);
            names[count] = texts[count];
            count++;
        }
    }
    return text_nearest(key, names, count);
}

static const char *on_found(void *data, const char *key, const char *value, long line)
{
    struct file *f = data;
    enum group group;
    enum setting_id id;
    if (is_switch(key))
        return NULL;
    if (!find_key(key, &group, &id)) {
        const char *near = suggest(key);
        bool is_group = strcmp(key, "simba") == 0;
        for (enum group g = REDIS; g < GROUPS; g++) /* "simba.redis" */
            is_group = is_group || (strncmp(key, "simba.", 6) == 0 &&
                                    strlen(key) + 1 == 6 + strlen(group_names[g]) &&
                                    strncmp(key + 6, group_names[g], strlen(key) - 6) == 0);
        if (is_group)
            snprintf(f->why, sizeof f->why,
                     "%s: needs keys below it, indented, such as url: or ttl:, not a value", key);
        else
            snprintf(f->why, sizeof f->why, "unknown key %.100s%s%s%s", key,
                     near != NULL   ? "; did you mean "
                     : is_ours(key) ? "; the keys are url, ttl, transition, id, initial-delay, "
                                      "listen, log, history, "
                                      "serve.listen, serve.host"
                                    : "; all keys begin with simba., as in simba.url",
                     near != NULL ? near : "", near != NULL ? "?" : "");
        return f->why;
    }
    if (f->said[group][id].value != NULL) {
        snprintf(f->why, sizeof f->why, "%.100s is set a second time, after line %ld", key,
                 f->said[group][id].line);
        return f->why;
    }
    f->said[group][id].value = strdup(value); /* for the life of the program */
    f->said[group][id].line = line;
    return f->said[group][id].value != NULL ? NULL : "out of memory";
}

/* False: there is no such place, as in an environment without a home. */
static bool user_file(char *out, size_t size)
{
    const char *config = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    int n = -1;
    if (config != NULL && config[0] == '/')
        n = snprintf(out, size, "%s/simba/simba.yaml", config);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, size, "%s/.config/simba/simba.yaml", home);
    return n > 0 && (size_t)n < size;
}

/* ---- what counts --------------------------------------------------------------------------- */

static enum group group_of(const char *url)
{
    static const enum group groups[STORE_KINDS] = {[STORE_SQLITE] = SQLITE,
                                                   [STORE_REDIS] = REDIS,
                                                   [STORE_MYSQL] = JDBC,
                                                   [STORE_POSTGRES] = JDBC,
                                                   [STORE_ZOOKEEPER] = ZOOKEEPER};
    return url != NULL ? groups[scheme_kind(url)] : SQLITE; /* the default is a database file */
}

/* The value of an option in the URL, as it stands there; NULL: none. It is copied. */
char *config_in_url(const char *url, const char *name)
{
    const char *at = url != NULL ? strchr(url, '?') : NULL;
    size_t length = strlen(name);
    for (; at != NULL; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return strndup(at + length + 1, strcspn(at + length + 1, "&"));
    }
    return NULL;
}

static void take_environment(struct cli *c)
{
    for (enum setting_id id = SET_URL; id < SETTINGS; id++) {
        struct setting *s = &c->setting[id];
        const char *name = s->value == NULL ? known[id].variable : NULL;
        const char *value = name != NULL ? secure_getenv(name) : NULL;
        if (value != NULL && value[0] != '\0') {
            s->value = value;
            snprintf(s->where, sizeof s->where, "%s", name);
        }
    }
}

static void take_said(struct cli *c, struct file *f, enum group group, enum setting_id id)
{
    struct setting *s = &c->setting[id];
    if (s->value != NULL || f->said[group][id].value == NULL)
        return;
    s->value = f->said[group][id].value;
    snprintf(s->where, sizeof s->where, "%.4000s:%ld", f->path, f->said[group][id].line);
}

static void take_url_option(struct cli *c, enum setting_id id)
{
    struct setting *s = &c->setting[id];
    if (s->value != NULL || !known[id].in_groups)
        return;
    s->value = config_in_url(c->setting[SET_URL].value, known[id].key);
    if (s->value != NULL)
        snprintf(s->where, sizeof s->where, "the URL");
}

bool config_is_serve(const struct cli *c)
{
    return strcmp(c->command->name, "serve") == 0;
}

/* An address is for one process. simba serve has a key of its own; and where a simba runs in CMD, the one
 * around it has the address. */
static bool ignores_listen(const struct cli *c)
{
    return config_is_serve(c) || secure_getenv("SIMBA_FENCING_TOKEN") != NULL;
}

struct step config_load(struct cli *c)
{
    static struct file file[2];
    memset(file, 0, sizeof file);
    take_environment(c);
    snprintf(file[1].path, sizeof file[1].path, "%s", MACHINE_FILE);
    struct step step = GO_ON;
    if (user_file(file[0].path, sizeof file[0].path))
        step = yaml_read(c, file[0].path, on_found, &file[0]);
    step = AND_THEN(step, yaml_read(c, file[1].path, on_found, &file[1]));
    if (step.ends)
        return step;
    for (int i = 0; i < 2; i++)
        take_said(c, &file[i], GENERAL, SET_URL);
    enum group group = group_of(c->setting[SET_URL].value);
    for (enum setting_id id = SET_TTL; id < SETTINGS; id++) {
        take_url_option(c, id);
        for (int i = 0; i < 2 && !(id == SET_LISTEN && ignores_listen(c)); i++) {
            take_said(c, &file[i], group, id);
            take_said(c, &file[i], GENERAL, id);
        }
        if (c->setting[id].value == NULL)
            snprintf(c->setting[id].where, sizeof c->setting[id].where, "default");
    }
    if (config_is_serve(c) && c->setting[SET_LISTEN].value == NULL)
        c->setting[SET_LISTEN] = c->setting[SET_SERVE_LISTEN];
    return GO_ON;
}

struct step config_duration(struct cli *c, enum setting_id id, int64_t otherwise, int64_t *ms)
{
    const struct setting *s = &c->setting[id];
    *ms = otherwise;
    if (s->value == NULL || simba_duration_parse(s->value, ms) == 0)
        return GO_ON;
    if (s->by_flag)
        return usage(c, "%s: %s", s->where, simba_error_text());
    return print_error(c, "%s: %s", s->where, simba_error_text());
}
