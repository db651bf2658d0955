/* script.c: what the lines of a script mean. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "scenario.h"
#include "world.h"

#define LATENCY_MS 10
#define MUTEX 0

typedef void act_function(struct world *w, struct node *n, int64_t length);

/* In a phrase CLIENT stands for A to D, TIME for 300ms or 20s. Either it has a function, or it
 * calls for a fault: `times` times, for as long as TIME says. */
struct phrase {
    const char *text;
    act_function *act;
    enum fault fault;
    unsigned times;
};

/* ---- settings: before the world begins ----------------------------------------------------- */

static void set_sessions(struct world *w, struct node *n, int64_t length)
{
    (void)n, (void)length;
    w->store.sessions = true;
}

static void set_locker(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)length;
    n->kind = HANDLE_LOCKER;
}

static void set_primary(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)length;
    n->chosen = "primary";
}

static void set_slow_clock(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    n->rate_ppm = -w->period.drift_ppm;
}

static void set_drain(struct world *w, struct node *n, int64_t length)
{
    (void)w;
    n->drain = length;
}

static void set_progress(struct world *w, struct node *n, int64_t length)
{
    (void)w;
    n->has_extra = n->tells_danger = true;
    n->progress = length;
}

static void set_at_least(struct world *w, struct node *n, int64_t length)
{
    (void)w;
    n->has_extra = true;
    n->at_least = length;
}

static void set_danger(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)length;
    n->has_extra = n->tells_danger = true;
}

static void set_stopped(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)length;
    n->has_extra = n->tells_stopped = true;
}

static const struct phrase settings[] = {
    {.text = "with a session store", .act = set_sessions},
    {.text = "with CLIENT as a locker", .act = set_locker},
    {.text = "with CLIENT called primary", .act = set_primary},
    {.text = "with the clock of CLIENT as slow as allowed", .act = set_slow_clock},
    {.text = "with a drain limit of TIME for CLIENT", .act = set_drain},
    {.text = "with progress every TIME asked of CLIENT", .act = set_progress},
    {.text = "with at_least TIME for CLIENT", .act = set_at_least},
    {.text = "with on_endangered for CLIENT", .act = set_danger},
    {.text = "with on_stopped for CLIENT", .act = set_stopped},
};

/* ---- the script ---------------------------------------------------------------------------- */

static void must(struct world *w, bool allowed)
{
    if (!allowed)
        world_fail(w, "the script cannot do that now");
}

static void start(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, n->kind == HANDLE_CONTENDER && n->machine.status == SIMBA_INITIAL);
    if (!w->failed)
        node_step(w, n, (struct handle_event){.kind = HANDLE_START, .at = world_local(w, n)});
}

static void stop(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, n->machine.status == SIMBA_STARTING || n->machine.status == SIMBA_RUNNING);
    node_step(w, n, (struct handle_event){.kind = HANDLE_STOP});
}

static void resign(struct world *w, struct node *n, int64_t length)
{
    must(w, node_owns(w, n) && n->note == HANDLE_EXPIRE);
    if (!w->failed)
        user_resign(w, n, length);
}

/* Its worker hangs: it reports nothing any more. */
static void stall(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)length;
    n->silent_until = NEVER;
}

static void close_handle(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    node_step(w, n, (struct handle_event){.kind = HANDLE_CLOSE});
}

static void destroy(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    n->user_holds = false;
    node_step(w, n, (struct handle_event){.kind = HANDLE_DESTROY});
}

/* A locker's caller; without a TIME it waits for ever. */
static void acquire(struct world *w, struct node *n, int64_t length)
{
    must(w, n->kind == HANDLE_LOCKER && !n->user_waits && !n->user_holds && !n->user_leaves);
    if (!w->failed)
        user_acquire(w, n, length != 0 ? world_local(w, n) + length : NEVER, false);
}

static void try_acquire(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, n->kind == HANDLE_LOCKER && !n->user_waits && !n->user_holds && !n->user_leaves);
    if (!w->failed)
        user_acquire(w, n, NEVER, true);
}

static void release(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, n->user_holds);
    if (!w->failed)
        user_release(w, n);
}

/* is_owner; with a TIME its thread is preempted between the deadline and the clock. */
static void ask(struct world *w, struct node *n, int64_t length)
{
    if (length != 0)
        w->armed[FAULT_PREEMPT][n->index] = (struct armed){.times = 1, .length = length};
    must(w, !n->reading);
    user_ask(w, n);
}

