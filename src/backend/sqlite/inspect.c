/* inspect.c: what an operator should know about the files of a store, and why they are good or
 * not. The database is looked at through a connection of its own, so that nothing here meets the
 * worker. */
#include "backend/sqlite/inspect.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/sqlite/wakeup.h"

#define FREE_LEAST (4 << 20) /* bytes: the log alone may grow to that */

static const char *file_system(unsigned long magic)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {{0xef53, "ext4"},      {0x58465342, "xfs"},     {0x9123683e, "btrfs"},
                 {0x01021994, "tmpfs"}, {0x794c7630, "overlay"}, {0x2fc12fc1, "zfs"},
                 {0xf2f52010, "f2fs"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].magic == magic)
            return known[i].name;
    }
    return "of an unknown kind";
}

static void inspect_folder(const struct findings *f, const char *folder)
{
    struct stat s;
    struct statfs fs;
    struct statvfs space;
    if (stat(folder, &s) != 0 || statfs(folder, &fs) != 0 || statvfs(folder, &space) != 0) {
        findings_say(f, SIMBA_LOG_ERROR, "folder %s: %s", folder, strerror(errno));
        return;
    }
    findings_say(f, SIMBA_LOG_INFO, "file system %s: local, its locks hold",
                 file_system((unsigned long)fs.f_type));
    unsigned mode = (unsigned)s.st_mode & 07777;
    if ((mode & S_IWOTH) != 0)
        findings_say(f, SIMBA_LOG_ERROR, "folder %s, mode %04o: everybody can take every lock",
                     folder, mode);
    else if ((mode & S_IWGRP) != 0) {
        char memory[1024];
        struct group entry, *g = NULL;
        if (getgrgid_r(s.st_gid, &entry, memory, sizeof memory, &g) != 0)
            g = NULL;
        findings_say(f, SIMBA_LOG_INFO,
                     "folder %s, mode %04o: members of %s can take and free every lock", folder,
                     mode, g != NULL ? g->gr_name : "its group");
        if ((mode & S_ISGID) == 0)
            findings_say(
                f, SIMBA_LOG_WARN,
                "the group can write to the folder, but files are made for their maker only, since "
                "it is not setgid: chmod g+s, or simba init --shared");
    } else {
        findings_say(f, SIMBA_LOG_INFO, "folder %s, mode %04o: its owner's alone", folder, mode);
    }
    if (space.f_bavail == 0)
        findings_say(f, SIMBA_LOG_ERROR,
                     "the disk of %s is full: nothing can be granted or renewed; make room there",
                     folder);
    else if ((uint64_t)space.f_bavail * space.f_frsize < FREE_LEAST)
        findings_say(
            f, SIMBA_LOG_WARN,
            "less than %d MiB are free there: on a full disk nothing is granted or renewed",
            FREE_LEAST >> 20);
}

static void inspect_files(const struct findings *f, const struct paths *p)
{
    const char *const all[] = {p->db, p->live, p->tree, p->wakeup_file};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct stat s;
        if (stat(all[i], &s) != 0)
            findings_say(f, SIMBA_LOG_WARN, "%s: %s", all[i], strerror(errno));
        else if ((s.st_mode & S_IWOTH) != 0)
            findings_say(f, SIMBA_LOG_ERROR, "%s, mode %04o: everybody can change it: chmod o-w",
                         all[i], (unsigned)s.st_mode & 07777);
        else if (access(all[i], R_OK | W_OK) != 0)
            findings_say(f, SIMBA_LOG_ERROR, "%s cannot be written: %s", all[i], strerror(errno));
    }
}

static bool text_of(sqlite3 *db, const char *query, char *out, size_t size)
{
    sqlite3_stmt *s = NULL;
    bool found = sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0) != NULL;
    snprintf(out, size, "%s", found ? (const char *)sqlite3_column_text(s, 0) : "");
    sqlite3_finalize(s);
    return found;
}

static bool is_empty(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && s.st_size == 0;
}

static void inspect_database(const struct findings *f, const struct paths *p)
{
    sqlite3 *db = NULL;
    char mode[32], check[128];
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    if (sqlite3_open_v2(p->db, &db, flags, NULL) != SQLITE_OK ||
        !text_of(db, "PRAGMA journal_mode", mode, sizeof mode)) {
        findings_say(f, SIMBA_LOG_ERROR, "the database cannot be read: %s", sqlite3_errmsg(db));
    } else {
        if (is_empty(p->db))
            findings_say(f, SIMBA_LOG_ERROR,
                         "the database %s is empty: it could not be set up, see above", p->db);
        else if (strcmp(mode, "wal") != 0)
            findings_say(f, SIMBA_LOG_ERROR,
                         "journal_mode is %s, not wal: another program has changed it", mode);
        else
            findings_say(
                f, SIMBA_LOG_INFO,
                "SQLite %s, WAL, synchronous=NORMAL: one writer at a time; after a power cut "
                "tokens go "
                "on a million higher",
                sqlite3_libversion());
        if (!text_of(db, "PRAGMA quick_check(1)", check, sizeof check) || strcmp(check, "ok") != 0)
            findings_say(f, SIMBA_LOG_ERROR, "the database is damaged: %s", check);
    }
    sqlite3_close(db);
}

void inspect(const struct findings *f, const struct paths *p, const struct boot_clock *b, int live)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", p->db);
    char *slash = strrchr(folder, '/');
    slash[slash == folder ? 1 : 0] = '\0';
    inspect_folder(f, folder);
    inspect_files(f, p);
    inspect_database(f, p);
    findings_say(f, SIMBA_LOG_INFO,
                 "boot %s: leases are counted on its clock%s, steps of the time of day do "
                 "nothing",
                 b->id, b->offset != 0 ? ", less what this time namespace adds" : "");
    if (live >= 0)
        findings_say(f, SIMBA_LOG_INFO, "liveness: a killed owner is noticed within half a second");
    else
        findings_say(f, SIMBA_LOG_WARN,
                     "liveness: no lock on %s: after a kill, waiters wait for the end of the lease",
                     p->live);
    struct wakeup wakeup;
    if (wakeup_open(&wakeup, p->wakeup_file) == 0)
        findings_say(f, SIMBA_LOG_INFO, "wakeup file: a release wakes waiters at once");
    else
        findings_say(f, SIMBA_LOG_WARN, "wakeup file: %s: %s; waiters poll twice a second",
                     p->wakeup_file, strerror(errno));
    wakeup_close(&wakeup);
}
