/* messages.h: what people read, on stderr. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include <simba.h>
#include <stdbool.h>

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
__attribute__((format(printf, 2, 3))) void print_status(const struct cli *c, const char *format,
                                                        ...);
#endif
