/* inquiry.c: questions to the store that no machine asks: simba_read, simba_list, simba_evict,
 * simba_examine, and what callers publish. The caller waits for the answer, or gives up; whoever comes second frees the
 * inquiry. */
#include "runtime/inquiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/text.h"
#include "core/name.h"
#include "runtime/client.h"
#include "runtime/error.h"
#include "runtime/scheduler.h"

#define SNAPSHOT_MS 5000 /* for the loop to answer */

/* ---- notes as stores tell them -------------------------------------------------------------- */

/* Stores are not trusted with more than their word: text beyond the limit is cut, where a character
 * begins. */
static size_t bounded_length(const char *text)
{
    size_t length = strnlen(text, SIMBA_NOTE_MAX + 1);
    if (length <= SIMBA_NOTE_MAX)
        return length;
    length = SIMBA_NOTE_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* The age counts from now, after the answer has come: so a note is never shown older than it is. */
struct note *note_keep(const struct simba_noted *noted)
{
    if (noted == NULL || noted->text == NULL || noted->token == 0)
        return NULL;
    size_t length = bounded_length(noted->text);
    struct note *n = malloc(sizeof *n + length + 1);
    if (n == NULL)
        return NULL;
    n->token = noted->token;
    n->written_at = simba_now() - (noted->age_ms > 0 ? noted->age_ms : 0);
    memcpy(n->text, noted->text, length);
    n->text[length] = '\0';
    return n;
}

void note_show(const struct note *n, struct simba_note *out)
{
    *out = (struct simba_note){.token = 0};
    if (n == NULL)
        return;
    memcpy(out->text, n->text, strlen(n->text) + 1);
    out->token = n->token;
    out->written_at = n->written_at;
}

int note_check(const char *mutex, const char *text)
{
    const char *rule;
    if (name_check_note(text, &rule) == 0)
        return 0;
    return error_on(SIMBA_EINVAL, mutex, NULL, "%s", rule);
}

/* ---- questions ------------------------------------------------------------------------------ */

enum { WAITS, ANSWERED, ABANDONED };

struct finding {
    struct finding *next;
    struct simba_finding shown;
    char text[];
};

/* Nothing of the client is used when it is answered: another thread may have closed it. */
struct inquiry {
    struct inquiry *next;
    uint64_t token;  /* EVICT, PUBLISH */
    uint64_t serial; /* PUBLISH: these two, and id; the text is allocated */
    char *text_to_publish;
    enum simba_op op;
    bool forced;           /* EVICT: and id */
    bool with_note;        /* READ, LIST */
    _Atomic uint32_t done; /* futex: one of the above */
    int code;
    struct simba_owner owner; /* READ */
    struct note *note;        /* READ with_note; allocated */
    int64_t wall_ms;          /* the same */
    struct found *found;      /* LIST */
    bool of_ourselves;        /* nothing is asked of the store, but of all handles: */
    bool examines;            /* or of the store itself: */
    struct snapshot *snapshot;
    struct finding *findings;
    char text[CALL_TEXT_MAX];
    char mutex[SIMBA_MUTEX_MAX + 1]; /* LIST: the prefix */
    char id[SIMBA_ID_MAX + 1];
};

static void free_inquiry(struct inquiry *q)
{
    for (struct finding *f = q->findings, *next; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    request_free_found(q->found);
    free(q->text_to_publish);
    free(q->note);
    snapshot_free(q->snapshot);
    free(q);
}

static void end(struct inquiry *q, int code, const char *text)
{
    uint32_t waits = WAITS;
    q->code = code;
    snprintf(q->text, sizeof q->text, "%s", text);
    if (atomic_compare_exchange_strong(&q->done, &waits, ANSWERED))
        futex_wake(&q->done);
    else
        free_inquiry(q);
}

/* Kept in order. What servers and others say is escaped: a byte becomes at most \xHH. */
void inquiry_say(struct inquiry *q, const struct simba_finding *finding)
{
    size_t size = 4 * strlen(finding->text) + 1;
    struct text escaped;
    struct finding **last = &q->findings, *f = malloc(sizeof *f + size);
    if (f == NULL)
        return;
    while (*last != NULL)
        last = &(*last)->next;
    f->next = NULL;
    f->shown = *finding;
    text_init(&escaped, f->text, size);
    text_add_escaped(&escaped, finding->text);
    f->shown.text = f->text;
    *last = f;
}

static void send_request(struct simba_client *s, struct inquiry *q)
{
    struct request *r = request_new(s);
    if (r == NULL) {
        end(q, SIMBA_ELIMIT, "too many requests are under way");
        return;
    }
    r->inquiry = q;
    r->sent.sent_at = clock_now();
    r->to_store.op = q->op;
    r->to_store.mutex = q->mutex;
    r->to_store.id = q->id;
    r->to_store.token = q->token;
    r->to_store.forced = q->forced;
    r->to_store.note = q->text_to_publish;
    r->to_store.serial = q->serial;
    r->to_store.with_note = q->with_note;
    r->to_store.needs_note = q->with_note && q->op == SIMBA_READ;
    r->to_store.ttl_ms = s->period.ttl / NS_PER_MS;
    r->to_store.transition_ms = s->period.transition / NS_PER_MS;
    if (q->examines)
        s->backend->examine(s->store, &r->to_store);
    else
        request_send(r);
}

void inquiry_send(struct simba_client *s)
{
    driver_lock(s);
    struct inquiry *all = s->inbox.inquiries;
    s->inbox.inquiries = NULL;
    driver_unlock(s);
    for (struct inquiry *q = all, *next; q != NULL; q = next) {
        next = q->next;
        if (q->of_ourselves) {
            end(q, snapshot_take(s, &q->snapshot), "out of memory");
        } else if (q->examines && s->store_closing) {
            end(q, SIMBA_ECANCELED, "the client is being closed");
        } else {
            send_request(s, q);
        }
    }
}

void inquiry_answered(struct request *r)
{
    struct inquiry *q = r->inquiry;
    const char *text = r->text != NULL ? r->text : simba_strerror(r->code);
    if (!q->examines)
        trace_exchange(r);
    if (r->code == 0) {
        q->owner = request_owner(r, &(struct simba_found){.id = r->owner,
                                                          .token = r->token,
                                                          .left_ms = r->left_ms,
                                                          .age_ms = r->age_ms,
                                                          .evicted = r->evicted});
        q->found = r->found;
        r->found = NULL;
        q->note = r->note;
        r->note = NULL;
        q->wall_ms = r->wall_ms;
    }
    if (r->code == SIMBA_ELOST && q->op == SIMBA_PUBLISH)
        text = "that tenure is over, its note was not written";
    else if (r->code == SIMBA_ELOST) /* of an EVICT */
        text = q->id[0] == '\0' && q->token == 0 ? "nobody owns it" : "that tenure is over";
    end(q, r->code, text);
}

/* A callback that this thread ran while it waited has ended the thread. */
static void driving_over(void *arg)
{
    struct inquiry *q = arg;
    uint32_t waits = WAITS;
    if (!atomic_compare_exchange_strong(&q->done, &waits, ABANDONED))
        free_inquiry(q);
}

/* 0: the question may be put. */
static int check(const struct simba_client *s, const char *what, int64_t timeout_ms)
{
    int rc = client_check(s);
    if (rc < 0)
        return rc;
    if (timeout_ms < 0)
        return error_say(SIMBA_EINVAL, "%s: a timeout must not be negative", what);
    if (client_is_here(s))
        return error_say(SIMBA_EDEADLOCK, "%s: asking on the loop would never end", what);
    return 0;
}

/* Puts the question, and takes over what it has allocated. NULL: an error, in *rc; else the caller
 * frees the answer. `what` is for its text. */
static struct inquiry *ask(struct simba_client *s, const struct inquiry *question, const char *what,
                           int64_t timeout_ms, int *rc)
{
    *rc = check(s, what, timeout_ms);
    struct inquiry *q = *rc < 0 ? NULL : malloc(sizeof *q);
    if (q == NULL) {
        free(question->text_to_publish);
        if (*rc == 0)
            *rc = error_say(SIMBA_ELIMIT, "%s: out of memory", what);
        return NULL;
    }
    memcpy(q, question, sizeof *q);
    char store[CALL_TEXT_MAX];
    snprintf(store, sizeof store, "%.200s", s->url.shown);
    int64_t now = clock_now(), until = clock_after_ms(now, timeout_ms);
    bool drives = driver_polls_here(s); /* the client may be gone with the answer */
    driver_lock(s);
    bool closing = s->closing;
    if (!closing) {
        q->serial = ++s->serial;
        q->next = s->inbox.inquiries;
        s->inbox.inquiries = q;
        driver_want_locked(s);
    }
    driver_unlock_turn(s, NULL, until - now > DRIVER_HERE_MIN);
    uint32_t waits = WAITS;
    bool answered = !closing && (drives ? driver_wait(s, &q->done, WAITS, until, driving_over, q)
                                        : futex_wait(&q->done, WAITS, until));
    if (closing) {
        *rc = error_say(SIMBA_ESTATE, "%s: the client is being closed", what);
    } else if (!answered && atomic_compare_exchange_strong(&q->done, &waits, ABANDONED)) {
        *rc = error_at(SIMBA_ETIMEOUT, what, store, "the %s did not answer in %lld ms",
                       question->of_ourselves ? "client's loop" : "store", (long long)timeout_ms);
        return NULL;
    } else if (q->code == 0) {
        return q;
    } else {
        *rc = error_at(q->code, what, store, "%s", q->text);
    }
    free_inquiry(q);
    return NULL;
}

/* Takes over what the question has allocated. */
static struct inquiry *ask_about(struct simba_client *s, struct inquiry *question,
                                 const char *mutex, int64_t timeout_ms, int *rc)
{
    const char *rule;
    char what[SIMBA_MUTEX_MAX + 16];
    if (name_check_mutex(mutex, &rule) < 0) {
        *rc = error_say(SIMBA_EINVAL, "%s", rule);
        free(question->text_to_publish);
        return NULL;
    }
    snprintf(question->mutex, sizeof question->mutex, "%s", mutex);
    snprintf(what, sizeof what, "mutex '%s'", mutex);
    return ask(s, question, what, timeout_ms, rc);
}

int inquiry_snapshot(struct simba_client *s, struct snapshot **out)
{
    int rc = client_check(s);
    if (rc < 0)
        return rc;
    if (driver_polls_here(s) && !driver_is_here(s))
        return snapshot_take(s, out) < 0 ? error_say(SIMBA_ELIMIT, "metrics: out of memory") : 0;
    struct inquiry *q =
        ask(s, &(struct inquiry){.of_ourselves = true}, "metrics", SNAPSHOT_MS, &rc);
    if (q == NULL)
        return rc;
    *out = q->snapshot;
    q->snapshot = NULL;
    free_inquiry(q);
    return 0;
}

int simba_read(simba_client *s, const char *mutex, int64_t timeout_ms, struct simba_owner *out)
{
    int rc;
    if (s == NULL || out == NULL)
        return error_say(SIMBA_EINVAL, "simba_read needs a client and a place for the result");
    struct inquiry *q = ask_about(s, &(struct inquiry){.op = SIMBA_READ}, mutex, timeout_ms, &rc);
    if (q == NULL)
        return rc;
    *out = q->owner;
    free_inquiry(q);
    return 0;
}

int inquiry_read_note(struct simba_client *s, const char *mutex, int64_t timeout_ms,
                      struct simba_note *note, struct simba_owner *owner, int64_t *wall_ms)
{
    int rc;
    struct inquiry *q = ask_about(s, &(struct inquiry){.op = SIMBA_READ, .with_note = true}, mutex,
                                  timeout_ms, &rc);
    if (q == NULL)
        return rc;
    note_show(q->note, note);
    if (owner != NULL)
        *owner = q->owner;
    *wall_ms = q->wall_ms;
    free_inquiry(q);
    return 0;
}

int simba_read_note(simba_client *s, const char *mutex, int64_t timeout_ms, struct simba_note *note,
                    struct simba_owner *owner)
{
    int64_t wall_ms;
    if (s == NULL || note == NULL)
        return error_say(SIMBA_EINVAL, "simba_read_note needs a client and a place for the note");
    return inquiry_read_note(s, mutex, timeout_ms, note, owner, &wall_ms);
}

/* That it took too long leaves the outcome open, as a failure of the store does. */
static int publish(struct simba_client *s, const char *mutex, const char *id, uint64_t token,
                   const char *text, int64_t timeout_ms)
{
    int rc;
    struct inquiry question = {.op = SIMBA_PUBLISH, .token = token};
    question.text_to_publish = strdup(text);
    if (question.text_to_publish == NULL)
        return error_on(SIMBA_ELIMIT, mutex, NULL, "out of memory");
    snprintf(question.id, sizeof question.id, "%s", id);
    struct inquiry *q = ask_about(s, &question, mutex, timeout_ms, &rc);
    if (q != NULL)
        free_inquiry(q);
    return rc == SIMBA_ETIMEOUT ? SIMBA_ESTORE : rc;
}

/* A tenure that was read as nobody's cannot be ended, whoever has come since. */
int simba_evict(simba_client *s, const char *mutex, const struct simba_owner *tenure, bool forced,
                int64_t timeout_ms)
{
    int rc;
    if (s == NULL)
        return error_say(SIMBA_EINVAL, "simba_evict needs a client");
    if (tenure != NULL && tenure->id[0] == '\0' && tenure->token == 0)
        return error_on(SIMBA_ELOST, mutex != NULL ? mutex : "", s->url.shown, "nobody owns it");
    struct inquiry question = {.op = SIMBA_EVICT, .forced = forced};
    if (tenure != NULL) {
        question.token = tenure->token;
        snprintf(question.id, sizeof question.id, "%.*s", SIMBA_ID_MAX, tenure->id);
    }
    struct inquiry *q = ask_about(s, &question, mutex, timeout_ms, &rc);
    if (q == NULL)
        return rc;
    free_inquiry(q);
    return 0;
}

int simba_list(simba_client *s, const char *prefix, int64_t timeout_ms, simba_entry_fn *each,
               void *data)
{
    struct inquiry question = {.op = SIMBA_LIST, .with_note = true};
    int rc;
    if (s == NULL || each == NULL)
        return error_say(SIMBA_EINVAL, "simba_list needs a client and a function to call");
    if (prefix != NULL && strlen(prefix) > SIMBA_MUTEX_MAX)
        return error_say(SIMBA_EINVAL,
                         "the prefix is longer than the name of a mutex may be: %d bytes",
                         SIMBA_MUTEX_MAX);
    snprintf(question.mutex, sizeof question.mutex, "%s", prefix != NULL ? prefix : "");
    struct inquiry *q = ask(s, &question, "cannot list the mutexes", timeout_ms, &rc);
    if (q == NULL)
        return rc;
    for (struct found *f = q->found; f != NULL; f = f->next) {
        struct simba_note note;
        struct simba_entry entry = {.mutex = f->mutex, .owner = f->owner, .waiters = f->waiters};
        if (f->note != NULL) {
            note_show(f->note, &note);
            entry.note = &note;
        }
        each(data, &entry);
    }
    free_inquiry(q);
    return 0;
}

int simba_examine(simba_client *s, int64_t timeout_ms, simba_examined_fn *each, void *data)
{
    int rc;
    if (s == NULL || each == NULL)
        return error_say(SIMBA_EINVAL, "simba_examine needs a client and a function to call");
    if (s->backend->examine == NULL)
        return error_say(SIMBA_EUNSUPPORTED, "%s: this store says nothing about itself",
                         s->url.shown);
    struct inquiry *q =
        ask(s, &(struct inquiry){.examines = true}, "cannot inspect the store", timeout_ms, &rc);
    if (q == NULL)
        return rc;
    for (struct finding *f = q->findings; f != NULL; f = f->next)
        each(data, &f->shown);
    free_inquiry(q);
    return 0;
}

struct shown {
    simba_finding_fn *each;
    void *data;
};

static void show_line(void *data, const struct simba_finding *finding)
{
    const struct shown *to = data;
    to->each(to->data, finding->level, finding->text);
}

int simba_diagnose(simba_client *s, int64_t timeout_ms, simba_finding_fn *each, void *data)
{
    struct shown to = {each, data};
    if (s == NULL || each == NULL)
        return error_say(SIMBA_EINVAL, "simba_diagnose needs a client and a function to call");
    return simba_examine(s, timeout_ms, show_line, &to);
}

/* ---- notes of owners ------------------------------------------------------------------------ */

/* How a handle publishes the one of its options is decided in core/handle.c. */

/* Whether the tenure lasts only the store knows: one that is being ended in order does. */
int note_publish(struct actor *a, uint64_t token, const char *text, int64_t timeout_ms)
{
    int rc = note_check(a->by_mutex.name, text);
    if (rc < 0)
        return rc;
    if (token == 0)
        return error_on(SIMBA_ELOST, a->by_mutex.name, actor_store(a),
                        "the tenure with token %llu is over, its note was not "
                        "written",
                        (unsigned long long)token);
    return publish(a->client, a->by_mutex.name, actor_id(a), token, text, timeout_ms);
}

int simba_contender_publish(simba_contender *c, uint64_t token, const char *text,
                            int64_t timeout_ms)
{
    int rc = actor_check(actor_of(c));
    if (rc < 0)
        return rc;
    if (scheduler_has_ticks(actor_of(c)))
        return error_on(SIMBA_ESTATE, actor_of(c)->by_mutex.name, NULL,
                        "a schedule with ticks keeps them in the note of the mutex, so it "
                        "cannot have a note of yours. Publish it on another mutex");
    return note_publish(actor_of(c), token, text, timeout_ms);
}

int simba_locker_publish(simba_locker *l, const char *text, int64_t timeout_ms)
{
    struct actor *a = actor_of(l);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    driver_lock(a->client);
    bool is_held = a->phase == LOCKER_HELD;
    driver_unlock(a->client);
    if (!is_held)
        return error_on(SIMBA_ESTATE, a->by_mutex.name, NULL, "this locker is not held");
    return note_publish(a, simba_locker_token(l), text, timeout_ms);
}

int simba_observer_note(const simba_observer *w, struct simba_note *out)
{
    const struct actor *a = actor_of(w);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    if (out == NULL)
        return error_say(SIMBA_EINVAL, "simba_observer_note needs a place for the result");
    if (a->by_mutex.name[0] == '\0')
        return error_say(SIMBA_ESTATE, "an observer of all mutexes keeps no notes: use simba_list");
    driver_lock(a->client);
    note_show(a->note, out);
    driver_unlock(a->client);
    return 0;
}
