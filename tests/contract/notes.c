/* notes.c: what an owner publishes about its mutex: written only in its tenure, kept after it. What a store
 * refuses that no handle would ask for is in tests/notes. */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static void check_supported(int code)
{
    if (code == SIMBA_EUNSUPPORTED)
        suite_skip("this store keeps no notes");
}

static struct simba_note read_note(simba_client *s, const char *mutex)
{
    struct simba_note note;
    memset(&note, 'x', sizeof note);
    int code = simba_read_note(s, mutex, PATIENCE_MS, &note, NULL);
    check_supported(code);
    CHECK_OK(code);
    return note;
}

static void check_note(simba_client *s, const char *mutex, const char *text, uint64_t token)
{
    struct simba_note note = read_note(s, mutex);
    CHECK(strcmp(note.text, text) == 0);
    CHECK(note.token == token);
    CHECK(note.reserved[0] == 0 && note.reserved[1] == 0 && note.reserved[2] == 0);
}

static void publish(struct probe *p, const char *text)
{
    int code = simba_contender_publish(p->c, simba_contender_token(p->c), text, PATIENCE_MS);
    check_supported(code);
    CHECK_OK(code);
}

/* ---- written and read ---------------------------------------------------------------------- */

/* With its owner in one exchange; and without one. */
/* shows: C12 */
static void note_is_kept(void)
{
    static const struct simba_note none;
    simba_client *s = client_open(), *other = client_open();
    const char *mutex = fresh("note");
    struct simba_handle_options o = lease_long();
    struct simba_note note;
    struct simba_owner owner;
    struct probe p = {0};
    note = read_note(other, mutex);
    CHECK(memcmp(&note, &none, sizeof none) == 0);
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    note = read_note(other, mutex);
    CHECK(memcmp(&note, &none, sizeof none) == 0);
    int64_t before = simba_now();
    publish(&p, "http://10.0.0.7:8080");
    int64_t after = simba_now();
    uint64_t token = simba_contender_token(p.c);
    nap(300);
    CHECK_OK(simba_read_note(other, mutex, PATIENCE_MS, &note, &owner));
    CHECK(strcmp(note.text, "http://10.0.0.7:8080") == 0 && note.token == token);
    CHECK(strcmp(owner.id, simba_contender_id(p.c)) == 0 && owner.token == token);
    int64_t age = simba_now() - note.written_at; /* never more than it is, but for rounding */
    CHECK(age >= 0 && age <= simba_now() - before + 2);
    CHECK(note.written_at >= before - 2);
    CHECK(age + 5000 >= simba_now() - after); /* and not much less */
    probe_stop(&p);
    CHECK_OK(simba_read_note(other, mutex, PATIENCE_MS, &note, &owner));
    CHECK(strcmp(note.text, "http://10.0.0.7:8080") == 0 && note.token == token);
    CHECK(owner.id[0] == '\0');
    client_close(other);
    client_close(s);
}

/* What the last owner wrote is there until the next one writes; of one tenure the last counts. */
/* shows: C12 */
static void note_of_predecessor(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("after");
    struct simba_handle_options o = lease_long();
    struct probe a = {0}, b = {0};
    probe_start(&a, s, mutex, &o);
    AWAIT(probe_leads(&a));
    publish(&a, "first");
    uint64_t first = simba_contender_token(a.c);
    probe_stop(&a);
    probe_start(&b, s, mutex, &o);
    AWAIT(probe_leads(&b));
    check_note(s, mutex, "first", first);
    publish(&b, "second");
    check_note(s, mutex, "second", simba_contender_token(b.c));
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof text, "tick %d", i);
        publish(&b, text);
        check_note(s, mutex, text, simba_contender_token(b.c));
    }
    CHECK(simba_contender_token(b.c) > first);
    client_close(s);
}

