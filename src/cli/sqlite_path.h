/* sqlite_path.h: which file a URL of sqlite: names. */
#ifndef CLI_SQLITE_PATH_H
#define CLI_SQLITE_PATH_H

#include <limits.h>

struct sqlite_path {
    char folder[PATH_MAX], file[NAME_MAX + 1];
};

/* From sqlite:PATH, decoded as the library does it; NULL, or what is wrong with it. */
const char *sqlite_path_of(const char *url, struct sqlite_path *out);
#endif
