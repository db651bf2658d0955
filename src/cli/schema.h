/* schema.h: the tables of SQL servers as text. */
#ifndef CLI_SCHEMA_H
#define CLI_SCHEMA_H

#include <stdbool.h>

/* What makes the tables of a store, on stdout; false: it has none that somebody else could make. */
bool schema_print(const char *url);
#endif
