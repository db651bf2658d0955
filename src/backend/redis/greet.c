/* greet.c: the first words on a connection: who we are, which database, and who the server is. Whatever
 * keeps it from being used is found here. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/redis/link.h"
#include "backend/redis/scripts.h"

enum greeting {
    GREET_AUTH,
    GREET_NAME,
    GREET_SELECT,
    GREET_INFO,
    GREET_TIME,
    GREET_NOTE,
    GREET_EPOCH
};

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
        resp_begin(&l->out, 2);
        resp_word(&l->out, "GET");
        resp_word(&l->out, EPOCH_KEY);
        expect(l, GREET_NOTE);
    }
    link_flush(l);
    link_wipe(&l->out); /* of the password */
    if (l->state == LINK_GREETING && l->greetings == 0)
        be_ready(l);
}

/* ---- the epoch ----------------------------------------------------------------------------- */

/* RUN ID:REPLICATION ID:, as a note of the current epoch begins. */
static void epoch_head(const struct link *l, char head[EPOCH_NOTE_MAX])
{
    snprintf(head, EPOCH_NOTE_MAX, "%s:%s:", l->health.run_id, l->health.replid);
}

/* False: it is not a note of the current epoch. One from the future was made before the server's clock was
 * set back: it is made anew. One of an earlier term was made before this server was replaced and named again. A
 * later term is right: our sentinel is behind, or we ask none. */
static bool epoch_parse(const struct link *l, const struct reply *r, struct epoch *out)
{
    char head[EPOCH_NOTE_MAX], *end;
    epoch_head(l, head);
    size_t n = strlen(head);
    if (!reply_is_text(r) || r->length >= sizeof out->note || strncmp(r->text, head, n) != 0)
        return false;
    memcpy(out->note, r->text, r->length + 1);
    int64_t term = strtoll(r->text + n, &end, 10);
    out->seen_us = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    int64_t since_us = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    out->age_ms = (l->time_us - since_us) / 1000;
    return *end == '\0' && term >= l->net->term && since_us > 0 && since_us <= out->seen_us;
}

/* Where the server says that it is in the epoch that we know, but has lost its note, it was emptied. */
static void ask_epoch(struct link *l)
{
    char head[EPOCH_NOTE_MAX];
    epoch_head(l, head);
    bool is_known = strncmp(l->epoch.note, head, strlen(head)) == 0;
    l->epoch.note[0] = '\0';
    script_call(&l->out, SCRIPT_EPOCH, true, 1, 4);
    resp_word(&l->out, EPOCH_KEY);
    resp_word(&l->out, l->health.run_id);
    resp_word(&l->out, l->health.replid);
    resp_number(&l->out, is_known || l->health.promoted ? 0 : l->health.uptime_ms);
    resp_number(&l->out, l->net->term);
    expect(l, GREET_EPOCH);
}

/* No reason not to read, or to renew: a server whose memory is full takes no note. */
static void take_no_epoch(struct link *l, const struct reply *error)
{
    l->epoch.note[0] = '\0';
    l->write_code = link_refusal(error, l->write_why, sizeof l->write_why);
}

static void take_note(struct link *l, const struct reply *r)
{
    struct epoch found;
    if (r->kind == REPLY_ERROR) {
        take_no_epoch(l, r);
    } else if (health_is_read_only(&l->health, l->write_why, sizeof l->write_why)) {
        l->write_code = SIMBA_ESTORE;
        l->epoch.note[0] = '\0';
    } else if (epoch_parse(l, r, &found) && found.age_ms >= 0) {
        l->epoch = found;
    } else {
        ask_epoch(l);
    }
}

static void take_epoch(struct link *l, const struct reply *r)
{
    if (r->kind == REPLY_ERROR) {
        take_no_epoch(l, r);
    } else if (!epoch_parse(l, r, &l->epoch)) {
        l->epoch.note[0] = '\0';
        l->write_code = SIMBA_ESTORE;
        snprintf(l->write_why, sizeof l->write_why, "an answer of the server makes no sense");
    } else if (l->epoch.age_ms < 0) {
        l->epoch.age_ms = 0;
    }
}

/* ---- what the server says ------------------------------------------------------------------ */

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
    if (strlen(l->health.run_id) != EPOCH_ID || strlen(l->health.replid) != EPOCH_ID) {
        link_fail(l, SIMBA_ESTORE, "the server does not say its run id and its replication id");
        return false;
    }
    if (l->net->config->sentinels > 0 && health_is_read_only(&l->health, why, sizeof why)) {
        link_fail(l, SIMBA_ESTORE, "%s", why);
        return false;
    }
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
    bool is_vital = kind < GREET_NOTE && kind != GREET_NAME;
    if (r->kind == REPLY_ERROR && (is_vital || reply_is_error(r, "NOAUTH"))) {
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
    if (kind == GREET_NOTE)
        take_note(l, r);
    if (kind == GREET_EPOCH)
        take_epoch(l, r);
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
        {"SIMBAEPOCH", SIMBA_ESTORE, "the server is not what it was"},
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
