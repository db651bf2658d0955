/* sqlite_path.c: which file a URL of sqlite: names, for whoever prepares or describes it without
 * opening it. */
#include "cli/sqlite_path.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *sqlite_path_of(const char *url, struct sqlite_path *out)
{
    char path[PATH_MAX];
    const char *at = url + strlen("sqlite:");
    if (strncmp(at, "//", 2) == 0) {
        at += 2;
        if (strncmp(at, "localhost/", 10) == 0)
            at += 9;
        if (strchr("/?", *at) == NULL) /* nor at the end */
            return "a file has no host: write sqlite:PATH or sqlite:///PATH";
    }
    if (at[0] == '~' && (at[1] == '/' || at[1] == '\0'))
        return "~ is not expanded: write the folder in full";
    size_t length = strcspn(at, "?");
    if (length >= sizeof path)
        return "it is too long";
    if (text_unescape(path, at, length) != NULL)
        return "it has a % without two hex digits: write % as %25";
    char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    if (*file == '\0')
        return "a file is missing, as in sqlite:/var/lib/app/locks.db";
    if (strlen(file) + sizeof "-live" > sizeof out->file)
        return "it is too long";
    memcpy(out->file, file, strlen(file) + 1);
    if (slash != NULL)
        slash[slash == path ? 1 : 0] = '\0';
    snprintf(out->folder, sizeof out->folder, "%s", slash != NULL ? path : ".");
    return NULL;
}
