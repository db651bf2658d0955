/* sqlite_path.c: which file a URL of sqlite: names, for whoever prepares or describes it without
 * opening it. */
#include "cli/sqlite_path.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int digit_of(char c)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, tolower((unsigned char)c));
    return c != '\0' && at != NULL ? (int)(at - digits) : -1;
}

const char *sqlite_path_of(const char *url, struct sqlite_path *out)
{
    char path[PATH_MAX];
    size_t n = 0;
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
    for (; *at != '\0' && *at != '?' && n + 1 < sizeof path; n++) {
        path[n] = *at++;
        if (path[n] != '%')
            continue;
        int high = digit_of(at[0]), low = high < 0 ? -1 : digit_of(at[1]);
        if (low < 0 || 16 * high + low == 0)
            return "it has a % without two hex digits: write % as %25";
        path[n] = (char)(16 * high + low);
        at += 2;
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    if (*file == '\0')
        return "a file is missing, as in sqlite:/var/lib/app/locks.db";
    if (n + 1 >= sizeof path || strlen(file) + sizeof "-live" > sizeof out->file)
        return "it is too long";
    memcpy(out->file, file, strlen(file) + 1);
    if (slash != NULL)
        slash[slash == path ? 1 : 0] = '\0';
    snprintf(out->folder, sizeof out->folder, "%s", slash != NULL ? path : ".");
    return NULL;
}
