/* machine.h: stories about one handle, told and checked line by line, on a clock of their own.
 *
 * A story is a text. A line has a time in milliseconds, what happens then, and behind ">" all that
 * the machine does about it, "-" for nothing:
 *
 *      0 start          > STARTING; send #1 CONTEND
 *      3 #1 granted 7   > owns 7 until 14838; RUNNING; call acquired
 *   5000 due            > send #2 RENEW 7
 *
 * What can happen:
 *   start [at T], stop                     by the user of a contender
 *   resign TOKEN MS                        of this tenure, with a pause
 *   report, rest                           progress at that time; from then on none is asked for
 *   acquire [once | until T], release      by the caller of a locker
 *   abandon                                it has gone without its result
 *   cancel                                 it is to wait no longer
 *   close, destroy                         by the client, by the owner of either
 *   changed                                an observer's view of the mutex did
 *   done, skipped                          the callback returned; was outdated and did not run
 *   warned                                 on_endangered returned
 *   due, hint                              a timer; a push from the store
 *   #N granted TOKEN [for MS]              the store's answer to request N, which may come late,
 *   #N owner ID TOKEN [for MS]             twice or never; MS is what it says is left of the
 *   #N renewed [for MS], released, free,   lease; the id "me" is our own, "nobody" is ""
 *      lost, fails CODE
 *   published N, unpublished N CODE        the store's answer to the N-th publication of the note
 * Lines without a time look inside: "next 4500..5000" and "next never" at the time of the next
 * wake-up, "is ended" at the state of the lease.
 *
 * Timers may come late, never early. So in a story one is due where the jitter has surely ended, and does
 * not depend on the random numbers; test_period.c checks those. */
#ifndef UNIT_MACHINE_H
#define UNIT_MACHINE_H

#include "base/rng.h"
#include "core/handle.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MACHINE_SENT 64 /* requests that can still be answered */
#define MACHINE_LINE 512
#define MACHINE_FIELDS 7
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    CHOSEN_ID = 1,
    PROMPT = 2, /* callbacks return at once */
    QUEUES = 4, /* the store remembers who waits */
    SILENT = 8, /* nobody wants to be told of danger or a stop */
    NOTED = 16  /* it has a note to publish */
};

struct machine {
    struct handle handle;
    struct handle_extra extra;
    int64_t reported_at;
    struct period period;
    bool prompt;
    bool leads;         /* on_acquired ran, on_released did not */
    bool asks;          /* a locker's caller waits for its result */
    int64_t now;        /* ns */
    uint64_t sent_last; /* the sequence number of the newest request */
    struct lease_request sent[MACHINE_SENT];
    uint64_t publications; /* so many were sent: */
    struct lease_request publication[MACHINE_SENT];
    int64_t newest_sent_at;
    int64_t deadline; /* as last told */
    uint64_t token;
    uint8_t status;
    char done[MACHINE_LINE]; /* what the machine did since the story's last line */
};

static inline void machine_init(struct machine *m, enum handle_kind kind, unsigned flags,
                                int64_t drain_ms)
{
    static const struct period_options defaults = {-1, -1, -1, -1, -1, -1, -1};
    const char *why;
    *m = (struct machine){.prompt = (flags & PROMPT) != 0};
    assert_int_equal(period_init(&m->period, &defaults, &why), 0);
    handle_init(&m->handle, kind, drain_ms == NEVER ? NEVER : drain_ms * NS_PER_MS, &m->period,
                "me", (flags & CHOSEN_ID) == 0, (flags & QUEUES) != 0, 1, NULL);
}

