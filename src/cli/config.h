/* config.h: what is set where. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/step.h"

#define URL_MAX 4096
#define SERVE_ADDRESS ":7462" /* SIMB on the keys of a telephone */

enum setting_id {
    SET_URL,
    SET_TTL,
    SET_TRANSITION,
    SET_ID,
    SET_INITIAL_DELAY,
    SET_LISTEN,
    SET_LOG,
    SET_HISTORY,
    SET_SERVE_LISTEN, /* for simba serve, what files say of SET_LISTEN */
    SET_SERVE_HOST,
    SETTINGS
};

struct setting {
    const char *value;        /* NULL: not set */
    char where[URL_MAX + 64]; /* "--ttl", "SIMBA_TTL", "/etc/simba/simba.yaml:3", "default" */
    bool by_flag;
};

struct cli;

/* Environment, then files, for all that no flag has set. */
struct step config_load(struct cli *c);

/* Is it simba serve? Others do not have its settings. */
bool config_is_serve(const struct cli *c);

/* An option in a URL; freed by the caller. NULL: none. */
char *config_in_url(const char *url, const char *name);

/* The duration that a setting says, or `otherwise`. */
struct step config_duration(struct cli *c, enum setting_id id, int64_t otherwise, int64_t *ms);
#endif