static void pause_process(struct world *w, struct node *n, int64_t length)
{
    node_stop_process(w, n, length, false);
}

static void suspend(struct world *w, struct node *n, int64_t length)
{
    node_stop_process(w, n, length, true);
}

static void kill_process(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, n->alive);
    node_crash(w, n);
}

static void boot(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    must(w, !n->alive);
    node_boot(w, n);
}

static void reconnect(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    w->armed[FAULT_LOSE_REQUEST][n->index].times = 0;
}

static void forge_push(struct world *w, struct node *n, int64_t length)
{
    (void)length;
    world_post(w, w->now, EVENT_HINT, n, NULL);
}

static void evict(struct world *w, struct node *n, int64_t length)
{
    (void)n, (void)length;
    store_evict(w, MUTEX, false);
}

static void force(struct world *w, struct node *n, int64_t length)
{
    (void)n, (void)length;
    store_evict(w, MUTEX, true);
}

static void forget(struct world *w, struct node *n, int64_t length)
{
    (void)n, (void)length;
    store_restart(w, true);
}

/* What no store of ours does: C2 has to begin anew with it. */
static void forget_tokens(struct world *w, struct node *n, int64_t length)
{
    (void)n, (void)length;
    store_restart(w, true);
    w->store.lease[MUTEX].fence = 0;
    w->greatest[MUTEX] = 0;
}

static void end(struct world *w, struct node *n, int64_t length)
{
    (void)w, (void)n, (void)length;
}

static const struct phrase script[] = {
    {.text = "start CLIENT", .act = start},
    {.text = "stop CLIENT", .act = stop},
    {.text = "resign CLIENT", .act = resign},
    {.text = "resign CLIENT for TIME", .act = resign},
    {.text = "stall CLIENT", .act = stall},
    {.text = "close CLIENT", .act = close_handle},
    {.text = "destroy CLIENT", .act = destroy},
    {.text = "acquire CLIENT", .act = acquire},
    {.text = "acquire CLIENT within TIME", .act = acquire},
    {.text = "try CLIENT", .act = try_acquire},
    {.text = "release CLIENT", .act = release},
    {.text = "ask CLIENT", .act = ask},
    {.text = "ask CLIENT preempted for TIME", .act = ask},
    {.text = "pause CLIENT for TIME", .act = pause_process},
    {.text = "suspend CLIENT for TIME", .act = suspend},
    {.text = "block the loop of CLIENT for TIME", .act = node_lag},
    {.text = "kill CLIENT", .act = kill_process},
    {.text = "boot CLIENT", .act = boot},
    {.text = "cut off CLIENT", .fault = FAULT_LOSE_REQUEST, .times = 1000},
    {.text = "reconnect CLIENT", .act = reconnect},
    {.text = "lose the next request of CLIENT", .fault = FAULT_LOSE_REQUEST, .times = 1},
    {.text = "lose the next reply to CLIENT", .fault = FAULT_LOSE_REPLY, .times = 1},
    {.text = "lose the next push to CLIENT", .fault = FAULT_LOSE_HINT, .times = 1},
    {.text = "fail the next request of CLIENT", .fault = FAULT_FAIL, .times = 1},
    {.text = "fail the next 3 requests of CLIENT", .fault = FAULT_FAIL, .times = 3},
    {.text = "delay the next request of CLIENT by TIME", .fault = FAULT_DELAY_REQUEST, .times = 1},
    {.text = "delay the next reply to CLIENT by TIME", .fault = FAULT_DELAY_REPLY, .times = 1},
    {.text = "repeat the next request of CLIENT after TIME", .fault = FAULT_DUPLICATE, .times = 1},
    {.text = "repeat the next reply to CLIENT after TIME", .fault = FAULT_REPEAT_REPLY, .times = 1},
    {.text = "queue the next callback of CLIENT for TIME",
     .fault = FAULT_LATE_CALLBACK,
     .times = 1},
    {.text = "let the next callback of CLIENT take TIME", .fault = FAULT_SLOW_CALLBACK, .times = 1},
    {.text = "let the next callback of CLIENT call stop", .fault = FAULT_REENTER, .times = 1},
    {.text = "push to CLIENT", .act = forge_push},
    {.text = "evict the owner", .act = evict},
    {.text = "free it by force", .act = force},
    {.text = "the store forgets everything", .act = forget},
    {.text = "the store forgets everything and counts from 1 again", .act = forget_tokens},
    {.text = "end", .act = end},
};

