/* zoneinfo.c: see zoneinfo.h. The folder is a constant: the zone of a schedule must not depend on the
 * environment of one of its processes. */
#include "runtime/zoneinfo.h"

#include <errno.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

#define FOLDER "/usr/share/zoneinfo"
#define NAME_MAX_BYTES 64
#define FILE_MAX 65536 /* bytes; the largest of 2025 has 3,600 */

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_+-/";
    size_t length = strlen(name);
    return length > 0 && length <= NAME_MAX_BYTES && name[0] != '/' &&
           strspn(name, allowed) == length;
}

int zoneinfo_read(const char *name, struct zone *out)
{
    char path[sizeof FOLDER + 1 + NAME_MAX_BYTES];
    const char *why;
    if (name == NULL || strcmp(name, "UTC") == 0) {
        zone_init_utc(out);
        return 0;
    }
    if (!is_name(name))
        return error_say(SIMBA_EINVAL,
                         "'%.64s' is not the name of a time zone, as Europe/Berlin is", name);
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_say(SIMBA_EINVAL,
                         "no time zone '%s': %s: %s; is the package tzdata installed?", name, path,
                         strerror(errno));
    char *bytes = malloc(FILE_MAX);
    size_t size = bytes != NULL ? fread(bytes, 1, FILE_MAX, file) : 0;
    int error = bytes != NULL && ferror(file) != 0 ? errno : 0;
    fclose(file);
    if (bytes == NULL)
        return error_say(SIMBA_ELIMIT, "time zone '%s': out of memory", name);
    if (error != 0) {
        free(bytes);
        return error_say(SIMBA_EINVAL, "no time zone '%s': %s: %s", name, path, strerror(error));
    }
    int rc = zone_parse(out, bytes, size, &why);
    free(bytes);
    return rc == 0 ? 0 : error_say(rc, "time zone '%s': %s cannot be used: %s", name, path, why);
}
