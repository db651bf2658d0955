/* output.h: lines for people on stderr, data for programs on stdout. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <simba.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "cli/step.h"

struct cli;

/* Lines on stderr are for people ("simba lock: …"), with a priority in front where the journal reads
 * them; or with --log json an object each, for programs. */
enum log_format { LOG_PLAIN, LOG_JSON };
bool log_format_parse(const char *text, enum log_format *out); /* "plain", "json" */

/* A line. Unless -q; always, and the end with EXIT_TROUBLE; and how to find out more, EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) void print_note(const struct cli *c, const char *format, ...);
__attribute__((format(printf, 2, 3))) struct step print_error(const struct cli *c,
                                                              const char *format, ...);
__attribute__((format(printf, 2, 3))) struct step usage(const struct cli *c, const char *format,
                                                        ...);

/* The same of any level, whatever -q says; and that a tenure was lost, with its reason as in
 * "expired". */
__attribute__((format(printf, 3, 4))) void print_level(const struct cli *c, enum simba_level level,
                                                       const char *format, ...);
__attribute__((format(printf, 3, 4))) void print_loss(const struct cli *c, const char *reason,
                                                      const char *format, ...);

/* A line on a terminal that the next one overwrites, cut to its width; an empty one removes it.
 * Whoever has stopped the terminal sees none of it. */
int status_width(void);
__attribute__((format(printf, 2, 3))) void print_status(const struct cli *c, const char *format,
                                                        ...);

/* An object as one line of JSON on stdout: pairs of names and values, as json_buffer_object() has them.
 * Or of what was written; it is freed. If it could not be made, nothing is printed, and flush_stdout()
 * fails. */
void print_json(const char *format, ...);
void print_json_text(struct json_buffer *t);

/* Any text as it can be shown to people, whoever wrote it: characters that move the cursor,
 * begin a line or turn the direction of text are question marks, and so is what is not UTF-8.
 * The result is not longer. */
#define SHOWN_MAX (SIMBA_ID_MAX + 16) /* for a name or an id */
const char *show_name(const char *name, char *out, size_t size);

/* "1.5s", "12s", "3m07s", "2h05m"; out holds at least 24 bytes. */
const char *show_duration(int64_t ms, char *out);

/* The nominal time of a run, from ms since 1970 UTC: "2026-11-15T03:00:00Z", with the milliseconds
 * if there are any; offset_s: as clocks show it that are so far ahead: "2026-11-15T04:00:00+01:00". */
#define TICK_SIZE 48
const char *show_tick(int64_t tick, char out[static TICK_SIZE]);
const char *show_local_tick(int64_t tick, int32_t offset_s, char out[static TICK_SIZE]);

/* Writes what stdout has gathered. If nobody reads it any more, that is the quiet end. */
struct step flush_stdout(const struct cli *c);

/* Colours, a terminal's width: 0 unless stdout is a terminal and wants such. */
bool wants_colour(void);
int terminal_width(void);

int width_of(const char *text, size_t bytes); /* columns: a character may have several bytes */

/* The nearest of some names, to suggest; NULL: none is near. */
const char *nearest(const char *name, const char *const *names, size_t count);
#endif
