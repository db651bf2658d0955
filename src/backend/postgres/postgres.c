/* postgres.c: the store as the runtime sees it, and the dialect as the frame of backend/sql does. */
#include "backend/postgres/postgres.h"

static const struct sql_dialect dialect = {
    .see_locks = "pg_locks",
    .can_notify = true,
    .connect = postgres_connection_open,
    .disconnect = postgres_connection_close,
    .read_config = postgres_config_read,
    .free_config = postgres_config_free,
    .config_size = sizeof(struct postgres_config),
    .begin = postgres_perform_begin,
    .go_on = postgres_perform_go_on,
    .idle = postgres_perform_idle,
};

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    return sql_open(host, &dialect, url, store, why, why_size);
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

const struct simba_backend postgres_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = postgres_config_options,
    .open = open_store,
    .submit = sql_submit,
    .asks = true,
    .watch = sql_watch,
    .close = sql_close,
    .examine = sql_examine,
    .work = sql_work,
};
