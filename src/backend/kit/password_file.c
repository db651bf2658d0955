/* password_file.c: see password_file.h. */
#include "backend/kit/password_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"

/* All of it, or as much as fits; from a pipe it comes in parts. -1: see errno. */
static ssize_t read_all(const char *path, char *out, size_t size)
{
    size_t used = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (n > 0 && used < size) {
        n = read(fd, out + used, size - used);
        if (n > 0)
            used += (size_t)n;
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    int error = errno;
    close(fd);
    errno = error;
    return n < 0 ? -1 : (ssize_t)used;
}

static int read_secret(const struct options *o, const char *option, const char *path, char **out)
{
    char secret[PASSWORD_FILE_MAX + 1];
    ssize_t n = read_all(path, secret, sizeof secret);
    int rc;
    if (n >= 0 && n <= PASSWORD_FILE_MAX) {
        secret[n] = '\0';
        secret[strcspn(secret, "\r\n")] = '\0';
    }
    if (n < 0)
        rc = options_refuse(o, errno_is_limit(errno) ? SIMBA_ELIMIT : SIMBA_EINVAL,
                            "option %s: cannot read %.200s: %s", option, path, errno_text(errno));
    else if (n > PASSWORD_FILE_MAX)
        rc = options_refuse(o, SIMBA_EINVAL, "option %s: %.200s is longer than %d bytes", option,
                            path, PASSWORD_FILE_MAX);
    else if (secret[0] == '\0')
        rc = options_refuse(o, SIMBA_EINVAL, "option %s: %.200s is empty", option, path);
    else
        rc = options_copy(o, secret, out);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

int password_file_read(const struct options *o, const char *given, const char *option, char **out)
{
    const char *path = simba_url_option(o->url, option);
    if (path == NULL)
        return options_copy(o, given, out);
    if (given != NULL)
        return options_refuse(o, SIMBA_EINVAL,
                              "the password is given twice: in the URL, and by option %s", option);
    return read_secret(o, option, path, out);
}
