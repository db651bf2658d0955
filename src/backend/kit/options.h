/* options.h: reading what the URL says, when a store opens. What is wrong is said in one wording
 * for all stores, before anything connects; no secret is quoted.
 *
 * All return 0, or a code, and then `why` is written. An option that is not given leaves *out
 * alone. */
#ifndef BACKEND_KIT_OPTIONS_H
#define BACKEND_KIT_OPTIONS_H

#include <simba/backend.h>

#define OPTIONS_HOST_MAX 256 /* with the NUL */

struct options {
    const struct simba_url *url;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 3, 4))) int options_refuse(const struct options *o, int code,
                                                         const char *format, ...);

/* A copy, to be freed; text NULL: nothing. */
int options_copy(const struct options *o, const char *text, char **out);
int options_text(const struct options *o, const char *name, char **out); /* likewise */

/* The file that the option names must be there, and readable. */
int options_check_file(const struct options *o, const char *name);
int options_check_tls_files(const struct options *o); /* those of tls_ca, tls_cert, tls_key */

/* The n-th host, or this machine; its port, or this one. */
int options_host(const struct options *o, size_t n, int port, char name[OPTIONS_HOST_MAX],
                 int *out);

int options_switch(const struct options *o, const char *name, bool *out); /* on or off */
/* One of these choices, NULL at the end; *out is which. */
int options_choice(const struct options *o, const char *name, const char *const *choices, int *out);
/* Within these limits; or_zero: or 0. */
int options_duration(const struct options *o, const char *name, int64_t min_ms, int64_t max_ms,
                     bool or_zero, int64_t *out);
#endif