/* With what few handles ask for; on_endangered and on_stopped are wanted, unless it is SILENT. */
static inline void machine_init_extra(struct machine *m, enum handle_kind kind, unsigned flags,
                                      int64_t progress_ms, int64_t at_least_ms)
{
    machine_init(m, kind, flags, 30000);
    m->extra = (struct handle_extra){
        .at_least = at_least_ms * NS_PER_MS,
        .watchdog = {.limit = progress_ms * NS_PER_MS},
        .tells_danger = (flags & SILENT) == 0,
        .tells_stopped = kind == HANDLE_CONTENDER && (flags & SILENT) == 0,
        .has_note = (flags & NOTED) != 0,
    };
    handle_init(&m->handle, kind, 30000 * NS_PER_MS, &m->period, "me", (flags & CHOSEN_ID) == 0,
                (flags & QUEUES) != 0, 1, &m->extra);
}

/* ---- what the machine does ----------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static inline void tell(struct machine *m, const char *format,
                                                              ...)
{
    size_t length = strlen(m->done);
    va_list args;
    va_start(args, format);
    if (length > 0)
        length += (size_t)snprintf(m->done + length, sizeof m->done - length, "; ");
    vsnprintf(m->done + length, sizeof m->done - length, format, args);
    va_end(args);
}

#define MACHINE_NAME(name, number, text) {#name, number},
static const struct {
    const char *name;
    int code;
} machine_codes[] = {{"OK", 0}, SIMBA_ERRORS(MACHINE_NAME)};
#undef MACHINE_NAME

static inline const char *code_name(int code)
{
    size_t i = 0;
    while (machine_codes[i].code != code)
        i++;
    return machine_codes[i].name;
}

static inline int code_of(const char *name)
{
    size_t i = 0;
    while (strcmp(machine_codes[i].name, name) != 0)
        assert_true(++i < COUNT(machine_codes));
    return machine_codes[i].code;
}

static inline void tell_update(struct machine *m, const struct handle_update *up)
{
    static const char *const reasons[] = {"UNCHANGED", "ACQUIRED", "RELEASED",
                                          "EXPIRED",   "EVICTED",  "STALLED"};
    static const char *const ops[] = {"CONTEND", "RENEW", "RELEASE", "READ", "LEAVE"};
    int64_t deadline = lease_deadline(&m->handle.lease);

    if (up->news == LEASE_ANSWERED)
        tell(m, "answered");
    else if (up->news == LEASE_LOST)
        tell(m, "lost %s", reasons[m->handle.lease.reason]);
    else if (up->news == LEASE_GIVEN)
        tell(m, "given back");
    else if (up->news == LEASE_GONE)
        tell(m, "was gone");
    else if (up->news == LEASE_FAILED)
        tell(m, "failed %s", code_name(up->failure));
    if (deadline != m->deadline && deadline == 0)
        tell(m, "owns nothing");
    else if (deadline != m->deadline)
        tell(m, "owns %" PRIu64 " until %" PRId64, m->handle.lease.token, deadline / NS_PER_MS);
    if (m->handle.status != m->status)
        tell(m, "%s", status_name((enum simba_status)m->handle.status));
    if (up->has_result)
        tell(m, "result %s", code_name(up->code));
    if (up->callback == CALLBACK_ACQUIRED)
        tell(m, "call acquired");
    else if (up->callback == CALLBACK_RELEASED)
        tell(m, "call released %s", reasons[up->reason]);
    else if (up->callback == CALLBACK_CHANGED)
        tell(m, "call changed");
    else if (up->callback == CALLBACK_STOPPED)
        tell(m, "call stopped");
    else if (up->callback == CALLBACK_CLOSED)
        tell(m, "call closed");
    if (up->endangered)
        tell(m, "warn of %" PRId64, up->left / NS_PER_MS);
    if (up->unpublished != 0)
        tell(m, "not published %s", code_name(up->unpublished));
    if (up->published_late)
        tell(m, "published late");
    if (up->send && up->request.op == SIMBA_PUBLISH)
        tell(m, "publish %" PRIu64 " for %" PRIu64, up->request.seq, up->request.token);
    else if (up->send && up->request.token != 0)
        tell(m, "send #%" PRIu64 " %s %" PRIu64, up->request.seq, ops[up->request.op],
             up->request.token);
    else if (up->send)
        tell(m, "send #%" PRIu64 " %s", up->request.seq, ops[up->request.op]);
    m->deadline = deadline;
    m->status = m->handle.status;
}

/* ---- what must be so after every step, whatever happened ----------------------------------- */

