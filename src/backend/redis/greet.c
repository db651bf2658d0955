/* greet.c: the first words on a connection: who we are, which database, and who the server is. Whatever
 * keeps it from being used is found here. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/redis/link.h"
#include "backend/redis/scripts.h"

enum greeting { GREET_AUTH, GREET_NAME, GREET_SELECT, GREET_INFO, GREET_TIME, GREET_MASTER };

static void expect(struct link *l, enum greeting kind)
{
    assert(l->greetings < LINK_GREETINGS_MAX);
    l->greeting[l->greetings++].kind = (int)kind;
}

static void write_auth(struct link *l, const char *user, const char *password)
{
    if (password == NULL)
        return;
    resp_begin(&l->out, user != NULL ? 3 : 2);
    resp_word(&l->out, "AUTH");
    if (user != NULL)
        resp_word(&l->out, user);
    resp_word(&l->out, password);
    expect(l, GREET_AUTH);
}

static void be_ready(struct link *l)
{
    l->state = LINK_READY;
    uv_timer_stop(&l->timer);
    l->ready_at = simba_now();
    l->turn = 0;
    l->code = 0;
    if (l->was_ready && l->net->host->reconnected != NULL)
        l->net->host->reconnected(l->net->host);
    l->was_ready = true;
    l->use->ready(l);
}

void greet_begin(struct link *l)
{
    const struct config *c = l->net->config;
    char name[32];
    l->state = LINK_GREETING;
    l->greetings = l->greeted = 0;
    l->master_ms = -1;
    if (l->use->is_sentinel) {
        write_auth(l, NULL, c->sentinel_password);
    } else {
        write_auth(l, c->user, c->password);
        snprintf(name, sizeof name, "simba-%d", (int)getpid());
        resp_begin(&l->out, 3);
        resp_word(&l->out, "CLIENT");
        resp_word(&l->out, "SETNAME");
        resp_word(&l->out, name);
        expect(l, GREET_NAME);
    }
    if (l->use->wants_info && c->db != 0) {
        resp_begin(&l->out, 2);
        resp_word(&l->out, "SELECT");
        resp_number(&l->out, c->db);
        expect(l, GREET_SELECT);
    }
    if (l->use->wants_info) {
        resp_begin(&l->out, 1);
        resp_word(&l->out, "INFO");
        expect(l, GREET_INFO);
        resp_begin(&l->out, 1);
        resp_word(&l->out, "TIME");
        expect(l, GREET_TIME);
    }
    link_flush(l);
    if (l->state == LINK_GREETING && l->greetings == 0)
        be_ready(l);
}

static void ask_master(struct link *l)
{
    script_call(&l->out, SCRIPT_PROMOTED, true, 1, 1);
    resp_word(&l->out, "simba:promoted");
    resp_word(&l->out, l->health.run_id);
    expect(l, GREET_MASTER);
}

/* False: it has failed. */
static bool take_info(struct link *l, const struct reply *r)
{
    char why[LINK_TEXT_MAX];
    if (!reply_is_text(r) || !health_parse(&l->health, r->text)) {
        link_fail(l, SIMBA_ESTORE, "what answers there is not a Redis server");
        return false;
    }
    l->healthy_at = simba_now();
    int code = health_refuses(&l->health, why, sizeof why);
    if (code != 0) {
        link_fail(l, code, "%s", why);
        return false;
    }
    if (l->health.promoted && l->net->config->guard)
        ask_master(l);
    return true;
}

static bool take_time(struct link *l, const struct reply *r)
{
    uint64_t s, us;
    if (!reply_digits(reply_at(r, 0), &s) || !reply_digits(reply_at(r, 1), &us) || s > UINT32_MAX ||
        us >= 1000000) {
        link_fail(l, SIMBA_ESTORE, "the server does not know the time");
        return false;
    }
    l->time_us = (int64_t)(s * 1000000 + us);
    return true;
}

void greet_take(struct link *l, const struct reply *r)
{
    char why[LINK_TEXT_MAX];
    enum greeting kind = (enum greeting)l->greeting[l->greeted++].kind;
    bool is_vital = kind != GREET_NAME || reply_is_error(r, "NOAUTH");
    if (r->kind == REPLY_ERROR && is_vital) {
        int code = link_refusal(r, why, sizeof why);
        if (kind == GREET_AUTH || kind == GREET_SELECT)
            code = SIMBA_EDENIED;
        if (kind == GREET_INFO && code == SIMBA_EDENIED)
            link_fail(l, code, "%s (INFO is needed to know what the server can be trusted with)",
                      why);
        else
            link_fail(l, code, "%s", why);
        return;
    }
    if ((kind == GREET_INFO && !take_info(l, r)) || (kind == GREET_TIME && !take_time(l, r)))
        return;
    if (kind == GREET_MASTER)
        l->master_ms = r->kind == REPLY_INTEGER && r->integer >= 0 ? r->integer : 0;
    if (l->greeted == l->greetings)
        be_ready(l);
}

/* ---- errors -------------------------------------------------------------------------------- */

int link_refusal(const struct reply *r, char *why, size_t size)
{
    static const struct {
        const char *kind;
        int code;
        const char *what;
    } known[] = {
        {"NOAUTH", SIMBA_EDENIED, "the server wants a password"},
        {"WRONGPASS", SIMBA_EDENIED, "the server does not accept user and password"},
        {"NOPERM", SIMBA_EDENIED, "the user lacks a permission"},
        {"WRONGTYPE", SIMBA_ESCHEMA, "a key of this mutex holds something that is not ours"},
        {"READONLY", SIMBA_ESTORE, "the server is a read-only replica"},
        {"LOADING", SIMBA_ESTORE, "the server is still loading its data"},
        {"OOM", SIMBA_ESTORE, "the server is out of memory (maxmemory)"},
        {"MISCONF", SIMBA_ESTORE, "the server cannot save its data and refuses to write"},
        {"MASTERDOWN", SIMBA_ESTORE, "the server is a replica without its master"},
        {"NOREPLICAS", SIMBA_ESTORE, "the server has too few replicas to write"},
        {"BUSY", SIMBA_ESTORE, "the server is busy with somebody's script"},
        {"MOVED", SIMBA_EUNSUPPORTED, "this is a Redis Cluster, which is not supported yet"},
        {"CROSSSLOT", SIMBA_EUNSUPPORTED, "this is a Redis Cluster, which is not supported yet"},
    };
    /* Before Redis 7 an error within a script names its kind later in the line. */
    bool in_script = strncmp(r->text, "ERR Error running script", 24) == 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (reply_is_error(r, known[i].kind) ||
            (in_script && strstr(r->text, known[i].kind) != NULL)) {
            snprintf(why, size, "%s: %.200s", known[i].what, r->text);
            return known[i].code;
        }
    }
    if (strstr(r->text, "The user executing the script can't") != NULL ||
        strstr(r->text, "ACL failure in script") != NULL) { /* from 7.2 on */
        snprintf(why, size, "the user lacks a permission: %.200s", r->text);
        return SIMBA_EDENIED;
    }
    if (strstr(r->text, "not an integer") != NULL) { /* the fence */
        snprintf(why, size, "a key of this mutex holds something that is not ours: %.150s",
                 r->text);
        return SIMBA_ESCHEMA;
    }
    snprintf(why, size, "the server says: %.200s", r->text);
    return SIMBA_ESTORE;
}