/* Whatever it says, it comes back byte for byte. */
/* shows: C12 */
static void note_texts(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("it's {a} \"name\" %41\\");
    struct simba_handle_options o = lease_long();
    char longest[SIMBA_NOTE_MAX + 2];
    struct probe p = {0};
    static const char *const texts[] = {
        "",
        " ",
        "0",
        "NULL",
        "it's \"quoted\" \\ and \\x41",
        "{\"tick\": [1, 2]}, {}",
        "two\nlines\r\n\tand more",
        "%s %d %41",
        "\xf0\x9f\xa6\x81 \xc3\xbc\xe2\x80\xa6",
        "7:8:9:x",
        "12 13\n14",
        "\x01\x7f",
        "trailing blanks  ",
    };
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        publish(&p, texts[i]);
        check_note(s, mutex, texts[i], simba_contender_token(p.c));
    }
    for (size_t i = 0; i < SIMBA_NOTE_MAX; i += 2)
        memcpy(longest + i, "\xc3\xbc", 3);
    publish(&p, longest);
    check_note(s, mutex, longest, simba_contender_token(p.c));
    memcpy(longest + SIMBA_NOTE_MAX, "x", 2);
    uint64_t token = simba_contender_token(p.c);
    CHECK_REFUSED(simba_contender_publish(p.c, token, longest, PATIENCE_MS), SIMBA_EINVAL,
                  "longer than 1024 bytes");
    CHECK_REFUSED(simba_contender_publish(p.c, token, "\xff", PATIENCE_MS), SIMBA_EINVAL, "UTF-8");
    CHECK_REFUSED(simba_contender_publish(p.c, token, NULL, PATIENCE_MS), SIMBA_EINVAL, "missing");
    CHECK_REFUSED(simba_contender_publish(p.c, token, "x", -1), SIMBA_EINVAL, "timeout");
    longest[SIMBA_NOTE_MAX] = '\0';
    check_note(s, mutex, longest, token);
    client_close(s);
}

struct listed {
    const char *mutex;
    int times;
    bool has_note;
    struct simba_note note;
};

static void on_entry(void *data, const struct simba_entry *e)
{
    struct listed *l = data;
    if (strcmp(e->mutex, l->mutex) != 0)
        return;
    l->times++;
    l->has_note = e->note != NULL;
    if (e->note != NULL)
        l->note = *e->note;
}

/* shows: C12 */
static void note_in_list(void)
{
    simba_client *s = client_open();
    struct listed with = {.mutex = fresh("listed")}, without = {.mutex = fresh("not-noted")};
    struct simba_handle_options o = lease_long();
    struct probe p = {0}, q = {0};
    probe_start(&p, s, with.mutex, &o);
    probe_start(&q, s, without.mutex, &o);
    AWAIT(probe_leads(&p) && probe_leads(&q));
    publish(&p, "seen in the list");
    CHECK_OK(simba_list(s, with.mutex, PATIENCE_MS, on_entry, &with));
    CHECK_OK(simba_list(s, NULL, PATIENCE_MS, on_entry, &without));
    CHECK(with.times == 1 && with.has_note && without.times == 1 && !without.has_note);
    CHECK(strcmp(with.note.text, "seen in the list") == 0);
    CHECK(with.note.token == simba_contender_token(p.c));
    CHECK(with.note.written_at <= simba_now());
    probe_stop(&p); /* what nobody owns is not listed, whatever its note */
    with.times = 0;
    CHECK_OK(simba_list(s, with.mutex, PATIENCE_MS, on_entry, &with));
    CHECK(with.times == 0);
    client_close(s);
}

/* ---- refused ------------------------------------------------------------------------------- */

/* shows: C12 */
static void note_needs_tenure(void)
{
    simba_client *s = client_open();
    const char *mutex = fresh("refused");
    struct simba_handle_options o = lease_long();
    struct simba_note note;
    struct simba_locker *l;
    struct probe p = {0};
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    uint64_t token = simba_contender_token(p.c);
    publish(&p, "kept");
    CHECK_CODE(simba_contender_publish(p.c, token + 1, "x", PATIENCE_MS), SIMBA_ELOST);
    CHECK_CODE(simba_contender_publish(p.c, 0, "x", PATIENCE_MS), SIMBA_ELOST);
    CHECK_OK(simba_locker_create(s, mutex, NULL, &l));
    CHECK_REFUSED(simba_locker_publish(l, "x", PATIENCE_MS), SIMBA_ESTATE, "not held");
    probe_stop(&p);
    CHECK_REFUSED(simba_contender_publish(p.c, token, "x", PATIENCE_MS), SIMBA_ELOST, "is over");
    check_note(s, mutex, "kept", token);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_publish(l, "by the lock", PATIENCE_MS));
    check_note(s, mutex, "by the lock", simba_locker_token(l));
    CHECK_OK(simba_locker_release(l));
    CHECK_CODE(simba_locker_publish(l, "x", PATIENCE_MS), SIMBA_ESTATE);
    CHECK_CODE(simba_contender_publish(NULL, token, "x", 0), SIMBA_EINVAL);
    CHECK_CODE(simba_locker_publish(NULL, "x", 0), SIMBA_EINVAL);
    CHECK_CODE(simba_read_note(NULL, mutex, 0, &note, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_read_note(s, mutex, PATIENCE_MS, NULL, NULL), SIMBA_EINVAL);
    CHECK_CODE(simba_read_note(s, "", PATIENCE_MS, &note, NULL), SIMBA_EINVAL);
    client_close(s);
}