/* on_closed is no work under the mutex: what turns up while it runs may be given back. */
static inline void check_request(const struct machine *m, const struct lease_request *r)
{
    const struct handle *h = &m->handle;
    assert_true(r->sent_at == m->now);
    if (r->op == SIMBA_PUBLISH) {
        assert_true(r->seq == m->publications + 1);
        assert_true(lease_deadline(&h->lease) != 0 && r->token == h->lease.token);
        return;
    }
    bool user_code = h->callback == CALLBACK_ACQUIRED || h->callback == CALLBACK_RELEASED ||
                     h->acquired_ran || h->held || handle_warns(h);
    assert_true(r->seq == m->sent_last + 1);
    assert_true(h->lease.in_flight);
    if (r->op == SIMBA_RELEASE)
        assert_false(user_code);
    if (r->op == SIMBA_RENEW)
        assert_true(h->lease.state == LEASE_HOLDING);
    assert_true((r->token != 0) == (r->op == SIMBA_RENEW || r->op == SIMBA_RELEASE));
}

static inline void check_step(struct machine *m, const struct handle_event *e,
                              const struct handle_update *up)
{
    const struct handle *h = &m->handle;
    int64_t next = handle_next_wake(h), deadline = lease_deadline(&h->lease);
    if (e->kind == HANDLE_EXPIRE) /* else it would come again and again */
        assert_true(next > m->now);
    if (next == NEVER)
        assert_true(h->lease.state == LEASE_IDLE || h->callback != CALLBACK_NONE ||
                    h->acquired_ran || h->held || handle_warns(h));

    assert_true(deadline == 0 || deadline > m->now);
    assert_true(deadline == 0 ||
                deadline <= period_hold_until(&m->period, m->newest_sent_at, m->period.lease));
    bool waits_for_note = h->extra != NULL && h->extra->holds_back && h->waiting;
    assert_true(deadline == 0 || h->status == SIMBA_RUNNING || h->held || waits_for_note);

    if (e->kind == HANDLE_DONE && e->ran && m->handle.kind == HANDLE_CONTENDER)
        m->leads = h->acquired_ran;
    if (up->callback == CALLBACK_ACQUIRED)
        assert_true(!m->leads && deadline != 0);
    if (up->callback == CALLBACK_RELEASED)
        assert_true((m->leads || h->kind == HANDLE_LOCKER) && deadline == 0 && !handle_warns(h));
    if (up->callback == CALLBACK_STOPPED)
        assert_true(!m->leads && h->status == SIMBA_INITIAL);
    if (up->callback == CALLBACK_CLOSED)
        assert_true(!m->leads && h->closing && h->lease.state == LEASE_IDLE);
    if (up->endangered)
        assert_true(deadline != 0 && up->left > 0 && up->left <= deadline - m->now);

    bool asked = m->asks || e->kind == HANDLE_ACQUIRE || e->kind == HANDLE_RELEASE;
    assert_true(asked || !up->has_result);
    m->asks = asked && !up->has_result && e->kind != HANDLE_ABANDON;
    assert_true(m->asks == (h->waiting || h->leaving));
    if (up->send)
        check_request(m, &up->request);
}

static inline void machine_step(struct machine *m, struct handle_event e)
{
    struct handle_update up;
    assert_true(e.now >= m->now);
    m->now = e.now;
    e.reported_at = m->reported_at;
    handle_step(&m->handle, &e, &up);
    check_step(m, &e, &up);
    tell_update(m, &up);
    if (up.send && up.request.op == SIMBA_PUBLISH) {
        m->publications = up.request.seq;
        m->publication[up.request.seq % MACHINE_SENT] = up.request;
    } else if (up.send) {
        m->sent_last = up.request.seq;
        m->sent[up.request.seq % MACHINE_SENT] = up.request;
        m->newest_sent_at = up.request.sent_at;
    }
    if (m->prompt && up.callback != CALLBACK_NONE)
        machine_step(m, (struct handle_event){.kind = HANDLE_DONE, .now = e.now, .ran = true});
}

