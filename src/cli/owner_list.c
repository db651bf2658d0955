/* owner_list.c: who owns what, for people in aligned columns, for programs in lines of JSON.
 *
 * On a terminal a table fits its width: first notes and the holders' ids are cut, then the names, then
 * columns are left out, the least useful first. Elsewhere nothing is ever cut. The column of notes is
 * there where there is one. */
#include "cli/owner_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/data.h"
#include "cli/shown.h"
#include "cli/terminal.h"

#define FIRST_ROOM 64
#define CELL_MAX (SIMBA_NOTE_MAX + 16)
#define GAP 2

enum column { NAME, STATE, LEFT, TOKEN, HELD, WAIT, HOLDER, NOTE, COLUMNS };
static const char *const titles[COLUMNS] = {
    [NAME] = "NAME", [STATE] = "STATE",  [LEFT] = "LEFT",     [TOKEN] = "TOKEN",
    [HELD] = "HELD", [WAIT] = "WAITERS", [HOLDER] = "HOLDER", [NOTE] = "NOTE",
};
static const bool to_the_right[COLUMNS] = {
    [LEFT] = true, [TOKEN] = true, [HELD] = true, [WAIT] = true};
/* What is given up where there is no room: cut down to this, or left out. */
static const struct {
    enum column column;
    int least; /* 0: leave it out */
} savings[] = {{NOTE, 32}, {HOLDER, 24}, {NAME, 24}, {WAIT, 0},  {HELD, 0},   {HOLDER, 12},
               {NOTE, 0},  {NAME, 12},   {TOKEN, 0}, {STATE, 0}, {HOLDER, 6}, {NAME, 6}};

void owner_list_add(struct owner_list *t, const char *mutex, const struct simba_owner *owner,
                    int64_t waiters, const struct simba_note *note)
{
    if (t->count == t->room) {
        size_t room = t->room > 0 ? 2 * t->room : FIRST_ROOM;
        struct owner_row *row = realloc(t->row, room * sizeof *row);
        if (row == NULL) {
            t->failed = true;
            return;
        }
        t->row = row;
        t->room = room;
    }
    struct owner_row *one = &t->row[t->count++];
    *one = (struct owner_row){.owner = *owner, .waiters = waiters};
    snprintf(one->mutex, sizeof one->mutex, "%s", mutex);
    if (note == NULL || note->token == 0)
        return;
    one->note = malloc(sizeof *one->note);
    if (one->note != NULL)
        *one->note = *note;
    else
        t->failed = true;
}

void owner_list_empty(struct owner_list *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->row[i].note);
    t->count = 0;
}

/* ---- cells --------------------------------------------------------------------------------- */

static const char *state_of(const struct simba_owner *o, int64_t now)
{
    if (!simba_owner_exists(o, now))
        return "free";
    return (o->flags & SIMBA_OWNER_EVICTED) != 0 ? "evicted" : "held";
}

