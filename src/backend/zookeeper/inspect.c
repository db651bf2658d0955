/* inspect.c: see inspect.h. Asks three sides:
 *
 *   each server of the URL   srvr and conf, on connections of their own; whoever hides them is not
 *                            thought ill of
 *   our session              its timeout, whom it is with
 *   the tree                 which servers vote (/zookeeper/config), and what we may do there: by a
 *                            transaction that makes nodes, deletes them, and then fails on purpose, so
 *                            that it changes nothing
 *
 * A timer looks what has come and goes on to the next side; nothing is waited for. */
#include "backend/zookeeper/inspect.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/zookeeper/connection.h"
#include "backend/zookeeper/ensemble.h"
#include "backend/zookeeper/four_letter.h"
#include "backend/zookeeper/note.h"

#define TICK_MS 20
#define SERVERS_MS 1500 /* a server that takes longer is as good as down */
#define RESOLVE_MS 500  /* its name, on top of that */
#define WHOLE_MS 3500
#define CONFIG_NODE "/zookeeper/config"
#define PROBE_SIZE (PATH_SIZE + 64)

enum { OP_MAKE, OP_JOIN, OP_LEAVE, OP_FAIL, OPS };
enum { NOTE_MAKE, NOTE_FAIL, NOTE_OPS };
enum stage { ASKING, CONNECTING, READING, ENDED };

struct zookeeper_inspection {
    struct zookeeper_inspection *next, **before;
    struct zookeeper *store;
    struct simba_request *request;
    struct session *session;
    struct findings findings;
    enum stage stage;
    int64_t servers_until, until;
    uv_timer_t timer;
    bool timer_closed;
    unsigned flights; /* completions that will come */
    struct asked_server {
        struct zookeeper_inspection *of;
        struct four_letter *question; /* NULL: it has ended */
    } asked[ZOOKEEPER_HOSTS_MAX];
    struct ensemble_server server[ZOOKEEPER_HOSTS_MAX];
    int voters;
    int tried_rc, list_rc;
    char path[PATH_SIZE]; /* the deepest part of our root's path that is there */
    char probe[PROBE_SIZE], probe_member[PROBE_SIZE], probe_none[PROBE_SIZE];
    zoo_op_t op[OPS];
    zoo_op_result_t result[OPS];
    char folder[PATH_SIZE]; /* of the notes */
    bool has_folder;
    int note_rc; /* ZOK: they can be kept; ZOPERATIONTIMEOUT: that was not tried */
    char note_probe[PROBE_SIZE];
    zoo_op_t note_op[NOTE_OPS];
    zoo_op_result_t note_result[NOTE_OPS];
};

/* ---- the end ------------------------------------------------------------------------------- */

static void free_if_idle(struct zookeeper_inspection *x)
{
    if (!x->timer_closed || x->flights > 0)
        return;
    *x->before = x->next;
    if (x->next != NULL)
        x->next->before = x->before;
    free(x);
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct zookeeper_inspection *x = timer->data;
    struct handles *handles = &x->store->handles;
    x->timer_closed = true;
    free_if_idle(x);
    handles_drop(handles);
}

static void forget_servers(struct zookeeper_inspection *x)
{
    for (size_t i = 0; i < x->store->config.hosts; i++) {
        if (x->asked[i].question != NULL)
            zk_four_letter_forget(x->asked[i].question);
        x->asked[i].question = NULL;
    }
}

static void end(struct zookeeper_inspection *x, int code, const char *why)
{
    x->stage = ENDED;
    forget_servers(x);
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
    pending_refuse(x->store->host, x->request, code, why);
}

void zk_inspect_close(struct zookeeper *z)
{
    for (struct zookeeper_inspection *x = z->inspections; x != NULL; x = x->next) {
        if (x->stage != ENDED)
            end(x, SIMBA_ECANCELED, "the client is being closed");
    }
}

/* ---- what is said -------------------------------------------------------------------------- */

