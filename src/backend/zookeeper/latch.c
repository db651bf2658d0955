/* latch.c: see latch.h. */
#include "backend/zookeeper/latch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "_c_"
#define NODE_KIND "latch-"
#define VERSION_AT 14    /* in a UUID's text */
#define CLIENT_DIGITS 24 /* of a UUID's text, with dashes: ten bytes */

/* ---- names --------------------------------------------------------------------------------- */

void zk_latch_uuid(char out[LATCH_UUID_SIZE], const unsigned char client[LATCH_CLIENT_SIZE],
                   uint64_t number)
{
    unsigned char b[16];
    memcpy(b, client, LATCH_CLIENT_SIZE);
    for (int i = 15; i >= LATCH_CLIENT_SIZE; i--, number >>= 8)
        b[i] = (unsigned char)number;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x80); /* version 8 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *at = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", b[i]);
    }
}

void zk_latch_prefix(char *out, size_t size, const char *uuid)
{
    snprintf(out, size, PREFIX "%s-" NODE_KIND, uuid);
}

bool zk_latch_parse(const char *name, int32_t *sequence)
{
    const char *at = NULL;
    *sequence = 0;
    for (const char *next = name; (next = strstr(next, NODE_KIND)) != NULL; next++)
        at = next + strlen(NODE_KIND);
    if (at == NULL || strlen(name) >= LATCH_NAME_SIZE)
        return false;
    char again[16]; /* the server writes it in this one form, also below zero */
    char *end;
    long long n = strtoll(at, &end, 10);
    if (*end != '\0' || n < INT32_MIN || n > INT32_MAX)
        return false;
    *sequence = (int32_t)n;
    snprintf(again, sizeof again, "%010d", *sequence);
    return strcmp(again, at) == 0;
}

