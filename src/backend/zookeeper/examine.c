/* examine.c: what an operator should know about an ensemble, as it is right now. Asks three sides:
 *
 *   each server of the URL   srvr and conf, on connections of their own; whoever hides them is not
 *                            thought ill of
 *   our session              its timeout, whom it is with
 *   the tree                 which servers vote (/zookeeper/config), and what we may do there: by a
 *                            transaction that makes nodes, deletes them, and then fails on purpose, so
 *                            that it changes nothing
 *
 * A timer looks what has come and goes on to the next side; nothing is waited for. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/zookeeper/connection.h"
#include "backend/zookeeper/health.h"
#include "backend/zookeeper/words.h"

#define TICK_MS 20
#define WORDS_MS 1500 /* a server that takes longer is as good as down */
#define WHOLE_MS 3500
#define CONFIG_NODE "/zookeeper/config"
#define ADDRESS_SIZE 280
#define PROBE_SIZE (PATH_SIZE + 64)

enum { OP_MAKE, OP_JOIN, OP_LEAVE, OP_FAIL, OPS };
enum { SRVR, CONF, WORDS };
enum stage { ASKING, CONNECTING, LOOKING, ENDED };

struct exam_host {
    struct exam *exam;
    struct resolve_question *question;
    struct word word[WORDS];
    char address[ADDRESS_SIZE];
    char why[96];
};

struct exam {
    struct exam *next, **before;
    struct zookeeper *store;
    struct simba_request *request;
    struct session *session;
    enum stage stage;
    int64_t words_until, until;
    uv_timer_t timer;
    unsigned handles; /* of the loop's, that hold on to us */
    unsigned flights; /* completions that will come */
    size_t hosts;
    struct zookeeper_server server[ZOOKEEPER_HOSTS_MAX];
    /* the tree */
    int voters;
    bool tried; /* the transaction has an answer */
    int tried_rc, list_rc;
    char path[PATH_SIZE]; /* the deepest part of our root's path that is there */
    char probe[PROBE_SIZE], probe_member[PROBE_SIZE], probe_none[PROBE_SIZE];
    zoo_op_t op[OPS];
    zoo_op_result_t result[OPS];
    struct exam_host host[];
};

/* ---- the end ---------------------------------------------------------------------------------- */

static void free_if_idle(struct exam *x)
{
    if (x->stage != ENDED || x->handles > 0 || x->flights > 0)
        return;
    *x->before = x->next;
    if (x->next != NULL)
        x->next->before = x->before;
    free(x);
}

static void on_handle_closed(struct exam *x)
{
    struct zookeeper *z = x->store;
    x->handles--;
    free_if_idle(x);
    zk_store_handle_closed(z);
}

static void on_timer_closed(uv_handle_t *timer)
{
    on_handle_closed(timer->data);
}

static void on_word_closed(struct word *w)
{
    on_handle_closed(w->data);
}

static void give_up_words(struct exam *x)
{
    for (size_t i = 0; i < x->hosts; i++) {
        struct exam_host *h = &x->host[i];
        if (h->question != NULL) {
            resolve_forget(h->question);
            snprintf(h->why, sizeof h->why, "its name is not resolved in time");
        }
        h->question = NULL;
        for (int j = 0; j < WORDS; j++)
            zk_word_give_up(&h->word[j]);
    }
}

static void end(struct exam *x, int code, const char *why)
{
    x->stage = ENDED;
    give_up_words(x);
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
    zk_store_answer(x->store, x->request,
                    &(struct simba_answer){.code = code, .age_ms = -1, .text = why});
}

/* The sessions are closed: no completion comes any more. */
void zk_examine_close(struct zookeeper *z)
{
    for (struct exam *x = z->exams, *next; x != NULL; x = next) {
        next = x->next;
        x->flights = 0;
        if (x->stage != ENDED)
            end(x, SIMBA_ECANCELED, "the client is being closed");
        free_if_idle(x);
    }
}

/* ---- what is said ------------------------------------------------------------------------------ */

static void say(void *exam, enum simba_level level, const char *line)
{
    struct exam *x = exam;
    x->store->host->say(x->store->host, x->request, level, line);
}

