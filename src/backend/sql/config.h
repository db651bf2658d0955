/* config.h: what the URLs of SQL stores have in common. All as in kit/options.h. */
#ifndef BACKEND_SQL_CONFIG_H
#define BACKEND_SQL_CONFIG_H

#include "backend/kit/options.h"

/* ?create=: what to do about a table that is missing, or an old one. */
enum sql_create {
    SQL_CREATE_NEVER,  /* off */
    SQL_CREATE_TABLE,  /* on: if there is none */
    SQL_CREATE_UPGRADE /* upgrade: and make one of JVM Simba's one like ours */
};
int sql_config_create(const struct options *o, enum sql_create *out);

int sql_config_poll(const struct options *o, int64_t *ms);
int sql_config_password(const struct options *o, char **out); /* secrets_free() */
bool sql_config_is_local(const char *host);                   /* NULL: a unix socket */
#endif