/* ---- finding and doing --------------------------------------------------------------------- */

/* Takes a word off the text. */
static bool next_word(const char **text, char word[LINE_SIZE])
{
    size_t length = strcspn(*text, " ");
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length + strspn(*text + length, " ");
    return length > 0;
}

static bool matches(struct world *w, const char *phrase, const char *text, struct node **n,
                    int64_t *length)
{
    char want[LINE_SIZE], is[LINE_SIZE];
    const char *why;
    *n = NULL;
    *length = 0;
    while (next_word(&phrase, want)) {
        if (!next_word(&text, is))
            return false;
        if (strcmp(want, "CLIENT") == 0) {
            if (is[0] < 'A' || is[0] >= 'A' + CLIENTS || is[1] != '\0')
                return false;
            *n = &w->node[is[0] - 'A'];
        } else if (strcmp(want, "TIME") == 0) {
            if (duration_parse(is, length, &why) != 0)
                return false;
            *length *= MS;
        } else if (strcmp(want, is) != 0) {
            return false;
        }
    }
    return *text == '\0';
}

static void perform(struct world *w, const struct phrase *phrases, size_t count, const char *text)
{
    struct node *n;
    int64_t length;
    for (const struct phrase *p = phrases; p < phrases + count; p++) {
        if (!matches(w, p->text, text, &n, &length))
            continue;
        if (p->act != NULL)
            p->act(w, n, length);
        else
            w->armed[p->fault][n->index] = (struct armed){.times = p->times, .length = length};
        return;
    }
    world_fail(w, "there is no phrase \"%s\"", text);
}

static void take_down(void *data, int64_t now, const char *text)
{
    struct transcript *t = data;
    long long ms = now / MS;
    assert(t->count < LINES_MAX);
    snprintf(t->line[t->count++], LINE_SIZE, "%3lld.%03lld %s%s", ms / 1000, ms % 1000,
             text[0] == '*' ? "" : "  ", text);
}

static struct world *make_world(struct transcript *happened, struct tally *tally)
{
    struct world *w = world_make(1, CLIENTS, UINT64_MAX, tally);
    w->scripted = true;
    w->now = 0;
    w->mix.latency_ms = LATENCY_MS;
    w->mix.quickest = LATENCY_MS * MS;
    w->trace = take_down;
    w->trace_data = happened;
    w->tracing = true;
    const struct period_options o = {-1, -1, -1, -1, -1, 0, 0}; /* defaults; no jitter */
    const char *why;
    if (period_init(&w->period, &o, &why) != 0)
        world_fail(w, "%s", why);
    w->period.step = 1; /* nor are renewals gathered: easier to read */
    for (unsigned i = 0; i < CLIENTS; i++) {
        w->node[i].skew = (i + 1) * 1000000 * MS; /* nobody compares clocks */
        w->node[i].drain = 30000 * MS;
    }
    return w;
}

static void begin(struct world *w)
{
    w->tracing = false;
    for (unsigned i = 0; i < CLIENTS; i++)
        node_boot(w, &w->node[i]);
    w->tracing = true;
}

/* "  12.340 * stop A": at 12.340 s, "stop A". */
static void perform_line(struct world *w, const char *line)
{
    char *rest;
    int64_t at = (int64_t)(strtod(line, &rest) * 1000 + 0.5) * MS;
    if (strncmp(rest, " * ", 3) != 0)
        return;
    if (at < w->now)
        world_fail(w, "the script goes back in time");
    if (!world_run_until(w, at - 1, UINT64_MAX))
        return;
    w->now = at;
    world_trace(w, "* %s", rest + 3);
    perform(w, script, sizeof script / sizeof *script, rest + 3);
}

void scenario_run(const struct transcript *written, struct transcript *happened)
{
    static struct tally tally;
    happened->count = 0;
    struct world *w = make_world(happened, &tally);
    size_t i = 0;
    for (; i < written->count && strncmp(written->line[i], "with ", 5) == 0; i++) {
        strcpy(happened->line[happened->count++], written->line[i]);
        perform(w, settings, sizeof settings / sizeof *settings, written->line[i]);
    }
    begin(w);
    for (; i < written->count; i++)
        perform_line(w, written->line[i]);
    world_free(w);
}
