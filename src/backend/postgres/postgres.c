/* postgres.c: the store as the runtime sees it, and the driver as the frame of backend/sql does. */
#include "backend/postgres/postgres.h"

#include "backend/sql/connection.h"

static int get_fd(void *connection)
{
    return PQsocket(((struct postgres_connection *)connection)->conn);
}

static size_t group_of(void *connection, int op)
{
    (void)connection;
    (void)op;
    return SQL_JOB_MAX;
}

static bool tells(void *connection)
{
    return ((struct postgres_connection *)connection)->tells;
}

static const char *remark(void *connection)
{
    const struct postgres_connection *l = connection;
    return l->pooled && !l->tells
               ? "there is a pooler before the server, where LISTEN does nothing: mutexes that are "
                 "waited "
                 "for are looked at every now and then (?poll=). If it pools sessions only, add "
                 "listen=on to the URL"
               : NULL;
}

static const struct sql_inspection *inspection(void *connection)
{
    return &((struct postgres_connection *)connection)->inspection;
}

static const char *read_only(void *connection)
{
    return sql_inspect_read_only(&((struct postgres_connection *)connection)->inspection);
}

const struct sql_driver postgres_driver = {
    .rereads = true,
    .connect = postgres_connection_open,
    .disconnect = postgres_connection_close,
    .read_config = postgres_config_read,
    .free_config = postgres_config_free,
    .config_size = sizeof(struct postgres_config),
    .fd = get_fd,
    .group = group_of,
    .tells = tells,
    .remark = remark,
    .read_only = read_only,
    .begin = postgres_perform_begin,
    .go_on = postgres_perform_go_on,
    .idle = postgres_perform_idle,
    .inspection = inspection,
};

static int open_store(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    return sql_open(host, &postgres_driver, url, store, why, why_size);
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

const struct simba_backend postgres_backend = {
    .version = SIMBA_BACKEND_VERSION,
    .schemes = schemes,
    .options = postgres_config_options,
    .open = open_store,
    .submit = sql_submit,
    .watch = sql_watch,
    .close = sql_close,
    .examine = sql_examine,
    .work = sql_work,
};