/* ---- what happens -------------------------------------------------------------------------- */

struct machine_line {
    bool timed;
    char word[MACHINE_FIELDS][24];
    int count;
};

static inline int64_t word_time(const struct machine_line *l, int n)
{
    assert_true(n < l->count);
    return strtoll(l->word[n], NULL, 10) * NS_PER_MS;
}

static inline bool word_is(const struct machine_line *l, int n, const char *word)
{
    return n < l->count && strcmp(l->word[n], word) == 0;
}

static inline struct lease_reply line_reply(const struct machine *m, const struct machine_line *l)
{
    uint64_t seq = strtoull(l->word[1] + 1, NULL, 10);
    assert_true(seq > 0 && seq <= m->sent_last && seq + MACHINE_SENT > m->sent_last);
    struct lease_reply r = {.request = m->sent[seq % MACHINE_SENT], .owner = ""};
    if (word_is(l, 2, "granted")) {
        r.granted = true;
        r.owner = "me";
        r.token = strtoull(l->word[3], NULL, 10);
        r.left = m->period.lease;
    } else if (word_is(l, 2, "owner")) {
        r.owner = word_is(l, 3, "nobody") ? "" : l->word[3];
        r.token = strtoull(l->word[4], NULL, 10);
    } else if (word_is(l, 2, "renewed")) {
        r.owner = "me";
        r.token = r.request.token;
        r.left = m->period.lease;
    } else if (word_is(l, 2, "lost")) {
        r.code = SIMBA_ELOST;
    } else if (word_is(l, 2, "fails")) {
        r.code = code_of(l->word[3]);
    } else {
        assert_true(word_is(l, 2, "free") || word_is(l, 2, "released"));
    }
    if (word_is(l, l->count - 2, "for"))
        r.left = word_time(l, l->count - 1);
    return r;
}

static inline struct lease_reply line_published(const struct machine *m,
                                                const struct machine_line *l)
{
    uint64_t seq = strtoull(l->word[2], NULL, 10);
    assert_true(seq > 0 && seq <= m->publications);
    struct lease_reply r = {.request = m->publication[seq % MACHINE_SENT], .owner = ""};
    if (word_is(l, 1, "unpublished"))
        r.code = code_of(l->word[3]);
    return r;
}

static inline void happen(struct machine *m, const struct machine_line *l)
{
    static const struct {
        const char *word;
        enum handle_event_kind kind;
    } kinds[] = {
        {"start", HANDLE_START},     {"stop", HANDLE_STOP},       {"close", HANDLE_CLOSE},
        {"acquire", HANDLE_ACQUIRE}, {"release", HANDLE_RELEASE}, {"done", HANDLE_DONE},
        {"skipped", HANDLE_DONE},    {"due", HANDLE_EXPIRE},      {"hint", HANDLE_HINT},
        {"destroy", HANDLE_DESTROY}, {"changed", HANDLE_CHANGED}, {"abandon", HANDLE_ABANDON},
        {"cancel", HANDLE_CANCEL},   {"resign", HANDLE_RESIGN},   {"warned", HANDLE_WARNED},
        {"report", HANDLE_EXPIRE},   {"rest", HANDLE_EXPIRE},
    };
    struct handle_event e = {.kind = HANDLE_REPLY, .now = word_time(l, 0), .at = NEVER};
    struct lease_reply reply;
    if (l->word[1][0] == '#') {
        reply = line_reply(m, l);
        e.reply = &reply;
    } else if (word_is(l, 1, "published") || word_is(l, 1, "unpublished")) {
        reply = line_published(m, l);
        e.reply = &reply;
    } else {
        size_t i = 0;
        while (!word_is(l, 1, kinds[i].word))
            assert_true(++i < COUNT(kinds));
        e.kind = kinds[i].kind;
    }
    if (e.kind == HANDLE_START)
        e.at = e.now;
    if (word_is(l, 2, "at") || word_is(l, 2, "until"))
        e.at = word_time(l, 3);
    if (e.kind == HANDLE_RESIGN) {
        e.token = strtoull(l->word[2], NULL, 10);
        e.at = word_time(l, 3);
    }
    if (word_is(l, 1, "report") || word_is(l, 1, "rest"))
        m->reported_at = word_is(l, 1, "rest") ? NEVER : e.now;
    e.once = word_is(l, 2, "once");
    if (e.once) /* as the runtime has it */
        e.at = e.now + m->period.patience + m->period.attempt;
    e.ran = word_is(l, 1, "done");
    machine_step(m, e);
}

