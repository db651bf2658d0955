/* fuzz_config.c: whatever stands in a configuration file, it is taken or refused with a reason;
 * and a URL of sqlite: that it names is decoded without leaving its bounds. */
#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/sqlite_path.h"
#include "core/duration.h"

/* What was set stays for the life of the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static int complaints;

struct step print_error(const struct cli *c, const char *format, ...)
{
    char text[8192];
    va_list args;
    (void)c;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert(text[0] != '\0');
    complaints++;
    return end_with(EXIT_TROUBLE);
}

struct step usage(const struct cli *c, const char *format, ...)
{
    (void)c;
    (void)format;
    return end_with(EXIT_USAGE);
}

const char *simba_error_text(void)
{
    return "wrong";
}

int simba_duration_parse(const char *text, int64_t *ms)
{
    const char *why;
    return duration_parse(text, ms, &why);
}

/* The folder of the configuration: made once, the file in it written anew each time. */
static const char *file_of_user(void)
{
    static char path[64];
    char folder[] = "/tmp/fuzz_config.XXXXXX", inner[64];
    if (path[0] != '\0')
        return path;
    char *made = mkdtemp(folder);
    assert(made != NULL);
    snprintf(inner, sizeof inner, "%s/simba", folder);
    int rc = mkdir(inner, 0700);
    assert(rc == 0);
    setenv("XDG_CONFIG_HOME", folder, 1);
    snprintf(path, sizeof path, "%s/simba.yaml", inner);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cli c;
    static struct sqlite_path at;
    int64_t ms;
    int fd = open(file_of_user(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(fd >= 0);
    ssize_t n = write(fd, data, size);
    assert(n == (ssize_t)size);
    close(fd);
    memset(&c, 0, sizeof c);
    complaints = 0;
    if (config_load(&c).ends) {
        assert(complaints > 0);
        return 0;
    }
    (void)config_duration(&c, SET_TTL, 1, &ms);
    const char *url = c.setting[SET_URL].value;
    if (url != NULL && strncmp(url, "sqlite:", 7) == 0 && sqlite_path_of(url, &at) == NULL)
        assert(at.folder[0] != '\0' && at.file[0] != '\0');
    return 0;
}
