/* list.c: see list.h. SCAN finds the keys, a script tells about each mutex; one exchange at a time,
 * since somebody else wants to use the server, too. SCAN may name a key twice, and a mutex has
 * several keys, so what was found is remembered. */
#include "backend/redis/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/errors.h"
#include "backend/redis/redis.h"
#include "backend/redis/requests.h"

#define SCAN_COUNT 1000
#define LISTED_MAX 1000000

struct name {
    struct hash_node by_name; /* first */
    struct name *next;        /* of those that are asked about next */
    char text[];
};

struct redis_listing {
    struct redis *store;
    struct simba_request *request;
    struct hash_table names;
    struct name *todo, *asked;
    char cursor[32];
    bool is_over; /* the scan */
};

static void free_name(struct hash_node *node)
{
    free(node);
}

static void end(struct redis_listing *l, int code, const char *why)
{
    replies_refuse(l->store, l->request, code, why);
    hash_table_empty(&l->names, free_name);
    hash_table_free(&l->names);
    free(l);
}

/* The prefix literally; and of the keys of a mutex those that add_key() takes, by how they end: the
 * others are many, and would only be sent. */
static void write_pattern(struct buffer *b, const char *prefix)
{
    char text[2 * SIMBA_MUTEX_MAX + 16] = "simba:{";
    size_t n = strlen(text);
    for (const char *c = prefix; *c != '\0' && n < sizeof text - 8; c++) {
        if (strchr("*?[]\\^", *c) != NULL)
            text[n++] = '\\';
        text[n++] = *c;
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "*[}r]");
    resp_bytes(b, text, n);
}

/* NULL: it has ended. */
static struct buffer *command(struct redis_listing *l, command_fn *take)
{
    struct redis_connection *c = &l->store->commands;
    struct buffer *b = connection_command(c, (struct redis_command){.take = take, .about = l});
    if (b == NULL)
        end(l, c->code, c->why);
    return b;
}

/* True: there is no reply, or an error, and it has ended. */
static bool has_failed(struct redis_listing *l, const struct reply *r)
{
    const struct redis_connection *c = &l->store->commands;
    char why[CONNECTION_TEXT_MAX];
    if (r != NULL && r->kind != REPLY_ERROR)
        return false;
    int code = r != NULL ? errors_describe(r, why, sizeof why) : c->code;
    end(l, code, r != NULL ? why : c->why);
    return true;
}

static command_fn on_keys, on_details;

static void scan(struct redis_listing *l)
{
    struct buffer *b = command(l, on_keys);
    if (b == NULL)
        return;
    resp_begin(b, 6);
    resp_argument(b, "SCAN");
    resp_argument(b, l->cursor);
    resp_argument(b, "MATCH");
    write_pattern(b, l->request->mutex);
    resp_argument(b, "COUNT");
    resp_number(b, SCAN_COUNT);
}

static void ask_details(struct redis_listing *l)
{
    struct buffer *b = command(l, on_details);
    if (b == NULL)
        return;
    struct name **last = &l->todo;
    size_t count = 0;
    for (; *last != NULL && count < GROUP_MAX; count++)
        last = &(*last)->next;
    l->asked = l->todo;
    l->todo = *last;
    *last = NULL;
    /* Whole: it is rare enough not to care whether the server knows it. */
    scripts_call(b, SCRIPT_READ, true, count);
    for (const struct name *n = l->asked; n != NULL; n = n->next)
        scripts_keys(b, SCRIPT_READ, n->text);
    for (size_t i = 0; i < count; i++)
        resp_argument(b, l->request->with_note ? "1" : "");
}

static void go_on(struct redis_listing *l)
{
    if (l->todo != NULL)
        ask_details(l);
    else if (!l->is_over)
        scan(l);
    else
        end(l, 0, NULL);
}

/* simba:{M} or simba:{M}:contender; the other keys of a mutex say nothing about who has it now. */
static bool add_key(struct redis_listing *l, const struct reply *key)
{
    static const char queue[] = ":contender";
    char text[TOPICS_CHANNEL_MAX], mutex[SIMBA_MUTEX_MAX + 1];
    size_t tail = strlen(queue), prefix = strlen(l->request->mutex);
    if (!reply_is_text(key) || key->length >= sizeof text)
        return true;
    memcpy(text, key->text, key->length + 1);
    if (key->length > tail && strcmp(text + key->length - tail, queue) == 0)
        text[key->length - tail] = '\0';
    if (!topics_mutex_of(text, mutex) || strncmp(mutex, l->request->mutex, prefix) != 0)
        return true; /* the pattern may take the closing brace for a part of the name */
    if (hash_table_find(&l->names, mutex) != NULL)
        return true;
    size_t size = strlen(mutex) + 1;
    struct name *name = l->names.count < LISTED_MAX ? malloc(sizeof *name + size) : NULL;
    if (name == NULL)
        return false;
    memcpy(name->text, mutex, size);
    name->by_name.name = name->text;
    hash_table_add(&l->names, &name->by_name);
    name->next = l->todo;
    l->todo = name;
    return true;
}

static void on_keys(void *store, const struct redis_command *sent, const struct reply *r)
{
    struct redis_listing *l = sent->about;
    (void)store;
    if (has_failed(l, r))
        return;
    const struct reply *cursor = reply_at(r, 0), *keys = reply_at(r, 1);
    if (!reply_is_text(cursor) || cursor->length >= sizeof l->cursor || keys->kind != REPLY_ARRAY) {
        end(l, SIMBA_ESTORE, "an answer of the server makes no sense");
        return;
    }
    memcpy(l->cursor, cursor->text, cursor->length + 1);
    l->is_over = strcmp(l->cursor, "0") == 0;
    for (size_t i = 0; i < keys->elements; i++) {
        if (!add_key(l, &keys->element[i])) {
            end(l, SIMBA_ELIMIT, "too many mutexes to list, or memory is short");
            return;
        }
    }
    go_on(l);
}

static void on_details(void *store, const struct redis_command *sent, const struct reply *r)
{
    struct redis_listing *l = sent->about;
    struct simba_host *host = l->store->host;
    (void)store;
    if (has_failed(l, r))
        return;
    size_t i = 0;
    for (const struct name *n = l->asked; n != NULL; n = n->next, i++) {
        const struct reply *one = reply_at(r, i), *waiters = reply_at(one, 3);
        struct replied_owner t;
        if (!replies_owner(one, 0, &t) || t.is_foreign)
            continue;
        struct simba_found found = {.mutex = n->text,
                                    .id = t.id,
                                    .token = t.answer.token,
                                    .left_ms = t.answer.left_ms,
                                    .age_ms = -1,
                                    .waiters = -1,
                                    .evicted = t.answer.evicted};
        struct simba_noted noted;
        found.note = replies_note(one, 4, &noted) ? &noted : NULL;
        if (waiters->kind == REPLY_INTEGER)
            found.waiters = waiters->integer;
        if (found.id[0] != '\0' || found.waiters > 0)
            host->found(host, l->request, &found);
    }
    l->asked = NULL;
    go_on(l);
}

void list_begin(struct redis *s, struct simba_request *q)
{
    struct redis_listing *l = calloc(1, sizeof *l);
    if (l == NULL || hash_table_init(&l->names) != 0) {
        free(l);
        replies_refuse(s, q, SIMBA_ELIMIT, "out of memory");
        return;
    }
    l->store = s;
    l->request = q;
    snprintf(l->cursor, sizeof l->cursor, "0");
    if (s->host->found == NULL)
        end(l, SIMBA_EUNSUPPORTED, NULL);
    else
        scan(l);
}
