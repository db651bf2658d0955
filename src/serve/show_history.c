/* show_history.c: simba history: the tenures of a file that simba watch --record or simba serve --history has
 * written. The store is not asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands/history.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/owner_list.h"
#include "cli/shown.h"
#include "cli/terminal.h"
#include "serve/commands.h"
#include "serve/history.h"

#define TIME_MAX 40

struct show {
    struct cli *c;
    struct history *history;
    struct history_query query;
    int64_t now_ms;
    bool is_measuring; /* the first of two passes: widths */
    bool with_store;
    int name, token, held, holder;
    size_t count;
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct show *s = data;
    int64_t ms = 0;
    if (id == OPT_FROM) {
        cli_set(c, SET_HISTORY, value, "--from");
        return GO_ON;
    }
    struct step step = cli_take_duration(c, "--since", value, &ms);
    if (!step.ends)
        s->query.since_ms = simba_wall_ms(simba_now()) - ms;
    return step;
}

/* ---- for people ---------------------------------------------------------------------------- */

static const char *show_local_time(int64_t ms, char out[TIME_MAX])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    localtime_r(&seconds, &t);
    strftime(out, TIME_MAX, "%Y-%m-%d %H:%M:%S %z", &t);
    return out;
}

/* How it ended, in a word; a later version may know reasons that we do not. */
static const char *end_of(const struct seen_tenure *t)
{
    const char *reason = reason_name(t->reason);
    return t->state == TENURE_ON       ? "held"
           : t->state == TENURE_UNSEEN ? "unseen"
           : reason != NULL            ? reason
                                       : "ended";
}

/* How long it lasted; ≥ where either end was not seen. */
static void held_of(const struct show *s, const struct seen_tenure *t, char *out, size_t size)
{
    char text[24];
    int64_t end = t->state == TENURE_ON ? s->now_ms : t->ended_ms;
    bool is_least = !t->began_known || t->state == TENURE_UNSEEN;
    snprintf(out, size, "%s%s", is_least ? "≥" : "", show_duration(end - t->began_ms, text));
}

static void widen(int *width, const char *text)
{
    int w = width_of(text, strlen(text));
    *width = w > *width ? w : *width;
}

static void put_cell(const char *text, int width, bool to_the_right)
{
    int blank = width - width_of(text, strlen(text));
    blank = blank > 0 ? blank : 0;
    printf("%*s%s%*s", to_the_right ? blank : 0, "", text, to_the_right ? 0 : blank, "");
}

static void show_tenure(void *data, const struct seen_tenure *t, const char *store)
{
    struct show *s = data;
    char name[SHOWN_MAX], id[SHOWN_MAX], token[24] = "-", held[32], when[TIME_MAX], end[TIME_MAX];
    show_name(t->mutex, name, sizeof name);
    show_name(t->id, id, sizeof id);
    if (t->token != 0)
        snprintf(token, sizeof token, "%" PRIu64, t->token);
    held_of(s, t, held, sizeof held);
    s->count++;
    if (s->is_measuring) {
        widen(&s->name, name);
        widen(&s->token, token);
        widen(&s->held, held);
        widen(&s->holder, id);
        return;
    }
    bool colour = wants_colour(), is_bad = t->state == TENURE_ENDED && reason_is_loss(t->reason);
    printf("%s%s  ", t->began_known ? " " : "≤", show_local_time(t->began_ms, when));
    put_cell(held, s->held, true);
    printf("  %s%-8s%s  ", colour && is_bad ? "\033[33m" : "", end_of(t),
           colour && is_bad ? "\033[0m" : "");
    put_cell(name, s->name, false);
    printf("  ");
    put_cell(token, s->token, true);
    printf("  ");
    bool is_unseen = t->state == TENURE_UNSEEN;
    put_cell(id, s->with_store || is_unseen ? s->holder : 0, false);
    if (s->with_store)
        printf("  %s", store);
    if (is_unseen && t->over_by_ms != 0)
        printf("  ended between %s and %s", show_local_time(t->ended_ms, end),
               show_local_time(t->over_by_ms, when));
    else if (is_unseen)
        printf("  last seen %s", show_local_time(t->ended_ms, end));
    putchar('\n');
}

