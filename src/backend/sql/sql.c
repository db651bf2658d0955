/* sql.c: see sql.h. The store as the runtime sees it. */
#include "backend/sql/sql.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/kit/findings.h"

void sql_fail(struct sql *s, int code, const char *format, ...)
{
    va_list args;
    s->code = code;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args); // NOLINT(clang-analyzer-valist.Uninitialized)
    va_end(args);
}

/* Those that have to ask the server now. */
static struct simba_request *hold_back(struct sql *s, struct simba_request *batch)
{
    struct simba_request *rest = NULL, **last = &rest;
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next;
        if (s->connection != NULL &&
            (sql_queue_holds_back(s, batch) || sql_pass_holds_back(s, batch)))
            continue;
        *last = batch;
        last = &batch->next;
    }
    *last = NULL;
    return rest;
}

/* While there is hope requests wait for a connection; else the last failure is the answer. */
void sql_submit(void *store, struct simba_request *batch)
{
    struct sql *s = store;
    if (s->resting && !reconnect_is_hopeful(&s->reconnect)) {
        pending_refuse_list(s->host, batch, s->code, s->why);
        return;
    }
    batch = hold_back(s, batch);
    if (batch == NULL)
        return;
    s->passes.invites = false;
    sql_pass_invite(s, batch);
    pending_add(&s->waiting, batch);
    if (!s->passes.invites) /* else sql_work() goes on, or the one who was invited */
        sql_connection_go_on(s);
}

void sql_examine(void *store, struct simba_request *q)
{
    const struct sql *s = store;
    const struct findings f = {s->host, q};
    if (s->connection == NULL)
        findings_say(&f, SIMBA_LOG_WARN, "%s: %s",
                     s->code == SIMBA_ESCHEMA ? "connected to the server, but its table is no use"
                                              : "not connected to the server",
                     s->why[0] != '\0' ? s->why
                     : s->connecting   ? "it has not answered yet"
                                       : "nothing was asked of it yet");
    else
        sql_inspect_say(s->connection->session.inspection, &f);
    if (s->connection != NULL && !s->dialect->can_notify)
        findings_say(
            &f, SIMBA_LOG_INFO,
            "this kind of server cannot push: waiters poll, at first often (option poll)%s",
            s->dialect->has_queue && !sql_queue_is_off(s)
                ? ", and are woken by locks by name (GET_LOCK)"
                : "");
    findings_end(&f);
}

static void free_store(void *store)
{
    struct sql *s = store;
    sql_statement_free(&s->statement);
    sql_queue_free(s);
    free(s);
}

void sql_close(void *store)
{
    struct sql *s = store;
    static const char why[] = "the client is being closed";
    s->closing = true;
    if (s->job != NULL) {
        sql_fail(s, SIMBA_ECANCELED, "%s", why);
        sql_replies_ended(s, SQL_BROKEN);
    }
    sql_connection_close(s);
    sql_queue_close(s);
    pending_add(&s->waiting, pending_take(&s->passes.later));
    sql_answers_refuse_all(s, SIMBA_ECANCELED, why);
    handles_close(&s->handles, &s->passes.timer);
    handles_close(&s->handles, &s->timeout);
    handles_close(&s->handles, &s->poller.timer);
    offload_close(s->offload, handles_drop, &s->handles);
}

/* The client libraries use OpenSSL, which is set up at its first use, in many steps and under
 * locks. A program that forks right after simba_open() must not have them half done in its
 * child, which would hang. */
static void prepare_openssl(void)
{
    unsigned char out[EVP_MAX_MD_SIZE];
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT,
                        NULL); /* the loop may be in it when exit() is called */
    OPENSSL_init_ssl(0, NULL);
    EVP_Digest("", 0, out, NULL, EVP_sha1(), NULL);
    EVP_Digest("", 0, out, NULL, EVP_sha256(), NULL);
    RAND_bytes(out, 1);
}

static int open_store(struct simba_host *host, const struct sql_dialect *dialect, void *config,
                      struct sql **out)
{
    struct sql *s = *out = calloc(1, sizeof *s);
    if (s == NULL)
        return SIMBA_ELIMIT;
    if (sql_queue_open(s) == 0)
        s->offload = offload_open(host->loop, config, dialect->free_config);
    if (s->offload == NULL) {
        sql_queue_free(s);
        free(s);
        return SIMBA_ELIMIT;
    }
    s->host = host;
    s->dialect = dialect;
    s->jobs_last = &s->jobs;
    pending_init(&s->waiting);
    pending_init(&s->passes.later);
    reconnect_init(&s->reconnect);
    handles_init(&s->handles, host, free_store, s);
    handles_add(&s->handles); /* of the offload */
    handles_add_timer(&s->handles, &s->timeout, s);
    handles_add_timer(&s->handles, &s->poller.timer, s);
    handles_add_timer(&s->handles, &s->queue.timer, s);
    handles_add_timer(&s->handles, &s->passes.timer, s);
    return 0;
}

int sql_open(struct simba_host *host, const struct sql_dialect *dialect,
             const struct simba_url *url, void **store, char *why, size_t why_size)
{
    const struct options o = {url, why, why_size};
    struct sql *s = NULL;
    int64_t poll_ms;
    void *config = calloc(1, dialect->config_size);
    options_refuse(&o, 0, "out of memory"); /* unless something better is said */
    if (config == NULL)
        return SIMBA_ELIMIT;
    prepare_openssl();
    int rc = dialect->read_config(&o, host, config);
    if (rc == 0)
        rc = sql_config_poll(&o, &poll_ms);
    if (rc == 0)
        rc = open_store(host, dialect, config, &s);
    if (rc != 0) {
        dialect->free_config(config);
        return rc;
    }
    s->poller.poll_ms = poll_ms;
    *store = s;
    return 0;
}
