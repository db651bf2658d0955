/* files.c: see files.h. While we have a file open its inode is not used for another, so device and
 * inode tell whether it is still the one at its path. */
#include "backend/sqlite/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)((uint64_t)t.tv_sec * 1000000000 +
                     (uint64_t)t.tv_nsec); /* any time may be set */
}

static bool is_file(const struct stat *s, struct file_id id)
{
    return s->st_ino == id.inode && s->st_dev == id.device;
}

/* All connections of a process share one descriptor of PATH-shm: an older connection may have
 * brought an older file with it. By open() and not by opendir(), which ThreadSanitizer does not
 * see: it would take the descriptor for an earlier one that libuv has closed unseen. */
static bool is_open_here(struct file_id id)
{
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    bool found = false;
    if (folder == NULL) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        errno = why;
        return false;
    }
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
    f->wal_size = wal.st_size;
    f->shm_size = shm.st_size;
    files_forget(f);
    f->wal_fd = open(p->wal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return f->wal_fd >= 0 && is_open_here(f->shm) ? 0 : -1;
}

void files_forget(struct files *f)
{
    if (f->wal_fd >= 0)
        close(f->wal_fd);
    f->wal_fd = -1;
}

/* A log that is truncated while somebody writes to it is as long as before when that is done. But then
 * it begins with nothing, where SQLite has a number. */
static bool begins_with_nothing(const struct files *f)
{
    uint32_t number;
    return pread(f->wal_fd, &number, sizeof number, 0) == sizeof number && number == 0;
}

static struct client_lock_written now_written(const struct stat *s)
{
    uint64_t access = (uint64_t)s->st_uid << 32 ^ (uint64_t)s->st_gid << 12 ^ s->st_mode;
    return (struct client_lock_written){.changed = nanoseconds(s->st_mtim),
                                        .size = s->st_size,
                                        .touched = nanoseconds(s->st_ctim),
                                        .access = (int64_t)(access & INT64_MAX)};
}

/* Has nobody but us written to it? A copy of before that was put back, with its times, was
 * touched later than we say; but so is a file whose mode or owner was changed, which harms
 * nobody. */
static bool is_ours(const struct client_lock_written *now, const struct client_lock_written *said)
{
    return now->changed == said->changed && now->size == said->size &&
           (now->touched == said->touched || said->touched == 0 || now->access != said->access);
}

/* Who writes the log back says before and after it what it does to the file, so whatever changed it
 * without a word was not one of us. Asked before and after the check: both may be under way. */
static bool is_as_written(struct files *f, const struct stat *db, const struct client_lock *l,
                          const struct paths *p)
{
    struct stat s = *db;
    struct client_lock_written now = now_written(&s);
    if (now.touched == f->seen.touched && is_ours(&now, &f->seen))
        return true;
    for (int i = 0; i < 10; i++) {
        struct client_lock_written before = client_lock_written(l);
        if (stat(p->db, &s) != 0)
            return false;
        struct client_lock_written after = client_lock_written(l);
        now = now_written(&s);
        bool same = is_ours(&now, &before);
        if (same || before.changed == 0) /* nobody has said anything yet */
            f->seen = now;
        if (same && before.unfinished == 0 && now.access != before.access)
            client_lock_set_written(l, &now);
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

/* Is it there, and ours? */
static enum files_state find(const char *path, struct file_id id, struct stat *s)
{
    if (stat(path, s) != 0)
        return errno == ENOENT || errno == ENOTDIR ? FILES_OTHER : FILES_UNKNOWN;
    return is_file(s, id) ? FILES_SAME : FILES_OTHER;
}

enum files_state files_check(struct files *f, const struct paths *p, const struct client_lock *l,
                             const char **which)
{
    struct stat s;
    enum files_state state = find(*which = p->live, l->id, &s);
    if (state == FILES_SAME)
        state = find(*which = p->wal, f->wal, &s);
    if (state != FILES_SAME)
        return state;
    if (s.st_size < f->wal_size || begins_with_nothing(f))
        return FILES_OTHER;
    f->wal_size = s.st_size;
    state = find(*which = p->db, f->db, &s);
    if (state == FILES_SAME && !is_as_written(f, &s, l, p))
        state = FILES_OTHER;
    if (state == FILES_SAME && s.st_nlink > 1)
        state = FILES_LINKED;
    if (state == FILES_SAME)
        state = find(*which = p->shm, f->shm, &s);
    if (state != FILES_SAME)
        return state;
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
    f->seen = now_written(&s);
    client_lock_set_written(l, &f->seen);
}

void files_mend_shm(const struct files *f, const struct paths *p)
{
    (void)!truncate(p->shm, f->shm_size);
}
