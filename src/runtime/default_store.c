/* default_store.c: where locks are kept when nobody says where: a database in a folder that is
 * the user's own, so that nobody else can take or block a lock. Root and a user therefore have
 * different ones. The environment is believed only where the caller is who he seems to be. */
#include "runtime/default_store.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/error.h"

#define ROOT_FOLDER "/var/lib/simba"
#define FILE_NAME "simba.db"
#define PASSWD_BYTES 4096
#define SAFE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-~+"

/* An absolute path in the environment; relative ones are not meant for us (XDG says so, too). */
static const char *folder_in(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value != NULL && value[0] == '/' ? value : NULL;
}

static bool home_of_user(char *out, size_t size)
{
    char memory[PASSWD_BYTES];
    struct passwd entry, *found = NULL;
    const char *home = folder_in("HOME");
    if (home == NULL && getpwuid_r(geteuid(), &entry, memory, sizeof memory, &found) == 0 &&
        found != NULL && found->pw_dir != NULL && found->pw_dir[0] == '/')
        home = found->pw_dir;
    return home != NULL && snprintf(out, size, "%s", home) < (int)size;
}

static int refuse_long(void)
{
    return error_say(SIMBA_EINVAL, "the path of the default store is too long: set SIMBA_URL");
}

static int find_folder(char *out, size_t size)
{
    char home[PATH_MAX];
    const char *folder;
    int n;
    if (geteuid() == 0)
        n = snprintf(out, size, "%s", ROOT_FOLDER);
    else if ((folder = folder_in("STATE_DIRECTORY")) != NULL) /* systemd; the first of a list */
        n = snprintf(out, size, "%.*s", (int)strcspn(folder, ":"), folder);
    else if ((folder = folder_in("XDG_STATE_HOME")) != NULL)
        n = snprintf(out, size, "%s/simba", folder);
    else if (home_of_user(home, sizeof home))
        n = snprintf(out, size, "%s/.local/state/simba", home);
    else
        return error_say(SIMBA_EINVAL,
                         "there is no home to keep locks in: set SIMBA_URL, for example "
                         "to sqlite:/path/of/locks.db");
    return n >= 0 && (size_t)n < size ? 0 : refuse_long();
}

/* As a URL: what could mean something else there is written as %XX. */
static int write_url(const char *folder, char *out, size_t size)
{
    size_t at = 0;
    char path[PATH_MAX + sizeof FILE_NAME];
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    at += (size_t)snprintf(out, size, "sqlite:");
    for (const char *p = path; *p != '\0' && at + 4 < size; p++) {
        const char *form = strchr(SAFE, *p) != NULL ? "%c" : "%%%02X";
        at += (size_t)snprintf(out + at, size - at, form, (unsigned char)*p);
    }
    return at + 4 < size ? 0 : refuse_long();
}

/* Also the folders above it, as the XDG rules have it. */
static int make_folder(const char *folder)
{
    char path[PATH_MAX];
    if (access(folder, F_OK) == 0)
        return 0;
    snprintf(path, sizeof path, "%s", folder);
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0700); /* what is missing then shows below */
        *p = '/';
    }
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return error_say(errno == EACCES || errno == EPERM || errno == EROFS ? SIMBA_EDENIED
                                                                         : SIMBA_ESTORE,
                     "cannot make the folder %s of the default store: %s; set SIMBA_URL to another "
                     "store",
                     folder, strerror(errno));
}

int simba_default_url(char *out, size_t size)
{
    char folder[PATH_MAX];
    if (out == NULL || size == 0)
        return error_say(SIMBA_EINVAL, "simba_default_url needs a place for the result");
    int rc = find_folder(folder, sizeof folder);
    return rc < 0 ? rc : write_url(folder, out, size);
}

int default_store_make(char *out, size_t size)
{
    char folder[PATH_MAX];
    int rc = find_folder(folder, sizeof folder);
    if (rc == 0)
        rc = write_url(folder, out, size);
    return rc < 0 ? rc : make_folder(folder);
}
