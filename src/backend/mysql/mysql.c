/* mysql.c: the store as the runtime sees it, and the dialect as the frame of backend/sql does. */
#include "backend/mysql/mysql.h"

/* Nothing is said unasked, but for good-bye. */
static bool idle(struct sql *s, void *connection)
{
    (void)s;
    (void)connection;
    return false;
}

static const struct sql_dialect dialect = {
    .same_names_help =
        "give the columns mutex and owner_id a binary collation (docs/guides/mysql.md)",
    .see_locks = "SHOW PROCESSLIST",
    .has_queue = true,
    .connect = mysql_connection_open,
    .disconnect = mysql_connection_close,
    .read_config = mysql_config_read,
    .free_config = mysql_config_free,
    .config_size = sizeof(struct mysql_config),
    .begin = mysql_perform_begin,
    .go_on = mysql_perform_go_on,
    .idle = idle,
};

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    mysql_server_init(0, NULL, NULL); /* once, and not on a thread, for those who fork */
    return sql_open(host, &dialect, url, store, why, why_size);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};
static const char *const options[] = {"socket",   "poll",    "password_file", "tls",    "tls_ca",
                                      "tls_cert", "tls_key", "tls_verify",    "create", "returning",
                                      NULL};

const struct simba_backend mysql_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = options,
    .open = open_store,
    .submit = sql_submit,
    .asks = true,
    .short_ids = true, /* tables of JVM Simba 2.9 */
    .watch = sql_watch,
    .close = sql_close,
    .examine = sql_examine,
    .work = sql_work,
};
