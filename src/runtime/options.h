/* options.h: the structs that a program fills in and that may grow, whatever version of simba.h it
 * was built with. Each begins with its size, and every field has a value that means unset. */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* No version of any of them will be larger: a greater size is memory that nobody set. */
#define OPTIONS_SIZE_MAX 16384

struct options_kind {
    const char *tag;      /* struct TAG */
    const char *what;     /* "client options", for messages */
    const char *init;     /* the macro that it starts as, */
    const void *defaults; /* and such a struct: all is unset, and the size is this library's */
    size_t size_first;    /* in the first version of its header */
    size_t size_now;
};

extern const struct options_kind options_of_client, options_of_handle, options_of_schedule,
    options_of_faults, options_of_metrics;

/* Can a struct of this kind have this size, in any version? */
bool options_size_valid(const struct options_kind *kind, size_t size);

/* Copies what the program gave (NULL: nothing) to out, a struct of this library's size; fields that
 * the program does not know are unset. SIMBA_EINVAL: no such size. SIMBA_EUNSUPPORTED: it sets a
 * field that this library does not know. */
int options_take(const struct options_kind *kind, const void *given, void *out);

/* The other way round: copies a struct of this library's size to out, which has a valid size of its
 * own. What this library does not know becomes zero. */
void options_give(const struct options_kind *kind, const void *from, void *out);
#endif