/* ---- by an option -------------------------------------------------------------------------- */

struct seen_in {
    simba_client *client;
    const char *mutex;
    atomic_int seen;
};

/* In on_acquired it is there already. */
static void see_note(struct probe *p)
{
    struct seen_in *t = p->data;
    struct simba_note note;
    CHECK_OK(simba_read_note(t->client, t->mutex, PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "http://me") == 0);
    CHECK(note.token == simba_contender_token(p->c));
    atomic_fetch_add(&t->seen, 1);
}

/* shows: C12 */
static void note_before_acquired(void)
{
    simba_client *s = client_open();
    struct seen_in t = {.client = s, .mutex = fresh("advertised")};
    struct simba_handle_options o = lease_long();
    simba_locker *l;
    read_note(s, t.mutex);
    o.note = "http://me";
    struct probe p = {.in_acquired = see_note, .data = &t};
    probe_create(&p, s, t.mutex, &o);
    for (int round = 1; round <= 5; round++) {
        CHECK_OK(simba_contender_start(p.c));
        AWAIT(atomic_load(&t.seen) == round);
        if (round == 3) /* a later one of the same tenure is not replaced by the option's */
            publish(&p, "more");
        AWAIT(probe_leads(&p));
        probe_stop(&p);
    }
    o.note = "locked";
    CHECK_OK(simba_locker_create(s, t.mutex, &o, &l));
    for (int round = 0; round < 3; round++) {
        CHECK_OK(simba_locker_acquire(l, round == 1 ? 0 : PATIENCE_MS));
        check_note(s, t.mutex, "locked", simba_locker_token(l));
        CHECK_OK(simba_locker_release(l));
    }
    o.note = "\xc3";
    CHECK_REFUSED(simba_locker_create(s, t.mutex, &o, &l), SIMBA_EINVAL, "UTF-8");
    client_close(s);
}

/* ---- observed ------------------------------------------------------------------------------ */

struct watching {
    simba_observer *w;
    atomic_int changes;
    _Atomic uint64_t token;
};

static void on_changed(void *data, const char *mutex, const struct simba_state *state)
{
    struct watching *x = data;
    (void)mutex;
    atomic_store(&x->token, state->after.token);
    atomic_fetch_add(&x->changes, 1);
}

/* shows: C12 */
static void note_observed(void)
{
    simba_client *s = client_open(), *other = client_open();
    const char *mutex = fresh("observed");
    struct simba_handle_options o = lease_long(), watches = SIMBA_HANDLE_OPTIONS_INIT;
    struct watching x = {0}, all = {0};
    struct simba_note note;
    struct probe p = {0};
    read_note(s, mutex);
    o.note = "observed";
    probe_start(&p, s, mutex, &o);
    AWAIT(probe_leads(&p));
    watches.on_changed = on_changed;
    watches.data = &x;
    CHECK_OK(simba_observer_create(other, mutex, &watches, &x.w));
    AWAIT(atomic_load(&x.token) == simba_contender_token(p.c));
    CHECK_OK(simba_observer_note(x.w, &note));
    CHECK(strcmp(note.text, "observed") == 0 && note.token == simba_contender_token(p.c));
    watches.data = &all;
    CHECK_OK(simba_observer_create(other, NULL, &watches, &all.w));
    CHECK_CODE(simba_observer_note(all.w, &note), SIMBA_ESTATE);
    CHECK_CODE(simba_observer_note(NULL, &note), SIMBA_EINVAL);
    CHECK_CODE(simba_observer_note(x.w, NULL), SIMBA_EINVAL);
    watches.note = "x";
    CHECK_REFUSED(simba_observer_create(other, mutex, &watches, &all.w), SIMBA_EINVAL, "note");
    client_close(other);
    client_close(s);
}

const struct test note_tests[] = {
    {"note_is_kept", note_is_kept, ANY_STORE, 0},
    {"note_of_predecessor", note_of_predecessor, ANY_STORE, 0},
    {"note_texts", note_texts, ANY_STORE, 0},
    {"note_in_list", note_in_list, ANY_STORE, 0},
    {"note_needs_tenure", note_needs_tenure, ANY_STORE, 0},
    {"note_before_acquired", note_before_acquired, ANY_STORE, 0},
    {"note_observed", note_observed, ANY_STORE, 0},
    {NULL, NULL, ANY_STORE, 0},
};