static void say_session(const struct zookeeper_inspection *x)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    char host[64], port[16];
    const struct findings *f = &x->findings;
    const struct session *s = x->session;
    if (s->socket != NULL && getpeername(s->socket->fd, (struct sockaddr *)&peer, &size) == 0 &&
        getnameinfo((struct sockaddr *)&peer, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        findings_say(f, SIMBA_LOG_INFO, "our session, 0x%llx, is with the server at %s port %s",
                     (unsigned long long)s->latch.id, host, port);
    size_t hosts = x->store->config.hosts;
    zk_ensemble_say_timeout(f, s->latch.asked_ms, s->latch.deadline.timeout,
                            zk_ensemble_tick_ms(x->server, hosts));
    zk_ensemble_say_bounds(f, x->server, hosts);
    if (x->store->config.acl == ACL_OPEN)
        findings_say(f, SIMBA_LOG_WARN,
                     "anybody who reaches the server can delete our nodes: give a user and a "
                     "password, as in zookeeper://USER:PASSWORD@host");
    if (x->store->no_containers)
        findings_say(f, SIMBA_LOG_WARN,
                     "the server is older than 3.5: a node stays for each mutex ever used");
}

/* They are beside our root; as long as that is missing, its rights are theirs. */
static void say_note_rights(const struct zookeeper_inspection *x, const char *who)
{
    static const char without[] =
        "there are no notes, and so no 'simba once', nor 'simba schedule' with --cron or --every";
    const struct findings *f = &x->findings;
    int parent = (int)strlen(x->store->config.chroot);
    if (x->note_rc == ZOK)
        findings_say(f, SIMBA_LOG_INFO, "rights: notes can be kept in %s", x->folder);
    else if (x->note_rc == ZNOAUTH && x->has_folder)
        findings_say(
            f, SIMBA_LOG_WARN,
            "rights: no node can be made in %s: %s. setAcl %s %s:crw, by who has admin rights "
            "there",
            x->folder, without, x->folder, who);
    else if (x->note_rc == ZNOAUTH)
        findings_say(
            f, SIMBA_LOG_WARN,
            "rights: no node can be made in %.*s, where %s is to be: %s. Have it made by who "
            "may: create %s '' %s:crw",
            parent > 0 ? parent : 1, x->folder, x->folder, without, x->folder, who);
}

static void say_rights(const struct zookeeper_inspection *x)
{
    const struct findings *f = &x->findings;
    const char *auth = x->store->config.auth, *path = x->path;
    const char *below = strcmp(path, x->store->base) == 0 ? "" : ", where our root is to be";
    char who[280] = "world:anyone";
    if (auth[0] != '\0')
        snprintf(who, sizeof who, "digest:%.*s:HASH", (int)strcspn(auth, ":"), auth);
    say_note_rights(x, who);
    if (x->result[OP_MAKE].err == ZNOAUTH)
        findings_say(
            f, SIMBA_LOG_ERROR,
            "rights: no node can be made in %s%s. Its access list has to give create and read: "
            "setAcl %s %s:cr, by who has admin rights there; what is below is ours then",
            path, below, path, who);
    else if (x->result[OP_JOIN].err == ZNOAUTH || x->result[OP_LEAVE].err == ZNOAUTH)
        findings_say(f, SIMBA_LOG_ERROR,
                     "rights: the access list that our nodes get (option acl) does not let us in "
                     "ourselves: is the user's password another on this server?");
    else if (x->tried_rc != ZNONODE)
        findings_say(f, SIMBA_LOG_WARN, "rights: they cannot be tried: %s", zerror(x->tried_rc));
    else
        findings_say(f, SIMBA_LOG_INFO, "rights: nodes can be made in %s%s, and deleted below",
                     path, below);
    if (x->list_rc == ZNOAUTH)
        findings_say(f, SIMBA_LOG_WARN,
                     "rights: %s cannot be listed: simba list and simba watch see no names. "
                     "setAcl with read as well: %s:cr",
                     path, who);
}

static void report(struct zookeeper_inspection *x)
{
    const struct session *s = x->session;
    zk_ensemble_say_servers(&x->findings, x->server, x->store->config.hosts, x->voters);
    if (s != NULL && s->latch.connected) {
        say_session(x);
        say_rights(x);
    } else {
        findings_say(&x->findings, SIMBA_LOG_ERROR, "no session with the servers: %s",
                     s != NULL && s->why[0] != '\0' ? s->why : "no server has answered yet");
    }
    end(x, 0, NULL);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static struct zookeeper_inspection *arrived(const void *data)
{
    struct zookeeper_inspection *x = (struct zookeeper_inspection *)(uintptr_t)data;
    x->flights--;
    return x;
}

static void sent(struct zookeeper_inspection *x, int rc)
{
    x->flights += rc == ZOK;
}

static void on_config(int rc, const char *value, int length, const struct Stat *stat,
                      const void *data)
{
    struct zookeeper_inspection *x = arrived(data);
    (void)stat;
    if (rc == ZOK && value != NULL && length > 0)
        x->voters = zk_ensemble_voters(value, (size_t)length);
    free_if_idle(x);
}

static void on_tried(int rc, const void *data)
{
    struct zookeeper_inspection *x = arrived(data);
    x->tried_rc = rc;
    free_if_idle(x);
}

static void on_listed(int rc, const struct String_vector *names, const void *data)
{
    struct zookeeper_inspection *x = arrived(data);
    (void)names;
    x->list_rc = rc;
    free_if_idle(x);
}

/* A node in the folder of notes, or, as long as that is missing, the folder itself: made by a
 * transaction that fails on purpose. */
static void on_note_tried(int rc, const void *data);

static void try_notes(struct zookeeper_inspection *x)
{
    const struct zookeeper *z = x->store;
    zk_note_folder(z, x->folder);
    snprintf(x->note_probe, sizeof x->note_probe, x->has_folder ? "%s/simba-doctor-%llx" : "%s",
             x->folder, (unsigned long long)x->session->latch.id);
    zoo_create_op_init(&x->note_op[NOTE_MAKE], x->note_probe, "", 0, z->acl, 0, NULL, 0);
    zoo_check_op_init(&x->note_op[NOTE_FAIL], x->probe_none, -1);
    sent(x, zoo_amulti(x->session->handle, NOTE_OPS, x->note_op, x->note_result, on_note_tried, x));
}

static void on_note_tried(int rc, const void *data)
{
    struct zookeeper_inspection *x = arrived(data);
    int made = x->note_result[NOTE_MAKE].err;
    if (made == ZNONODE && x->has_folder && x->stage == READING && x->session->latch.connected) {
        x->has_folder = false;
        try_notes(x);
    } else {
        x->note_rc = made == ZNOAUTH ? ZNOAUTH : rc == ZNONODE ? ZOK : rc;
    }
    free_if_idle(x);
}

static void try_rights(struct zookeeper_inspection *x)
{
    const struct zookeeper *z = x->store;
    zhandle_t *handle = x->session->handle;
    const char *base = strcmp(x->path, "/") == 0 ? "" : x->path;
    snprintf(x->probe, sizeof x->probe, "%s/simba-doctor-%llx", base,
             (unsigned long long)x->session->latch.id);
    snprintf(x->probe_member, sizeof x->probe_member, "%.*s/member", PATH_SIZE + 40, x->probe);
    snprintf(x->probe_none, sizeof x->probe_none, "%.*s/none", PATH_SIZE + 40, x->probe);
    zoo_create_op_init(&x->op[OP_MAKE], x->probe, "", 0, z->acl, 0, NULL, 0);
    zoo_create_op_init(&x->op[OP_JOIN], x->probe_member, "", 0, z->acl, 0, NULL, 0);
    zoo_delete_op_init(&x->op[OP_LEAVE], x->probe_member, -1);
    zoo_check_op_init(&x->op[OP_FAIL], x->probe_none, -1);
    sent(x, zoo_amulti(handle, OPS, x->op, x->result, on_tried, x));
    if (strcmp(x->path, z->base) != 0)
        return; /* the notes are to be in the same place as our root */
    sent(x, zoo_aget_children(handle, x->path, 0, on_listed, x));
    x->has_folder = true;
    try_notes(x);
}

static void find_path(struct zookeeper_inspection *x);

static void on_exists(int rc, const struct Stat *stat, const void *data)
{
    struct zookeeper_inspection *x = arrived(data);
    (void)stat;
    if (x->stage == READING && rc == ZOK && x->session->latch.connected) {
        try_rights(x);
    } else if (x->stage == READING && rc == ZNONODE && x->session->latch.connected) {
        char *slash = strrchr(x->path, '/');
        slash[slash == x->path ? 1 : 0] = '\0';
        find_path(x);
    }
    free_if_idle(x);
}

static void find_path(struct zookeeper_inspection *x)
{
    sent(x, zoo_aexists(x->session->handle, x->path, 0, on_exists, x));
}

static void inspect_tree(struct zookeeper_inspection *x)
{
    x->stage = READING;
    snprintf(x->path, sizeof x->path, "%s", x->store->base);
    find_path(x);
    sent(x, zoo_aget(x->session->handle, CONFIG_NODE, 0, on_config, x));
    zk_connection_pump(x->session);
}

/* ---- the servers --------------------------------------------------------------------------- */

static void on_answer(void *data, const struct four_letter_answer *a)
{
    struct asked_server *asked = data;
    struct ensemble_server *s = &asked->of->server[asked - asked->of->asked];
    asked->question = NULL;
    snprintf(s->why, sizeof s->why, "%s", a->why);
    zk_ensemble_read(s, a->srvr, a->conf);
}

static void ask_servers(struct zookeeper_inspection *x, int64_t patience_ms)
{
    const struct zookeeper_config *c = &x->store->config;
    for (size_t i = 0; i < c->hosts; i++) {
        struct ensemble_server *s = &x->server[i];
        const char *name = c->host[i].name;
        snprintf(s->address, sizeof s->address, strchr(name, ':') != NULL ? "[%s]:%d" : "%s:%d",
                 name, c->host[i].port);
        x->asked[i].of = x;
        x->asked[i].question = zk_four_letter_ask(x->store->resolver, name, c->host[i].port,
                                                  patience_ms, on_answer, &x->asked[i]);
        snprintf(s->why, sizeof s->why, "%s",
                 x->asked[i].question != NULL ? "connection timed out"
                                              : "no thread to ask it with");
    }
}

static bool is_asking(const struct zookeeper_inspection *x)
{
    size_t i = 0;
    while (i < x->store->config.hosts && x->asked[i].question == NULL)
        i++;
    return i < x->store->config.hosts;
}

/* ---- one thing after the other ------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer)
{
    struct zookeeper_inspection *x = timer->data;
    int64_t now = simba_now();
    if (x->stage == ASKING && (!is_asking(x) || now >= x->servers_until)) {
        forget_servers(x);
        x->stage = CONNECTING;
    } else if (x->stage == CONNECTING) {
        if (x->session != NULL && x->session->latch.connected)
            inspect_tree(x);
        else if (x->session == NULL || x->session->latch.hopeless || now >= x->until)
            report(x);
    } else if (x->stage == READING && (x->flights == 0 || now >= x->until)) {
        report(x);
    }
}

void zk_inspect_store(void *store, struct simba_request *q)
{
    struct zookeeper *z = store;
    struct zookeeper_inspection *x = calloc(1, sizeof *x);
    if (x == NULL) {
        pending_refuse(z->host, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    int64_t now = simba_now(), patience = z->host->connect_timeout_ms;
    patience = patience < SERVERS_MS ? patience : SERVERS_MS;
    x->store = z;
    x->request = q;
    x->findings = (struct findings){z->host, q};
    x->session = zk_session_for(z, q->ttl_ms + q->transition_ms);
    x->servers_until = now + patience + RESOLVE_MS;
    x->until = now + WHOLE_MS;
    x->tried_rc = x->note_rc = ZOPERATIONTIMEOUT; /* until they have an answer */
    x->next = z->inspections;
    x->before = &z->inspections;
    if (x->next != NULL)
        x->next->before = &x->next;
    z->inspections = x;
    handles_add_timer(&z->handles, &x->timer, x);
    ask_servers(x, patience);
    uv_timer_start(&x->timer, on_tick, TICK_MS, TICK_MS);
}
