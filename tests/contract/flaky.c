/* flaky.c: SQLite's own way to its files, with a switch that makes it fail. */
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "peer.h"
#include "suite.h"

static atomic_bool reads_fail, writes_fail;

/* What SQLite calls for a file: its own functions, but two of them ours. It has a few such sets,
 * for files with locks and without. */
static struct methods {
    sqlite3_io_methods ours; /* first */
    const sqlite3_io_methods *theirs;
} methods[8];
static int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *real;

static const sqlite3_io_methods *theirs(const sqlite3_file *file)
{
    return ((const struct methods *)(const void *)file->pMethods)->theirs;
}

static int read_file(sqlite3_file *file, void *to, int length, sqlite3_int64 at)
{
    if (atomic_load(&reads_fail))
        return SQLITE_IOERR_READ;
    return theirs(file)->xRead(file, to, length, at);
}

static int write_file(sqlite3_file *file, const void *from, int length, sqlite3_int64 at)
{
    if (atomic_load(&writes_fail))
        return SQLITE_IOERR_WRITE;
    return theirs(file)->xWrite(file, from, length, at);
}

static const sqlite3_io_methods *wrap(const sqlite3_io_methods *original)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < used && methods[i].theirs != original)
        i++;
    if (i == used) {
        CHECK(used < 8);
        used++;
        methods[i].theirs = original;
        methods[i].ours = *original;
        methods[i].ours.xRead = read_file;
        methods[i].ours.xWrite = write_file;
    }
    pthread_mutex_unlock(&lock);
    return &methods[i].ours;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
    (void)vfs;
    int rc = real->xOpen(real, name, file, flags, got);
    if (file->pMethods != NULL)
        file->pMethods = wrap(file->pMethods);
    return rc;
}

void flaky_register(void)
{
    static sqlite3_vfs flaky;
    real = sqlite3_vfs_find(NULL);
    CHECK(real != NULL);
    flaky = *real;
    flaky.zName = "flaky";
    flaky.pNext = NULL;
    flaky.xOpen = open_file;
    CHECK(sqlite3_vfs_register(&flaky, 1) == SQLITE_OK);
}

bool flaky_set(const char *what)
{
    atomic_store(&reads_fail, strcmp(what, "read") == 0);
    atomic_store(&writes_fail, strcmp(what, "write") == 0);
    return real != NULL;
}