static void show_gap(void *data, const struct history_gap *g)
{
    const struct show *s = data;
    char from[TIME_MAX], to[TIME_MAX], text[24];
    if (s->is_measuring)
        return;
    printf("-%s  ", show_local_time(g->from_ms, from));
    put_cell(show_duration(g->to_ms - g->from_ms, text), s->held, true);
    printf("  %s until %s%s%s\n",
           g->is_partial ? "only some mutexes were recorded" : "nothing was recorded",
           show_local_time(g->to_ms, to), s->with_store ? ": " : "", s->with_store ? g->store : "");
}

static void show_titles(const struct show *s)
{
    bool colour = wants_colour();
    printf("%s %-*s  %*s  %-8s  %-*s  %*s  %-*s%s%s\n", colour ? "\033[1m" : "", 25, "BEGAN",
           s->held, "HELD", "END", s->name, "NAME", s->token, "TOKEN",
           s->with_store ? s->holder : 0, "HOLDER", s->with_store ? "  STORE" : "",
           colour ? "\033[0m" : "");
}

/* ---- for programs -------------------------------------------------------------------------- */

static void print_tenure(void *data, const struct seen_tenure *t, const char *store)
{
    struct json_buffer text = {0};
    ((struct show *)data)->count++;
    seen_tenure_json(&text, t, store);
    print_json_text(&text);
}

/* With the keys of a tenure, so that whoever reads all lines finds each of them. */
static void print_gap(void *data, const struct history_gap *g)
{
    static const char *const none[] = {"holder",       "token",      "began_known", "reason",
                                       "last_seen_ms", "over_by_ms", "note"};
    struct json_buffer text = {0};
    (void)data;
    json_buffer_add(&text, "{");
    json_buffer_string_of(&text, "mutex", NULL);
    json_buffer_string_of(&text, "state", g->is_partial ? "partly recorded" : "not recorded");
    json_buffer_number_of(&text, "began_ms", true, g->from_ms);
    json_buffer_number_of(&text, "ended_ms", true, g->to_ms);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        json_buffer_string_of(&text, none[i], NULL);
    json_buffer_string_of(&text, "store", g->store);
    json_buffer_add(&text, "}");
    print_json_text(&text);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Twice: the columns are as wide as what is in them. What comes in between is in the second. */
static struct step show_all(struct show *s)
{
    int rc;
    s->with_store = history_count_stores(s->history) > 1;
    if (s->c->json) {
        rc = history_read(s->history, &s->query, print_tenure, print_gap, s);
    } else {
        s->is_measuring = true;
        widen(&s->name, "NAME");
        widen(&s->token, "TOKEN");
        widen(&s->held, "HELD");
        widen(&s->holder, "HOLDER");
        rc = history_read(s->history, &s->query, show_tenure, show_gap, s);
        s->is_measuring = false;
        if (rc == 0 && s->count > 0) {
            show_titles(s);
            rc = history_read(s->history, &s->query, show_tenure, show_gap, s);
        }
    }
    if (rc != 0)
        return print_error(s->c, "%s", history_why(s->history));
    if (s->count == 0)
        print_note(s->c, "no tenure%s in %s%s", s->query.name_count > 0 ? " of that name" : "",
                   s->c->setting[SET_HISTORY].value, s->query.since_ms != 0 ? " since then" : "");
    return GO_ON;
}

int history_run(struct cli *c)
{
    static struct show s;
    s.c = c;
    struct step step = cli_take(c, take_option, cli_take_operand, &s);
    step = AND_THEN(step, cli_configure(c));
    if (step.ends)
        return step.code;
    const char *path = c->setting[SET_HISTORY].value;
    if (path == NULL)
        return usage(c,
                     "no history file is named: record one with simba watch --record FILE or simba "
                     "serve --history FILE, and read it with simba history --from FILE")
            .code;
    if (c->setting[SET_URL].by_flag) { /* only of that store: its name, without asking it */
        if ((step = cli_open(c)).ends)
            return step.code;
        simba_close(c->client, 1000);
        s.query.store = c->store;
    }
    s.query.names = c->operands;
    s.query.name_count = c->operand_count;
    s.now_ms = simba_wall_ms(simba_now());
    if ((step = history_open_to_read(c, path, &s.history)).ends)
        return step.code;
    step = show_all(&s);
    history_close(s.history);
    return step.code;
}
