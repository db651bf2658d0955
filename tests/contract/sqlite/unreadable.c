/* unreadable.c: a file of the sqlite: store, or its folder, is made unreadable (chmod 000) while
 * one process owns a mutex and another waits. Whoever has the file open goes on, whoever comes
 * is refused and told which file it is. Root reads everything, whatever the mode: then the peers
 * are another user's. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "help.h"

#define ANOTHER_USER 65534

static uid_t user; /* of the peers; 0: ours */

static struct peer start(struct simba_handle_options like)
{
    struct peer p = {.url = sqlite_url(), .mutex = "m", .like = like, .user = user};
    peer_start(&p);
    return p;
}

enum asked { HEEDED, NO_OTHER_USER, IGNORED };

/* Is a file of mode 000 closed to its owner? */
static enum asked ask_modes(const char *file)
{
    int status, fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && (user == 0 || fchown(fd, user, user) == 0) && fchmod(fd, 0) == 0);
    close(fd);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (user != 0 && (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0))
            _exit(NO_OTHER_USER);
        _exit(open(file, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? HEEDED : IGNORED);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void begin(void)
{
    sqlite_begin_in("s");
    user = geteuid() == 0 ? ANOTHER_USER : 0;
    bool given = user == 0 || (chown(folder_path(""), user, user) == 0 &&
                               chown(folder_path("s"), user, user) == 0);
    enum asked asked = given ? ask_modes(folder_path("asked")) : NO_OTHER_USER;
    if (asked == HEEDED)
        return;
    folder_remove();
    suite_skip(asked == IGNORED ? "modes of files are not heeded here"
                                : "a peer cannot become another user here");
}

/* When the lease ends, as this one sees it. */
static int64_t lease_end(struct peer *p)
{
    long long code, token, left;
    CHECK(sscanf(peer_ask(p, "read"), "%lld %lld %lld", &code, &token, &left) == 3 && code == 0);
    return simba_now() + left;
}

/* The owner renews, and the others see it. */
static void check_renewed(struct peer *owner, uint64_t token, struct peer *other)
{
    int64_t first = lease_end(other);
    AWAIT(lease_end(other) > first + 500);
    CHECK((uint64_t)peer_number(owner, "token") == token && peer_number(other, "token") == 0);
}

static void check_refused(struct peer *p, const char *file)
{
    char reason[96];
    snprintf(reason, sizeof reason, "/%s: Permission denied", file);
    const char *said = peer_ask(p, "read");
    if (atoi(said) != SIMBA_EDENIED || strstr(said, reason) == NULL)
        suite_fail(__FILE__, __LINE__, said);
    CHECK(peer_number(p, "acquire 0") == SIMBA_EDENIED);
}

static void unreadable(const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "s/%s", file);
    begin();
    struct peer a = start(lease_steady()), b = start(lease_steady());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite_contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    CHECK(chmod(folder_path(path), 0) == 0);
    struct peer c = start(lease_steady());
    check_refused(&c, file);
    sqlite_contend(&c);
    check_renewed(&a, token, &b);
    CHECK(peer_number(&c, "token") == 0);
    peer_kill(&a);
    CHECK(peer_await_owner(&b) > token);
    check_refused(&c, file);
    CHECK(chmod(folder_path(path), 0600) == 0);
    CHECK(peer_ask(&c, "read")[0] == '0');
    peer_end(&b);
    peer_await_owner(&c);
    peer_end(&c);
    sqlite_end();
}

static void damage_db_unreadable(void)
{
    unreadable("a.db");
}

static void damage_wal_unreadable(void)
{
    unreadable("a.db-wal");
}

static void damage_shm_unreadable(void)
{
    unreadable("a.db-shm");
}

static void damage_live_unreadable(void)
{
    unreadable("a.db-live");
}

static void damage_tree_unreadable(void)
{
    unreadable("a.db-tree");
}

/* Nobody needs it: who comes is woken later. */
static void damage_wakeup_unreadable(void)
{
    begin();
    struct peer a = start(lease_steady()), b = start(lease_steady());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite_contend(&b);
    CHECK(chmod(folder_path("s/a.db-bell"), 0) == 0);
    struct peer c = start(lease_steady());
    sqlite_contend(&c);
    CHECK(peer_number(&c, "wait") == 0);
    AWAIT(strstr(peer_ask(&c, "log"), "wakeup file") != NULL);
    check_renewed(&a, token, &b);
    check_renewed(&a, token, &c);
    CHECK(peer_number(&a, "stop") == 0);
    AWAIT(peer_number(&b, "token") != 0 || peer_number(&c, "token") != 0);
    peer_end(&b);
    peer_await_owner(&c);
    peer_end(&a);
    peer_end(&c);
    sqlite_end();
}

/* The files cannot even be looked at. Whether they are still the store's is unknown, so the owner
 * does not stay, and nobody follows until they can be seen again. */
static void damage_folder_unreadable(void)
{
    begin();
    struct peer a = start(lease_short()), b = start(lease_short());
    sqlite_contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite_contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    CHECK(chmod(folder_path("s"), 0) == 0);
    struct peer c = start(lease_short());
    check_refused(&c, "s/a.db");
    sqlite_contend(&c);
    AWAIT(peer_number(&a, "token") == 0);
    CHECK(strstr(peer_ask(&a, "log"), "Permission denied") != NULL);
    CHECK(peer_number(&b, "token") == 0 && peer_number(&c, "token") == 0);
    CHECK(chmod(folder_path("s"), 0700) == 0);
    uint64_t next = 0;
    AWAIT((next = (uint64_t)(peer_number(&a, "token") | peer_number(&b, "token") |
                             peer_number(&c, "token"))) != 0);
    CHECK(next > token);
    peer_end(&a);
    peer_end(&b);
    peer_await_owner(&c);
    peer_end(&c);
    sqlite_end();
}

const struct test sqlite_unreadable_tests[] = {
    {"damage_db_unreadable", damage_db_unreadable, SQLITE_ONLY, 0},
    {"damage_wal_unreadable", damage_wal_unreadable, SQLITE_ONLY, 0},
    {"damage_shm_unreadable", damage_shm_unreadable, SQLITE_ONLY, 0},
    {"damage_live_unreadable", damage_live_unreadable, SQLITE_ONLY, 0},
    {"damage_tree_unreadable", damage_tree_unreadable, SQLITE_ONLY, 0},
    {"damage_wakeup_unreadable", damage_wakeup_unreadable, SQLITE_ONLY, 0},
    {"damage_folder_unreadable", damage_folder_unreadable, SQLITE_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