static inline void check_inside(const struct machine *m, const struct machine_line *l,
                                const char *text)
{
    int64_t next = handle_next_wake(&m->handle), low, high;
    bool right;
    if (word_is(l, 0, "is")) {
        right = word_is(l, 1, lease_state_name((enum lease_state)m->handle.lease.state));
    } else if (word_is(l, 1, "never")) {
        right = next == NEVER;
    } else {
        assert_int_equal(sscanf(l->word[1], "%" SCNd64 "..%" SCNd64, &low, &high), 2);
        right = next >= low * NS_PER_MS && next <= high * NS_PER_MS;
    }
    if (!right)
        fail_msg("%s: next %" PRId64 " ns, is %s", text, next,
                 lease_state_name((enum lease_state)m->handle.lease.state));
}

static inline void play_line(struct machine *m, const char *text)
{
    struct machine_line l = {.count = 0};
    char left[MACHINE_LINE], done[3 * MACHINE_LINE], expected[3 * MACHINE_LINE];
    const char *arrow = strchr(text, '>');
    snprintf(left, sizeof left, "%.*s", (int)(arrow != NULL ? arrow - text : MACHINE_LINE), text);
    for (int at = 0, n; l.count < MACHINE_FIELDS; at += n) {
        if (sscanf(left + at, "%23s%n", l.word[l.count], &n) != 1)
            break;
        l.count++;
    }
    assert_true(l.count > 1);
    if (arrow == NULL) {
        check_inside(m, &l, text);
        return;
    }
    m->done[0] = '\0';
    happen(m, &l);
    snprintf(done, sizeof done, "%s> %s", left, m->done[0] != '\0' ? m->done : "-");
    snprintf(expected, sizeof expected, "%s> %s", left, arrow + 1 + strspn(arrow + 1, " "));
    assert_string_equal(done, expected);
}

static inline void play(struct machine *m, const char *story)
{
    for (const char *end; *story != '\0'; story = end + 1) {
        char line[MACHINE_LINE];
        end = strchr(story, '\n');
        assert_non_null(end);
        snprintf(line, sizeof line, "%.*s", (int)(end - story), story);
        play_line(m, line);
    }
}

/* One story from the first line to the last. */
static inline void tell_story(enum handle_kind kind, unsigned flags, const char *story)
{
    struct machine m;
    machine_init(&m, kind, flags, 30000);
    play(&m, story);
}

/* One of a handle that has a note. */
static inline void tell_story_with_note(enum handle_kind kind, const char *story)
{
    struct machine m;
    machine_init_extra(&m, kind, SILENT | NOTED, 0, 0);
    play(&m, story);
}

/* One of a handle that asks for progress, or for a least time. */
static inline void tell_story_of(enum handle_kind kind, int64_t progress_ms, int64_t at_least_ms,
                                 const char *story)
{
    struct machine m;
    machine_init_extra(&m, kind, 0, progress_ms, at_least_ms);
    play(&m, story);
}
#endif
