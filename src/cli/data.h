/* data.h: what programs read, on stdout. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "base/json.h"
#include "cli/step.h"

struct cli;

/* An object as one line of JSON on stdout: pairs of names and values, as json_buffer_object() has them.
 * Or of what was written; it is freed. If it could not be made, nothing is printed, and flush_stdout()
 * fails. */
void print_json(const char *format, ...);
void print_json_text(struct json_buffer *t);

/* Writes what stdout has gathered. If nobody reads it any more, that is the quiet end. */
struct step flush_stdout(const struct cli *c);
#endif
