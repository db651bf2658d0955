/* program.c: see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/messages.h"

#define URL_VARIABLE "SIMBA_GIVEN_URL"

const struct program serve_program = {"simba-serve", "simba-serve", "the viewer", "simba-serve",
                                      "SIMBA_SERVE"};
const struct program bench_program = {"simba-bench", "simba-bench", "the benchmark", "simba-tck",
                                      "SIMBA_LAB"};
const struct program torture_program = {"simba-torture", "simba-torture", "the torture",
                                        "simba-tck", "SIMBA_LAB"};
const struct program tck_program = {"tck", "tests/contract", "the contract suite", "simba-tck",
                                    "SIMBA_TESTS"};

/* Where it was installed, seen from where we are; or where it was built. */
static bool find(const struct program *p, char *out, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;
    if (n <= 0)
        return false;
    self[n] = '\0';
    if ((slash = strrchr(self, '/')) != NULL)
        *slash = '\0';
    int length = snprintf(out, size, "%s/" SIMBA_PROGRAMS "/%s", self, p->name);
    if (length > 0 && (size_t)length < size && access(out, X_OK) == 0)
        return true;
    length = snprintf(out, size, "%s/%s", self, p->built);
    return length > 0 && (size_t)length < size && access(out, X_OK) == 0;
}

int program_exec(const struct cli *c, const struct program *p, char **argv, const char *variable)
{
    const struct setting *url = &c->setting[SET_URL];
    char path[PATH_MAX];
    if (!find(p, path, sizeof path))
        return print_error(c,
                           "%s is not installed: there is no %s/%s beside this program. On Debian "
                           "install %s; else build with %s",
                           p->what, SIMBA_PROGRAMS, p->name, p->package, p->option)
            .code;
    if (url->value != NULL)
        setenv(variable, url->value, 1);
    else
        unsetenv(variable);
    execv(path, argv);
    return print_error(c, "cannot run %s: %s", path, strerror(errno)).code;
}

int program_exec_same(const struct cli *c, const struct program *p)
{
    return program_exec(c, p, c->argv, URL_VARIABLE);
}

static struct step leave(struct cli *c, void *data, int id, char *value)
{
    (void)c;
    (void)data;
    (void)id;
    (void)value;
    return GO_ON;
}

/* The program takes the arguments again; here they are read to find what is wrong, and to blank the URL. */
int program_run(struct cli *c)
{
    bool has_url = strstr(c->command->operands, "URL") != NULL;
    struct step step = cli_take(c, leave, has_url ? cli_take_url : leave, NULL);
    return step.ends ? step.code : program_exec_same(c, c->command->program);
}

void program_take_url(struct cli *c)
{
    char *given = getenv(URL_VARIABLE);
    if (given == NULL)
        return;
    snprintf(c->given_url, sizeof c->given_url, "%s", given);
    explicit_bzero(given, strlen(given));
    unsetenv(URL_VARIABLE);
}
