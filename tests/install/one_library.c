/* one_library.c URL [MODULE]: locks and unlocks a mutex there, and says which files of Simba are in this
 * process. MODULE (simba-redis.so) has to be among them. Fails if there is a second libsimba beside the
 * one that simba_open is in. */
#include <dlfcn.h>
#include <simba.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "one_library: %s: %s\n", what, simba_error_text());
    return 1;
}

/* How many files of a name that begins so are mapped, each counted once, by its first part. */
static int count_mapped(const char *begin)
{
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const char *name = strrchr(line, '/');
        if (name == NULL || strncmp(name + 1, begin, strlen(begin)) != 0 ||
            strstr(line, " 00000000 ") == NULL)
            continue;
        printf("%s", name + 1);
        count++;
    }
    if (maps != NULL)
        fclose(maps);
    return count;
}

int main(int argc, char **argv)
{
    simba_client *client = NULL;
    simba_locker *locker = NULL;
    struct simba_owner owner;
    Dl_info ours;
    if (argc < 2 || simba_open(argv[1], NULL, &client) != 0 ||
        simba_locker_create(client, "one-library", NULL, &locker) != 0 ||
        simba_locker_acquire(locker, 20000) != 0)
        return fail("lock");
    if (simba_read(client, "one-library", 20000, &owner) != 0 ||
        owner.token != simba_locker_token(locker))
        return fail("read");
    if (dladdr((void *)(size_t)&simba_open, &ours) == 0)
        return fail("dladdr");
    int is_shared = strstr(ours.dli_fname, "libsimba.so") != NULL;
    if (count_mapped("libsimba.so") != is_shared)
        return fail("libsimba.so in a program that has it linked in, or two of them");
    if (argc > 2 && count_mapped(argv[2]) != 1)
        return fail("the module is not loaded");
    if (argc <= 2 && count_mapped("simba-") != 0)
        return fail("a module is loaded");
    printf("%s\n", is_shared ? "shared" : "static");
    return simba_locker_release(locker) == 0 && simba_close(client, 20000) == 0 ? 0 : fail("close");
}
