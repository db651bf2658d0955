/* live.c: open file description locks, because those of fcntl's older kind end when any descriptor
 * of the file is closed anywhere in the process, and are not inherited by children. */
#include "backend/sqlite/live.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sqlite/place.h"

int live_open(struct live *l, const char *path)
{
    struct stat s;
    l->number = 0;
    l->fd = place_open(path);
    if (l->fd < 0)
        return -1;
    if (fstat(l->fd, &s) != 0) {
        live_close(l);
        return -1;
    }
    l->file = (int64_t)(s.st_ino ^ ((uint64_t)s.st_dev << 40)) & INT64_MAX;
    return 0;
}

int live_hold(struct live *l, int64_t number)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    if (fcntl(l->fd, F_OFD_SETLK, &lock) != 0)
        return -1;
    l->number = number;
    return 0;
}

bool live_is_held(const struct live *l, int64_t first, int64_t end)
{
    if (first >= end) /* to fcntl a length of 0 would mean all that follows */
        return false;
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = end - first};
    return fcntl(l->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int64_t live_last(const struct live *l, int64_t first)
{
    int64_t last = 0;
    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first};
        if (fcntl(l->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
            return last;
        last = lock.l_start + lock.l_len - 1;
        first = last + 1;
    }
}

void live_close(struct live *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->number = 0;
}
