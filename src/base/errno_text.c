/* errno_text.c: see errno_text.h. */
#include "base/errno_text.h"

#include <errno.h>
#include <string.h>

const char *errno_text(int error)
{
    switch (error) {
    case EMFILE:
        return "out of file descriptors: this process has as many as it may have, raise ulimit -n";
    case ENFILE:
        return "out of file descriptors: this machine has as many as it may have, raise "
               "fs.file-max";
    case ENOMEM:
        return "out of memory";
    default:
        return strerror(error);
    }
}

bool errno_is_late(int error)
{
    return error == ETIMEDOUT || error == EAGAIN || error == ECONNRESET || error == EPIPE;
}

bool errno_is_limit(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}
