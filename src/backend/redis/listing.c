/* listing.c: LIST. SCAN finds the keys, a script tells about each mutex; one exchange at a time, since
 * somebody else wants to use the server, too. SCAN may name a key twice, and a mutex has several keys,
 * so what was found is remembered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/redis.h"

#define SCAN_COUNT 1000
#define LISTED_MAX 1000000

struct name {
    struct table_node by_name; /* first */
    struct name *next;         /* of those that are asked about next */
    char text[];
};

struct listing {
    struct simba_request *request;
    struct table names;
    struct name *todo, *asked;
    char cursor[32];
    bool is_over; /* the scan */
    bool whole;   /* the script's text is sent along */
};

static void free_name(struct table_node *node)
{
    free(node);
}

void listing_end(struct redis *s, struct listing *l, int code, const char *why)
{
    calls_refuse(s, l->request, code, why);
    table_empty(&l->names, free_name);
    table_free(&l->names);
    free(l);
}

/* What a pattern means literally. */
static void write_pattern(struct redis *s, const char *prefix)
{
    char text[2 * SIMBA_MUTEX_MAX + 16] = "simba:{";
    size_t n = strlen(text);
    for (const char *c = prefix; *c != '\0' && n < sizeof text - 4; c++) {
        if (strchr("*?[]\\^", *c) != NULL)
            text[n++] = '\\';
        text[n++] = *c;
    }
    text[n++] = '*';
    resp_bytes(&s->link.out, text, n);
}

static void scan(struct redis *s, struct listing *l)
{
    struct flight *f = s->link.state == LINK_READY ? calls_push(s, FLIGHT_SCAN) : NULL;
    if (f == NULL) {
        listing_end(s, l, SIMBA_ESTORE, s->link.why);
        return;
    }
    f->listing = l;
    resp_begin(&s->link.out, 6);
    resp_word(&s->link.out, "SCAN");
    resp_word(&s->link.out, l->cursor);
    resp_word(&s->link.out, "MATCH");
    write_pattern(s, l->request->mutex);
    resp_word(&s->link.out, "COUNT");
    resp_number(&s->link.out, SCAN_COUNT);
}

static void ask_details(struct redis *s, struct listing *l)
{
    struct flight *f = s->link.state == LINK_READY ? calls_push(s, FLIGHT_DETAILS) : NULL;
    if (f == NULL) {
        listing_end(s, l, SIMBA_ESTORE, s->link.why);
        return;
    }
    f->listing = l;
    f->script = SCRIPT_READ;
    struct name **last = &l->todo;
    size_t count = 0;
    for (; *last != NULL && count < GROUP_MAX; count++)
        last = &(*last)->next;
    l->asked = l->todo;
    l->todo = *last;
    *last = NULL;
    script_call(&s->link.out, SCRIPT_READ, l->whole, 3 * count, 0);
    for (const struct name *n = l->asked; n != NULL; n = n->next) {
        calls_key(s, n->text, "");
        calls_key(s, n->text, ":token");
        calls_key(s, n->text, ":contender");
    }
}

static void go_on(struct redis *s, struct listing *l)
{
    if (l->todo != NULL)
        ask_details(s, l);
    else if (!l->is_over)
        scan(s, l);
    else
        listing_end(s, l, 0, NULL);
}

/* simba:{M} or simba:{M}:contender; the other keys of a mutex say nothing about who has it now. */
static bool add_key(struct listing *l, const struct reply *key)
{
    static const char queue[] = ":contender";
    char text[CHANNEL_MAX];
    const char *at;
    size_t n, tail = strlen(queue);
    if (!reply_is_text(key) || key->length >= sizeof text)
        return true;
    memcpy(text, key->text, key->length + 1);
    if (key->length > tail && strcmp(text + key->length - tail, queue) == 0)
        text[key->length - tail] = '\0';
    size_t prefix = strlen(l->request->mutex);
    if (!ear_mutex_of(text, &at, &n) || n > SIMBA_MUTEX_MAX)
        return true;
    if (n < prefix || memcmp(at, l->request->mutex, prefix) != 0)
        return true; /* the pattern took the closing brace for a part of the name */
    struct name *name = malloc(sizeof *name + n + 1);
    if (name == NULL || l->names.count >= LISTED_MAX) {
        free(name);
        return false;
    }
    memcpy(name->text, at, n);
    name->text[n] = '\0';
    name->by_name.name = name->text;
    if (table_find(&l->names, name->text) != NULL) {
        free(name);
        return true;
    }
    table_add(&l->names, &name->by_name);
    name->next = l->todo;
    l->todo = name;
    return true;
}

void listing_scanned(struct redis *s, struct listing *l, const struct reply *r)
{
    const struct reply *cursor = reply_at(r, 0), *keys = reply_at(r, 1);
    if (!reply_is_text(cursor) || cursor->length >= sizeof l->cursor || keys->kind != REPLY_ARRAY) {
        listing_end(s, l, SIMBA_ESTORE, "an answer of the server makes no sense");
        return;
    }
    memcpy(l->cursor, cursor->text, cursor->length + 1);
    l->is_over = strcmp(l->cursor, "0") == 0;
    for (size_t i = 0; i < keys->elements; i++) {
        if (!add_key(l, &keys->element[i])) {
            listing_end(s, l, SIMBA_ELIMIT, "too many mutexes to list, or memory is short");
            return;
        }
    }
    go_on(s, l);
}

void listing_details(struct redis *s, struct listing *l, const struct reply *r)
{
    size_t i = 0;
    for (const struct name *n = l->asked; n != NULL; n = n->next, i++) {
        const struct reply *one = reply_at(r, i), *waiters = reply_at(one, 3);
        struct told t;
        if (!calls_told(reply_at(one, 0), reply_at(one, 1), reply_at(one, 2), &t) || t.is_foreign)
            continue;
        struct simba_found found = {.mutex = n->text,
                                    .id = t.id,
                                    .token = t.token,
                                    .left_ms = t.left_ms,
                                    .age_ms = -1,
                                    .waiters = -1,
                                    .evicted = t.evicted};
        if (waiters->kind == REPLY_INTEGER)
            found.waiters = waiters->integer;
        if (found.id[0] != '\0' || found.waiters > 0)
            s->host->found(s->host, l->request, &found);
    }
    l->asked = NULL;
    go_on(s, l);
}

void listing_begin(struct redis *s, struct simba_request *q)
{
    struct listing *l = calloc(1, sizeof *l);
    if (l == NULL || table_init(&l->names) != 0) {
        free(l);
        calls_refuse(s, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    l->request = q;
    l->whole = true; /* rare enough not to care whether the server knows it */
    snprintf(l->cursor, sizeof l->cursor, "0");
    if (s->host->found == NULL)
        listing_end(s, l, SIMBA_EUNSUPPORTED, NULL);
    else
        scan(s, l);
}
