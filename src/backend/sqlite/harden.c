/* harden.c: see harden.h. Who can write to a folder can replace every file in it, so it must not be everybody.
 * And locks must mean something there: on network and FUSE file systems they do not reliably. */
#include "backend/sqlite/harden.h"

#include <errno.h>
#include <simba.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

void harden_database(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

static const struct {
    unsigned long magic;
    const char *name;
} refused[] = {
    {0x6969, "nfs"},        {0x517b, "smb"},       {0xff534d42, "cifs"},  {0xfe534d42, "smb2"},
    {0x01021997, "9p"},     {0x65735546, "fuse"},  {0x5346414f, "afs"},   {0x00c36400, "ceph"},
    {0x0bd00bd0, "lustre"}, {0x7461636f, "ocfs2"}, {0x01161970, "gfs2"},  {0x73757245, "coda"},
    {0x786f4256, "vboxsf"}, {0x47504653, "gpfs"},  {0xaad7aaea, "panfs"},
};

static int check_file_system(const char *folder, char *why, size_t why_size)
{
    struct statfs fs;
    if (statfs(folder, &fs) != 0) {
        snprintf(why, why_size, "cannot examine the folder %s: %s", folder, strerror(errno));
        return SIMBA_EDENIED;
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if ((unsigned long)fs.f_type == refused[i].magic) {
            snprintf(
                why, why_size,
                "the folder %s is on a file system (%s) whose locks cannot be relied on; use a "
                "local one, or for locks a store with a server",
                folder, refused[i].name);
            return SIMBA_EUNSUPPORTED;
        }
    }
    return 0;
}

int harden_check_folder(const char *folder, char *why, size_t why_size)
{
    struct stat s;
    if (stat(folder, &s) != 0 || !S_ISDIR(s.st_mode)) {
        snprintf(why, why_size, "%s is not a folder", folder);
        return SIMBA_EINVAL;
    }
    if ((s.st_mode & S_IWOTH) != 0) {
        snprintf(why, why_size,
                 "everybody can write to the folder %s, and so could change what is kept there; "
                 "make one "
                 "that is yours: mkdir -m 700",
                 folder);
        return SIMBA_EDENIED;
    }
    return check_file_system(folder, why, why_size);
}