/* The counter runs over; members are never half of its range apart. */
bool zk_latch_before(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

int zk_latch_lowest(char *const *names, int count, int *members)
{
    int lowest = -1;
    int32_t best = 0, sequence;
    *members = 0;
    for (int i = 0; i < count; i++) {
        if (!zk_latch_parse(names[i], &sequence))
            continue;
        ++*members;
        if (lowest < 0 || zk_latch_before(sequence, best)) {
            lowest = i;
            best = sequence;
        }
    }
    return lowest;
}

bool zk_latch_is_for(const struct latch *l, const char *name)
{
    size_t n = strlen(l->uuid);
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strncmp(name + strlen(PREFIX), l->uuid, n) == 0 && name[strlen(PREFIX) + n] == '-';
}

bool zk_latch_is_sibling(const struct latch *l, const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strncmp(name + strlen(PREFIX), l->uuid, CLIENT_DIGITS) == 0;
}

bool zk_latch_heeds_evictions(const char *name)
{
    size_t n = strlen(PREFIX) + LATCH_UUID_SIZE - 1;
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(name) > n &&
           name[strlen(PREFIX) + VERSION_AT] == '8' && strncmp(name + n, "-" NODE_KIND, 7) == 0;
}

struct latch_view zk_latch_view_of(const struct latch *l, char *const *names, int count)
{
    struct latch_view v = {.own = -1, .ahead = -1, .orphan = -1};
    int32_t own = 0, ahead = 0, sequence;
    v.leader = zk_latch_lowest(names, count, &v.members);
    for (int i = 0; i < count; i++) {
        if (!zk_latch_parse(names[i], &sequence) || !zk_latch_is_for(l, names[i]))
            continue;
        bool known = l->name[0] != '\0' && strcmp(l->name, names[i]) == 0;
        bool first = l->name[0] == '\0' && (v.own < 0 || zk_latch_before(sequence, own));
        if (known || first) {
            if (v.own >= 0)
                v.orphan = v.own;
            v.own = i;
            own = sequence;
        } else {
            v.orphan = i;
        }
    }
    for (int i = 0; i < count && v.own >= 0; i++) {
        if (zk_latch_parse(names[i], &sequence) && zk_latch_before(sequence, own) &&
            (v.ahead < 0 || zk_latch_before(ahead, sequence))) {
            v.ahead = i;
            ahead = sequence;
        }
    }
    return v;
}

/* ---- the machine --------------------------------------------------------------------------- */

void zk_latch_init(struct latch *l, const char *uuid)
{
    assert(strlen(uuid) == LATCH_UUID_SIZE - 1);
    *l = (struct latch){.state = LATCH_OUT, .wanted = true};
    memcpy(l->uuid, uuid, LATCH_UUID_SIZE);
}

enum latch_act zk_latch_next(const struct latch *l)
{
    if (l->in_flight)
        return LATCH_REST;
    switch ((enum latch_state)l->state) {
    case LATCH_OUT:
        return l->wanted ? LATCH_CREATE : LATCH_END;
    case LATCH_LOST:
        return l->name[0] == '\0' ? LATCH_FIND : LATCH_STAT;
    case LATCH_IN:
        return l->wanted ? LATCH_REST : LATCH_DELETE;
    default:
        assert(l->state == LATCH_GONE); /* the others have something in flight */
        return LATCH_END;
    }
}

void zk_latch_sent(struct latch *l)
{
    enum latch_act act = zk_latch_next(l);
    assert(act != LATCH_REST && act != LATCH_END);
    l->in_flight = true;
    if (act == LATCH_CREATE)
        l->state = LATCH_JOINING;
    else if (act == LATCH_DELETE)
        l->state = LATCH_LEAVING;
}

static void forget(struct latch *l, enum latch_state state)
{
    l->name[0] = '\0';
    l->czxid = 0;
    l->state = (uint8_t)state;
}

/* Whether a server can have said so of the node that we asked it to make. Else it is no answer: a
 * name that is not ours would have us lead with, and delete, a node of somebody else. */
static bool is_credible(const struct latch *l, const char *name, int64_t czxid)
{
    int32_t sequence;
    return czxid > 0 && zk_latch_is_for(l, name) && zk_latch_parse(name, &sequence);
}

/* A node that is not our session's dies with the session that made it: not ours to lead with. */
static void come_in(struct latch *l, const char *name, int64_t czxid, int64_t owner,
                    int64_t session)
{
    assert(czxid > 0);
    if (name != l->name)
        snprintf(l->name, sizeof l->name, "%s", name);
    l->czxid = czxid;
    l->state = LATCH_IN;
    if (owner != session)
        l->wanted = false;
}

void zk_latch_created(struct latch *l, enum latch_reply reply, const char *name, int64_t czxid,
                      int64_t owner, int64_t session)
{
    if (l->state == LATCH_GONE)
        return;
    assert(l->state == LATCH_JOINING);
    l->in_flight = false;
    if (reply == LATCH_DONE && !is_credible(l, name, czxid))
        reply = LATCH_UNKNOWN;
    if (reply == LATCH_DONE)
        come_in(l, name, czxid, owner, session);
    else
        l->state = reply == LATCH_UNKNOWN ? LATCH_LOST : LATCH_OUT;
}

void zk_latch_found(struct latch *l, enum latch_reply reply, const char *name)
{
    if (l->state == LATCH_GONE)
        return;
    assert(l->state == LATCH_LOST);
    l->in_flight = false;
    if (reply == LATCH_UNKNOWN || reply == LATCH_REFUSED)
        return; /* it is still to be found */
    if (name != NULL && reply == LATCH_DONE)
        snprintf(l->name, sizeof l->name, "%s", name);
    else
        forget(l, LATCH_OUT);
}

void zk_latch_stat(struct latch *l, enum latch_reply reply, int64_t czxid, int64_t owner,
                   int64_t session)
{
    if (l->state == LATCH_GONE)
        return;
    assert(l->state == LATCH_LOST);
    l->in_flight = false;
    if (reply == LATCH_DONE && is_credible(l, l->name, czxid))
        come_in(l, l->name, czxid, owner, session);
    else if (reply == LATCH_NO_NODE)
        forget(l, LATCH_OUT);
}

void zk_latch_deleted(struct latch *l, enum latch_reply reply)
{
    if (l->state == LATCH_GONE)
        return;
    assert(l->state == LATCH_LEAVING);
    l->in_flight = false;
    bool gone = reply == LATCH_DONE || reply == LATCH_NO_NODE;
    l->state = gone ? LATCH_GONE : LATCH_IN;
}

void zk_latch_vanished(struct latch *l)
{
    l->state = LATCH_GONE;
    l->in_flight = false;
    l->wanted = false;
}
