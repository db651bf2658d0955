/* note.c: notes as stores tell them, and the calls that publish and read them. How a handle publishes
 * the one of its options is decided in core/handle.c. */
#include "runtime/note.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/name.h"
#include "runtime/client.h"
#include "runtime/fault.h"
#include "runtime/inquiry.h"
#include "runtime/scheduler.h"

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
    return fault_on(SIMBA_EINVAL, mutex, NULL, "%s", rule);
}

/* ---- publishing ---------------------------------------------------------------------------- */

/* Whether the tenure lasts only the store knows: one that is being ended in order does. */
int note_publish(struct actor *a, uint64_t token, const char *text, int64_t timeout_ms)
{
    int rc = note_check(a->by_mutex.name, text);
    if (rc < 0)
        return rc;
    if (token == 0)
        return fault_on(SIMBA_ELOST, a->by_mutex.name, actor_store(a),
                        "the tenure with token %llu is over, its note was not "
                        "written",
                        (unsigned long long)token);
    return inquiry_publish(a->client, a->by_mutex.name, actor_id(a), token, text, timeout_ms);
}

int simba_contender_publish(simba_contender *c, uint64_t token, const char *text,
                            int64_t timeout_ms)
{
    int rc = actor_check(actor_of(c));
    if (rc < 0)
        return rc;
    if (scheduler_has_ticks(actor_of(c)))
        return fault_on(SIMBA_ESTATE, actor_of(c)->by_mutex.name, NULL,
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
        return fault_on(SIMBA_ESTATE, a->by_mutex.name, NULL, "this locker is not held");
    return note_publish(a, simba_locker_token(l), text, timeout_ms);
}

/* ---- reading ------------------------------------------------------------------------------- */

int simba_observer_note(const simba_observer *w, struct simba_note *out)
{
    const struct actor *a = actor_of(w);
    int rc = actor_check(a);
    if (rc < 0)
        return rc;
    if (out == NULL)
        return fault(SIMBA_EINVAL, "simba_observer_note needs a place for the result");
    if (a->by_mutex.name[0] == '\0')
        return fault(SIMBA_ESTATE, "an observer of all mutexes keeps no notes: use simba_list");
    driver_lock(a->client);
    note_show(a->note, out);
    driver_unlock(a->client);
    return 0;
}
