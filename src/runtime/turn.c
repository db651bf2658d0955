/* turn.c: one turn of a client.
 *
 * Whatever happens, a descriptor of the store, the alarm, a post from another thread, ends in one
 * turn. It has rounds: answers, hints, posts, due timers, and then one batch with every request
 * that came of it. Who takes it: driver.c. */
#include "runtime/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "runtime/client.h"
#include "runtime/host.h"
#include "runtime/inquiry.h"

#define POSTS_MAX 1024 /* of one round: then their requests go out */
#define ROUNDS_MAX 16  /* of one turn, before the store's own events get theirs */
#define ENOUGH 8192    /* requests in flight: what is posted meanwhile waits for answers */

/* ---- what waits ---------------------------------------------------------------------------- */

void turn_init(struct inbox *in)
{
    in->posts_last = &in->posts;
    in->answers_last = &in->answers;
}

void turn_free(struct inbox *in)
{
    while (in->hints != NULL) {
        struct hint *h = in->hints;
        in->hints = h->next;
        free(h);
    }
}

void turn_post_locked(struct actor *a, uint32_t post)
{
    struct inbox *in = &a->client->inbox;
    a->posts |= post;
    if (!a->in_inbox) {
        a->in_inbox = true;
        a->inbox_next = NULL;
        *in->posts_last = a;
        in->posts_last = &a->inbox_next;
    }
    driver_want_locked(a->client);
}

/* Of very many that begin at once, some ask and the others wait for their answers: a store that is
 * asked by all of them answers the last too late. */
static bool has_posts_to_take(const struct simba_client *s)
{
    return s->inbox.posts != NULL && (s->requests.in_flight < ENOUGH || atomic_load(&s->closing));
}

bool turn_is_wanted_locked(const struct simba_client *s)
{
    const struct inbox *in = &s->inbox;
    return has_posts_to_take(s) || in->answers != NULL || in->inquiries != NULL ||
           in->hints != NULL || in->hint_all || in->alarmed || in->close_asked;
}

/* ---- hints --------------------------------------------------------------------------------- */

/* Of those who wait for it one asks: the one that is named, else the one that has waited longest. */
static void hint_mutex(struct simba_client *s, const char *mutex, const char *id)
{
    struct hash_node *n = hash_table_find(&s->actors, mutex);
    struct actor *first = NULL;
    bool known = mutex[0] == '\0' || id != NULL;
    for (; n != NULL; n = hash_table_find_next(n)) {
        struct actor *a = actor_of(n);
        known = known || actor_parent(a) != NULL;
        bool meant = id == NULL || strcmp(actor_id(a), id) == 0;
        if (meant && !actor_waits(a))
            actor_hint(a);
        else if (meant && (first == NULL || (int32_t)(a->since - first->since) < 0))
            first = a;
    }
    if (first != NULL)
        actor_hint(first);
    if (!known) /* to those who observe all */
        hint_mutex(s, OBSERVER_OF_ALL, NULL);
}

static void hint_all(struct simba_client *s)
{
    for (struct hash_node *n = NULL; (n = hash_table_next(&s->actors, n)) != NULL;) {
        struct actor *a = actor_of(n);
        if (a->machine.lease.state != LEASE_HOLDING) /* or all would renew at once */
            actor_hint(a);
    }
}

static void take_hints(struct simba_client *s, struct hint *hints, bool all)
{
    while (hints != NULL) {
        struct hint *h = hints;
        hints = h->next;
        if (!all)
            hint_mutex(s, h->mutex, h->id);
        free(h);
    }
    if (all)
        hint_all(s);
}

/* ---- a round ------------------------------------------------------------------------------- */

static void take_answers(struct simba_request *answers)
{
    while (answers != NULL) {
        struct request *r = (struct request *)(void *)answers;
        answers = answers->next;
        if (r->actor != NULL)
            actor_answered(r->actor, r);
        else
            inquiry_answered(r);
        request_free(r);
    }
}

/* False: there were none. */
static bool take_posts(struct simba_client *s)
{
    struct inbox *in = &s->inbox;
    for (int i = 0; i < POSTS_MAX; i++) {
        driver_lock(s);
        struct actor *a = has_posts_to_take(s) ? in->posts : NULL;
        uint32_t posts = a != NULL ? a->posts : 0;
        if (a != NULL) {
            in->posts = a->inbox_next;
            if (in->posts == NULL)
                in->posts_last = &in->posts;
            a->posts = 0;
            a->in_inbox = false;
        }
        driver_unlock(s);
        if (a == NULL)
            return i > 0;
        actor_take_posts(a, posts);
    }
    return true;
}

/* Who is in the inbox may not be in the table yet: then it is for the next round. */
static void close_actors(struct simba_client *s)
{
    driver_lock(s);
    s->inbox.close_asked = s->inbox.posts != NULL;
    struct hash_node *n = NULL;
    s->close_held[0] = '\0';
    while (!s->inbox.close_asked && (n = hash_table_next(&s->actors, n)) != NULL) {
        struct actor *a = actor_of(n);
        futex_set(&a->changes, atomic_load(&a->changes) + 1);
        turn_post_locked(a, POST_CLOSE);
    }
    driver_unlock(s);
}

/* True: more may be due than fit into a round. */
static bool take_timers(struct simba_client *s)
{
    int64_t now = clock_now();
    struct timer *t = NULL;
    for (int i = 0; i < POSTS_MAX && (t = timers_pop(&s->timers, now)) != NULL; i++)
        t->expire(t);
    return t != NULL;
}

/* False: there was none. */
static bool submit_batch(struct simba_client *s)
{
    struct simba_request *batch = s->requests.batch;
    if (batch == NULL)
        return false;
    s->requests.batch = NULL;
    s->requests.batch_last = &s->requests.batch;
    if (s->store_closing) {
        host_cancel(s, batch);
        return true;
    }
    s->backend->submit(s->store, batch);
    s->turn.submitted = true;
    return true;
}

/* Everything that waits now; false: nothing did. */
static bool take_round(struct simba_client *s)
{
    struct inbox *in = &s->inbox;
    driver_lock(s);
    if (in->alarmed)
        s->loop.alarm_at = NEVER;
    in->alarmed = false;
    s->driver.woken = false; /* what comes from now on has to wake somebody again */
    struct simba_request *answers = in->answers;
    bool asked = in->inquiries != NULL;
    struct hint *hints = in->hints;
    bool all = in->hint_all, close_asked = in->close_asked;
    in->answers = NULL;
    in->answers_last = &in->answers;
    in->hints = NULL;
    in->hints_count = 0;
    in->hint_all = false;
    driver_unlock(s);

    take_answers(answers);
    take_hints(s, hints, all);
    bool noted = take_posts(s);
    if (asked)
        inquiry_send(s);
    if (close_asked)
        close_actors(s);
    bool expired = take_timers(s);
    bool sent = submit_batch(s);
    return sent || expired || noted || answers != NULL || hints != NULL || all || close_asked;
}

bool turn_take(struct simba_client *s, struct turn *out)
{
    int round = 0;
    while (round < ROUNDS_MAX && take_round(s))
        round++;
    loop_set_alarm(s, timers_next(&s->timers));
    *out = s->turn;
    s->turn = (struct turn){.results = NULL};
    return round > 0;
}
