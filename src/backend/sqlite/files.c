/* files.c: see files.h. While we have a file open its inode is not used for another, so device and
 * inode tell whether it is still the one at its path. */
#include "backend/sqlite/files.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_file(const struct stat *s, struct file_id id)
{
    return s->st_ino == id.inode && s->st_dev == id.device;
}

/* All connections of a process share one descriptor of PATH-shm: an older connection may have brought
 * an older file with it. */
static bool is_open_here(struct file_id id)
{
    DIR *folder = opendir("/proc/self/fd");
    bool found = false;
    if (folder == NULL)
        return false; /* errno says why */
    for (struct dirent *e; !found && (e = readdir(folder)) != NULL;) {
        struct stat s;
        found = fstatat(dirfd(folder), e->d_name, &s, 0) == 0 && is_file(&s, id);
    }
    closedir(folder);
    errno = ESTALE;
    return found;
}

int files_record(struct files *f, const struct paths *p)
{
    struct stat db, wal, shm;
    if (stat(p->db, &db) != 0 || stat(p->wal, &wal) != 0 || stat(p->shm, &shm) != 0)
        return -1;
    f->db = (struct file_id){db.st_dev, db.st_ino};
    f->wal = (struct file_id){wal.st_dev, wal.st_ino};
    f->shm = (struct file_id){shm.st_dev, shm.st_ino};
    f->shm_size = shm.st_size;
    return is_open_here(f->shm) ? 0 : -1;
}

/* Who writes the log back says before and after it what it does to the file, so whatever changed it
 * without a word was not one of us. Asked before and after the look: both may be under way. */
static bool is_as_written(struct files *f, const struct stat *db, const struct client_lock *l,
                          const struct paths *p)
{
    struct stat s = *db;
    if (f->changed == nanoseconds(s.st_mtim) && f->size == s.st_size)
        return true;
    for (int i = 0; i < 10; i++) {
        struct client_lock_written before = client_lock_written(l);
        if (stat(p->db, &s) != 0)
            return false;
        struct client_lock_written after = client_lock_written(l);
        bool same = before.changed == nanoseconds(s.st_mtim) && before.size == s.st_size;
        if (same || before.changed == 0) { /* nobody has said anything yet */
            f->changed = nanoseconds(s.st_mtim);
            f->size = s.st_size;
        }
        if (same || before.changed == 0 || before.unfinished != 0)
            return true;
        if (after.changed == before.changed && after.unfinished == 0)
            return false;
    }
    return true; /* one checkpoint after the other */
}

bool files_is_as_written(struct files *f, const struct paths *p, const struct client_lock *l)
{
    struct stat s;
    return stat(p->db, &s) == 0 && is_as_written(f, &s, l, p);
}

static enum files_state missing(void)
{
    return errno == ENOENT || errno == ENOTDIR ? FILES_OTHER : FILES_UNKNOWN;
}

enum files_state files_check(struct files *f, const struct paths *p, const struct client_lock *l,
                             const char **which)
{
    struct stat s;
    *which = p->live;
    if (stat(p->live, &s) != 0)
        return missing();
    if (!is_file(&s, (struct file_id){l->device, l->inode}))
        return FILES_OTHER;
    *which = p->wal;
    if (stat(p->wal, &s) != 0)
        return missing();
    if (!is_file(&s, f->wal))
        return FILES_OTHER;
    *which = p->db;
    if (stat(p->db, &s) != 0)
        return missing();
    if (!is_file(&s, f->db) || !is_as_written(f, &s, l, p))
        return FILES_OTHER;
    if (s.st_nlink > 1)
        return FILES_LINKED;
    *which = p->shm;
    if (stat(p->shm, &s) != 0)
        return missing();
    if (!is_file(&s, f->shm))
        return FILES_OTHER;
    if (s.st_size < f->shm_size)
        return FILES_SHRUNK;
    f->shm_size = s.st_size;
    return FILES_SAME;
}

void files_begin_writing(const struct client_lock *l)
{
    struct client_lock_written w = client_lock_written(l);
    w.unfinished = 1;
    client_lock_set_written(l, &w);
}

void files_end_writing(struct files *f, const struct paths *p, const struct client_lock *l)
{
    struct stat s;
    if (stat(p->db, &s) != 0)
        return;
    f->changed = nanoseconds(s.st_mtim);
    f->size = s.st_size;
    client_lock_set_written(l,
                            &(struct client_lock_written){.changed = f->changed, .size = f->size});
}

void files_mend_shm(const struct files *f, const struct paths *p)
{
    (void)!truncate(p->shm, f->shm_size);
}