static void say_servers(struct exam *x)
{
    for (size_t i = 0; i < x->hosts; i++) {
        struct exam_host *h = &x->host[i];
        struct zookeeper_server *s = &x->server[i];
        s->address = h->address;
        if (h->word[SRVR].error != 0)
            snprintf(h->why, sizeof h->why, "%s", uv_strerror(h->word[SRVR].error));
        snprintf(s->why, sizeof s->why, "%s", h->why);
        zookeeper_server_read(s, h->word[SRVR].text, h->word[CONF].text);
    }
    zookeeper_ensemble_says(x->server, x->hosts, x->voters, say, x);
}

static void say_peer(struct exam *x)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    char host[64], port[16], line[HEALTH_LINE_MAX];
    const struct session *s = x->session;
    if (s->socket == NULL || getpeername(s->socket->fd, (struct sockaddr *)&peer, &size) != 0 ||
        getnameinfo((struct sockaddr *)&peer, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    snprintf(line, sizeof line, "our session, 0x%llx, is with the server at %s port %s",
             (unsigned long long)s->latch.id, host, port);
    say(x, SIMBA_LOG_INFO, line);
}

/* Before 3.5 there are none. */
static bool has_containers(const struct exam *x)
{
    int major, minor;
    for (size_t i = 0; i < x->hosts; i++) {
        if (sscanf(x->server[i].health.version, "%d.%d", &major, &minor) == 2 &&
            (major < 3 || (major == 3 && minor < 5)))
            return false;
    }
    return !x->store->no_containers;
}

static void say_session(struct exam *x)
{
    const struct session *s = x->session;
    const struct zookeeper_server *alone = &x->server[0];
    char line[HEALTH_LINE_MAX];
    bool serious;
    struct zookeeper_facts facts = {
        .asked_ms = s->latch.asked_ms,
        .granted_ms = s->latch.deadline.timeout,
        .world_writable = x->store->config.acl == ACL_OPEN,
        .containers = has_containers(x),
        .server = x->hosts == 1 && alone->state == SERVER_SERVES ? &alone->health : NULL};
    zookeeper_bounds_say(x->server, x->hosts, facts.asked_ms, facts.granted_ms, say, x);
    for (size_t n = 0; zookeeper_health_says(&facts, n, line, sizeof line, &serious); n++)
        say(x, SIMBA_LOG_WARN, line);
    if (facts.containers)
        say(x, SIMBA_LOG_INFO, "containers: the server removes the nodes of mutexes long unused");
    say(x, SIMBA_LOG_INFO,
        "leases are lengths of time, the servers' and ours: clocks may tell any time of day");
}

static const char *whoever(const struct exam *x, char out[ADDRESS_SIZE])
{
    const char *auth = x->store->config.auth;
    if (auth[0] == '\0')
        return "world:anyone";
    snprintf(out, ADDRESS_SIZE, "digest:%.*s:HASH", (int)strcspn(auth, ":"), auth);
    return out;
}

static void say_rights(struct exam *x)
{
    char line[HEALTH_LINE_MAX + 2 * PATH_SIZE], who[ADDRESS_SIZE];
    const char *below = strcmp(x->path, x->store->base) == 0 ? "" : ", where our root is to be";
    if (!x->tried) {
        snprintf(line, sizeof line, "rights: the tree did not answer in time");
        say(x, SIMBA_LOG_WARN, line);
    } else if (x->result[OP_MAKE].err == ZNOAUTH) {
        snprintf(
            line, sizeof line,
            "rights: no node can be made in %s%s. Its access list has to give create and read: "
            "setAcl %s %s:cr, by who has admin rights there; what is below is ours then",
            x->path, below, x->path, whoever(x, who));
        say(x, SIMBA_LOG_ERROR, line);
    } else if (x->result[OP_JOIN].err == ZNOAUTH || x->result[OP_LEAVE].err == ZNOAUTH) {
        snprintf(line, sizeof line,
                 "rights: the access list that our nodes get (option acl) does not let us in "
                 "ourselves: is the user's password another on this server?");
        say(x, SIMBA_LOG_ERROR, line);
    } else if (x->tried_rc != ZNONODE) {
        snprintf(line, sizeof line, "rights: they cannot be tried: %s", zerror(x->tried_rc));
        say(x, SIMBA_LOG_WARN, line);
    } else {
        snprintf(line, sizeof line,
                 "rights: nodes can be made in %s%s, and deleted below. Enough is create and read "
                 "there, and create, read, write and delete (crwd) in what is below",
                 x->path, below);
        say(x, SIMBA_LOG_INFO, line);
    }
    if (x->list_rc == ZNOAUTH) {
        snprintf(line, sizeof line,
                 "rights: %s cannot be listed: simba list and simba watch see no names. setAcl "
                 "with read as well: %s:cr",
                 x->path, whoever(x, who));
        say(x, SIMBA_LOG_WARN, line);
    }
}

static void report(struct exam *x)
{
    char line[HEALTH_LINE_MAX];
    bool connected = x->session != NULL && x->session->latch.connected;
    say_servers(x);
    if (connected) {
        say_peer(x);
        say_session(x);
        say_rights(x);
    } else {
        snprintf(line, sizeof line, "there is no session: %.400s",
                 x->session != NULL && x->session->why[0] != '\0' ? x->session->why
                                                                  : "no server has answered yet");
        say(x, SIMBA_LOG_ERROR, line);
    }
    end(x, 0, NULL);
}

/* ---- the tree --------------------------------------------------------------------------------- */

static struct exam *landed(const void *data)
{
    struct exam *x = (struct exam *)(uintptr_t)data;
    x->flights--;
    return x;
}

static void on_config(int rc, const char *value, int length, const struct Stat *stat,
                      const void *data)
{
    struct exam *x = landed(data);
    (void)stat;
    if (rc == ZOK && value != NULL && length > 0)
        x->voters = zookeeper_voters(value, (size_t)length);
    free_if_idle(x);
}

static void on_tried(int rc, const void *data)
{
    struct exam *x = landed(data);
    x->tried = true;
    x->tried_rc = rc;
    free_if_idle(x);
}

static void on_listed(int rc, const struct String_vector *names, const void *data)
{
    struct exam *x = landed(data);
    (void)names;
    x->list_rc = rc;
    free_if_idle(x);
}

static void try_rights(struct exam *x)
{
    struct zookeeper *z = x->store;
    const char *base = strcmp(x->path, "/") == 0 ? "" : x->path;
    snprintf(x->probe, sizeof x->probe, "%s/simba-doctor-%llx", base,
             (unsigned long long)x->session->latch.id);
    snprintf(x->probe_member, sizeof x->probe_member, "%.*s/member", PATH_SIZE + 40, x->probe);
    snprintf(x->probe_none, sizeof x->probe_none, "%.*s/none", PATH_SIZE + 40, x->probe);
    zoo_create_op_init(&x->op[OP_MAKE], x->probe, "", 0, z->acl, 0, NULL, 0);
    zoo_create_op_init(&x->op[OP_JOIN], x->probe_member, "", 0, z->acl, 0, NULL, 0);
    zoo_delete_op_init(&x->op[OP_LEAVE], x->probe_member, -1);
    zoo_check_op_init(&x->op[OP_FAIL], x->probe_none, -1);
    x->flights++;
    if (zoo_amulti(x->session->handle, OPS, x->op, x->result, on_tried, x) != ZOK)
        x->flights--;
    if (strcmp(x->path, z->base) != 0)
        return;
    x->flights++;
    if (zoo_aget_children(x->session->handle, x->path, 0, on_listed, x) != ZOK)
        x->flights--;
}

static void find_path(struct exam *x);

static void on_exists(int rc, const struct Stat *stat, const void *data)
{
    struct exam *x = landed(data);
    (void)stat;
    if (x->stage == LOOKING && rc == ZOK && x->session->latch.connected) {
        try_rights(x);
    } else if (x->stage == LOOKING && rc == ZNONODE && x->session->latch.connected) {
        char *slash = strrchr(x->path, '/');
        slash[slash == x->path ? 1 : 0] = '\0';
        find_path(x);
    }
    free_if_idle(x);
}

static void find_path(struct exam *x)
{
    x->flights++;
    if (zoo_aexists(x->session->handle, x->path, 0, on_exists, x) != ZOK)
        x->flights--;
}

static void look_at_tree(struct exam *x)
{
    x->stage = LOOKING;
    snprintf(x->path, sizeof x->path, "%s", x->store->base);
    find_path(x);
    x->flights++;
    if (zoo_aget(x->session->handle, CONFIG_NODE, 0, on_config, x) != ZOK)
        x->flights--;
    zk_connection_pump(x->session);
}

/* ---- the servers ------------------------------------------------------------------------------- */

static void ask_words(struct exam_host *h, const struct sockaddr *to)
{
    static const char *const words[WORDS] = {"srvr", "conf"};
    struct exam *x = h->exam;
    for (int i = 0; i < WORDS; i++) {
        if (!zk_word_ask(&h->word[i], x->store->host->loop, words[i], to, on_word_closed, x))
            continue;
        x->handles++;
        x->store->handles++;
    }
}

static void on_resolved(void *host, struct addrinfo *list, int code)
{
    struct exam_host *h = host;
    h->question = NULL;
    if (list == NULL) {
        snprintf(h->why, sizeof h->why, "%s", resolve_text(code));
        return;
    }
    ask_words(h, list->ai_addr);
    freeaddrinfo(list);
}

static void ask_server(struct exam *x, size_t n)
{
    const struct zookeeper_config *c = &x->store->config;
    struct exam_host *h = &x->host[n];
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    h->exam = x;
    bool colons = strchr(c->host[n].name, ':') != NULL;
    snprintf(h->address, sizeof h->address, colons ? "[%s]:%d" : "%s:%d", c->host[n].name,
             c->host[n].port);
    if (uv_ip4_addr(c->host[n].name, c->host[n].port, &four) == 0) {
        ask_words(h, (const struct sockaddr *)&four);
    } else if (uv_ip6_addr(c->host[n].name, c->host[n].port, &six) == 0) {
        ask_words(h, (const struct sockaddr *)&six);
    } else {
        h->question =
            resolve_ask(x->store->resolver, c->host[n].name, c->host[n].port, on_resolved, h);
        if (h->question == NULL)
            snprintf(h->why, sizeof h->why, "no thread to resolve its name with");
    }
}

static bool words_are_open(const struct exam *x)
{
    for (size_t i = 0; i < x->hosts; i++) {
        const struct exam_host *h = &x->host[i];
        if (h->question != NULL || h->word[SRVR].open || h->word[CONF].open)
            return true;
    }
    return false;
}

/* ---- one thing after the other ----------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer)
{
    struct exam *x = timer->data;
    int64_t now = simba_now();
    switch (x->stage) {
    case ASKING:
        if (words_are_open(x) && now < x->words_until)
            break;
        give_up_words(x);
        x->stage = CONNECTING;
        break;
    case CONNECTING:
        if (x->session != NULL && x->session->latch.connected)
            look_at_tree(x);
        else if (x->session == NULL || x->session->latch.hopeless || now >= x->until)
            report(x);
        break;
    case LOOKING:
        if (x->flights == 0 || now >= x->until)
            report(x);
        break;
    default:
        break;
    }
}

void zk_examine_store(void *store, struct simba_request *q)
{
    struct zookeeper *z = store;
    size_t hosts = z->config.hosts;
    struct exam *x = calloc(1, sizeof *x + hosts * sizeof *x->host);
    if (x == NULL) {
        zk_store_refuse(z, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    x->store = z;
    x->request = q;
    x->hosts = hosts;
    x->session = zk_session_for(z, q->ttl_ms + q->transition_ms);
    int64_t now = simba_now(), patience = z->host->connect_timeout_ms;
    x->words_until = now + (patience < WORDS_MS ? patience : WORDS_MS);
    x->until = now + WHOLE_MS;
    x->next = z->exams;
    x->before = &z->exams;
    if (x->next != NULL)
        x->next->before = &x->next;
    z->exams = x;
    uv_timer_init(z->host->loop, &x->timer);
    x->timer.data = x;
    x->handles = 1;
    z->handles++;
    for (size_t i = 0; i < hosts; i++)
        ask_server(x, i);
    uv_timer_start(&x->timer, on_tick, TICK_MS, TICK_MS);
}