static void cell(const struct owner_row *r, enum column column, int64_t now, char out[CELL_MAX])
{
    const struct simba_owner *o = &r->owner;
    bool held = simba_owner_exists(o, now);
    char text[24];
    snprintf(out, CELL_MAX, "-");
    switch (column) {
    case NAME:
        show_name(r->mutex, out, CELL_MAX);
        return;
    case STATE:
        snprintf(out, CELL_MAX, "%s", state_of(o, now));
        return;
    case LEFT:
        if (held)
            snprintf(out, CELL_MAX, "%s", show_duration(o->transition_at - now, text));
        return;
    case TOKEN:
        if (held && o->token != 0)
            snprintf(out, CELL_MAX, "%llu", (unsigned long long)o->token);
        return;
    case HELD:
        if (held && o->acquired_at != 0)
            snprintf(out, CELL_MAX, "%s", show_duration(now - o->acquired_at, text));
        return;
    case WAIT:
        if (r->waiters >= 0)
            snprintf(out, CELL_MAX, "%lld", (long long)r->waiters);
        return;
    case NOTE:
        if (r->note != NULL) {
            bool is_earlier = held && o->token != 0 && r->note->token != o->token;
            size_t at = (size_t)snprintf(out, CELL_MAX, "%s", is_earlier ? "(earlier) " : "");
            show_name(r->note->text, out + at, CELL_MAX - at);
        }
        return;
    default:
        if (held)
            show_name(o->id, out, CELL_MAX);
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

static int total(const int width[COLUMNS])
{
    int sum = -GAP;
    for (int i = 0; i < COLUMNS; i++)
        sum += width[i] > 0 ? width[i] + GAP : 0;
    return sum;
}

static void fit(int width[COLUMNS], int most)
{
    for (size_t i = 0; most > 0 && i < sizeof savings / sizeof *savings; i++) {
        int *one = &width[savings[i].column], excess = total(width) - most;
        if (excess <= 0)
            return;
        if (savings[i].least == 0)
            *one = 0;
        else if (*one > savings[i].least)
            *one = *one - excess > savings[i].least ? *one - excess : savings[i].least;
    }
}

static void print_cells(const int width[COLUMNS], char cells[COLUMNS][CELL_MAX], const char *colour)
{
    int last = COLUMNS - 1;
    fputs(colour, stdout);
    while (last > 0 && width[last] == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        if (width[i] == 0)
            continue;
        cut_to_width(cells[i], width[i]);
        int blank = width[i] - width_of(cells[i], strlen(cells[i]));
        printf("%*s%s", to_the_right[i] ? blank : 0, "", cells[i]);
        if (i < last)
            printf("%*s", GAP + (to_the_right[i] ? 0 : blank), "");
    }
    printf("%s\n", colour[0] != '\0' ? "\033[0m" : "");
}

static void print_columns(const struct owner_list *t, int64_t now)
{
    char cells[COLUMNS][CELL_MAX];
    int width[COLUMNS];
    bool colour = wants_colour();
    for (int i = 0; i < COLUMNS; i++)
        width[i] = width_of(titles[i], strlen(titles[i]));
    width[NOTE] = 0;
    for (size_t n = 0; n < t->count; n++) {
        if (t->row[n].note != NULL && width[NOTE] == 0)
            width[NOTE] = width_of(titles[NOTE], strlen(titles[NOTE]));
        for (int i = 0; i < COLUMNS; i++) {
            if (i == NOTE && t->row[n].note == NULL)
                continue;
            cell(&t->row[n], (enum column)i, now, cells[i]);
            int w = width_of(cells[i], strlen(cells[i]));
            width[i] = w > width[i] ? w : width[i];
        }
    }
    fit(width, terminal_width());
    for (int i = 0; i < COLUMNS; i++)
        snprintf(cells[i], CELL_MAX, "%s", titles[i]);
    print_cells(width, cells, colour ? "\033[1m" : "");
    for (size_t n = 0; n < t->count; n++) {
        for (int i = 0; i < COLUMNS; i++)
            cell(&t->row[n], (enum column)i, now, cells[i]);
        bool held = simba_owner_exists(&t->row[n].owner, now);
        print_cells(width, cells, !colour || held ? "" : "\033[2m");
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void add_tenure(struct json_buffer *j, const struct simba_owner *o, int64_t now)
{
    bool known = o->id[0] != '\0', held = simba_owner_exists(o, now);
    json_buffer_string_of(j, "holder", known ? o->id : NULL);
    json_buffer_number_of(j, "token", known && o->token != 0, (int64_t)o->token);
    json_buffer_number_of(j, "remaining_ms", held, o->transition_at - now);
    json_buffer_number_of(j, "held_ms", held && o->acquired_at != 0, now - o->acquired_at);
}

static void add_note(struct json_buffer *j, const struct simba_note *note, int64_t now)
{
    json_buffer_string_of(j, "note", note->text);
    json_buffer_number_of(j, "note_token", true, (int64_t)note->token);
    json_buffer_number_of(j, "note_age_ms", true,
                          now > note->written_at ? now - note->written_at : 0);
}

static void print_row(const struct cli *c, const struct owner_row *r, int64_t now)
{
    struct json_buffer j = {.is_line = true};
    json_buffer_add(&j, "{");
    json_buffer_string_of(&j, "mutex", r->mutex);
    json_buffer_string_of(&j, "state", state_of(&r->owner, now));
    add_tenure(&j, &r->owner, now);
    json_buffer_number_of(&j, "waiters", r->waiters >= 0, r->waiters);
    if (r->note != NULL)
        add_note(&j, r->note, now);
    json_buffer_string_of(&j, "store", c->store);
    json_buffer_add(&j, "}");
    print_json_text(&j);
}

/* ---- events -------------------------------------------------------------------------------- */

const char *reason_name(enum simba_reason reason)
{
    static const char *const names[] = {
        [SIMBA_ACQUIRED] = "acquired", [SIMBA_RELEASED] = "released", [SIMBA_EXPIRED] = "expired",
        [SIMBA_EVICTED] = "evicted",   [SIMBA_STALLED] = "stalled",   [SIMBA_UNSEEN] = "unseen"};
    size_t i = (size_t)reason;
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

bool reason_is_loss(enum simba_reason reason)
{
    return reason == SIMBA_EXPIRED || reason == SIMBA_EVICTED || reason == SIMBA_STALLED;
}

static void print_event_json(const struct cli *c, const char *event, const char *mutex,
                             const struct simba_owner *o, enum simba_reason reason)
{
    int64_t now = simba_now();
    struct json_buffer j = {.is_line = true};
    json_buffer_add(&j, "{");
    json_buffer_string_of(&j, "event", event);
    json_buffer_number_of(&j, "at_ms", true, simba_wall_ms(now));
    json_buffer_string_of(&j, "mutex", mutex);
    add_tenure(&j, o, now);
    json_buffer_number_of(&j, "waiters", false, 0);
    json_buffer_string_of(&j, "reason", reason_name(reason));
    json_buffer_string_of(&j, "store", c->store);
    json_buffer_add(&j, "}");
    print_json_text(&j);
}

static void print_event_line(const char *event, const char *mutex, const struct simba_owner *o,
                             enum simba_reason reason)
{
    char name[SHOWN_MAX], when[TIME_SIZE];
    int64_t wall = simba_wall_ms(simba_now());
    time_t seconds = (time_t)(wall / 1000);
    struct tm t;
    localtime_r(&seconds, &t);
    show_time(wall + t.tm_gmtoff * INT64_C(1000), true, when);
    bool begins = strcmp(event, "acquired") == 0 || strcmp(event, "held") == 0;
    bool colour = wants_colour();
    printf("%s  %s%-8s%s  %s", when,
           !colour  ? ""
           : begins ? "\033[32m"
                    : "\033[33m",
           event, colour ? "\033[0m" : "", show_name(mutex, name, sizeof name));
    if (o->id[0] != '\0')
        printf("  %s", show_name(o->id, name, sizeof name));
    if (o->token != 0)
        printf("  token %llu", (unsigned long long)o->token);
    if (strcmp(event, "lost") == 0 && reason_name(reason) != NULL)
        printf("  %s", reason_name(reason));
    printf("\n");
}

void owner_event_print(const struct cli *c, const char *event, const char *mutex,
                       const struct simba_owner *owner, enum simba_reason reason)
{
    if (c->json)
        print_event_json(c, event, mutex, owner, reason);
    else
        print_event_line(event, mutex, owner, reason);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct owner_row *)a)->mutex, ((const struct owner_row *)b)->mutex);
}

void owner_list_print(const struct cli *c, const struct owner_list *t)
{
    if (t->count > 0)
        qsort(t->row, t->count, sizeof *t->row, by_name);
    for (size_t i = 0; c->json && i < t->count; i++)
        print_row(c, &t->row[i], simba_now());
    if (!c->json && t->count > 0)
        print_columns(t, simba_now());
}
