/* paths.c: see paths.h. What the folder must be is in harden.c. */
#include "backend/sqlite/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <simba.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sqlite/harden.h"

/* Which mount a path is on; 0: the kernel does not say (before 5.8). */
static uint64_t mount_of(const char *path)
{
    struct statx x;
    bool known = statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &x) == 0 &&
                 (x.stx_mask & STATX_MNT_ID) != 0;
    return known ? x.stx_mnt_id : 0;
}

/* Locks and log of a database are beside it. Whoever opens it by another name, or sees it
 * without its folder (docker -v FILE:FILE), has others, and so no exclusion at all. */
static int check_file(const char *path, uint64_t mount, char *why, size_t why_size)
{
    struct stat s;
    if (lstat(path, &s) != 0)
        return 0; /* it will be made */
    if (!S_ISREG(s.st_mode)) {
        snprintf(why, why_size, "%s is %s, not a plain file", path,
                 S_ISLNK(s.st_mode) ? "a symbolic link" : "something else");
        return SIMBA_EINVAL;
    }
    if (mount != 0 && mount_of(path) != mount) {
        snprintf(why, why_size,
                 "%s is mounted by itself, so its locks, which are in files beside it, are not "
                 "those of other mounts; mount its folder instead",
                 path);
        return SIMBA_EUNSUPPORTED;
    }
    return 0;
}

static int check_links(const char *path, char *why, size_t why_size)
{
    struct stat s;
    if (lstat(path, &s) != 0 || s.st_nlink < 2)
        return 0;
    snprintf(why, why_size,
             "%s has another name (a hard link), and locks that are taken there would not count "
             "here; remove one of the names, or copy the file",
             path);
    return SIMBA_EUNSUPPORTED;
}

static int check_files(const struct paths *p, const char *folder, char *why, size_t why_size)
{
    const char *const all[] = {p->db, p->wal, p->shm, p->live, p->tree, p->wakeup_file};
    uint64_t mount = mount_of(folder);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof all / sizeof *all; i++)
        rc = check_file(all[i], mount, why, why_size);
    return rc == 0 ? check_links(p->db, why, why_size) : rc;
}

/* Of a longer path SQLite says that it cannot open the file, and not why: "-journal" has to fit, too. */
static int longest(void)
{
    const sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    return vfs != NULL && vfs->mxPathname < PATH_MAX ? vfs->mxPathname - 8 : PATH_MAX;
}

int paths_find(struct paths *p, const char *path, char *why, size_t why_size)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (name[0] == '\0' || length >= sizeof folder) {
        snprintf(why, why_size,
                 "a path of a database file is missing or too long, as in "
                 "sqlite:/var/lib/app/locks.db");
        return SIMBA_EINVAL;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    char *real = realpath(length == 0 ? "." : folder, NULL);
    if (real == NULL) {
        snprintf(why, why_size, "the folder of %s: %s; make it first: mkdir -m 700", path,
                 strerror(errno));
        return SIMBA_EINVAL;
    }
    int rc = harden_check_folder(real, why, why_size);
    const char *joint = strcmp(real, "/") == 0 ? "" : "/";
    int n = snprintf(p->db, sizeof p->db, "%s%s%s", real, joint, name);
    snprintf(folder, sizeof folder, "%s", real);
    free(real);
    int most = longest();
    if (rc == 0 && (n > most || (size_t)n + sizeof "-live" > sizeof p->db)) {
        snprintf(why, why_size, "a path of %d bytes is longer than the %d bytes that SQLite opens",
                 n, most);
        rc = SIMBA_EINVAL;
    }
    if (rc < 0)
        return rc;
    snprintf(p->wal, sizeof p->wal, "%.*s-wal", PATH_MAX - 8, p->db);
    snprintf(p->shm, sizeof p->shm, "%.*s-shm", PATH_MAX - 8, p->db);
    snprintf(p->live, sizeof p->live, "%.*s-live", PATH_MAX - 8, p->db);
    snprintf(p->tree, sizeof p->tree, "%.*s-tree", PATH_MAX - 8, p->db);
    snprintf(p->wakeup_file, sizeof p->wakeup_file, "%.*s-bell", PATH_MAX - 8, p->db);
    return check_files(p, folder, why, why_size);
}

/* A folder that hands its group on (setgid), and that the group may write to, is meant to be shared
 * with it. */
mode_t paths_mode(const char *path)
{
    char folder[PATH_MAX];
    struct stat s;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/'); /* all paths are absolute */
    if (slash != NULL)
        slash[slash == folder ? 1 : 0] = '\0';
    bool shared = stat(folder, &s) == 0 && (s.st_mode & S_ISGID) != 0 && (s.st_mode & S_IWGRP) != 0;
    return shared ? 0660 : 0600;
}

int paths_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!fchmod(fd, paths_mode(path)); /* whatever the umask says; else it is ours alone */
        return fd;
    }
    if (errno != EEXIST)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}
