/* refused_paths.c: where a database may not be, and files that are not ours: each is refused with
 * a reason, and left as it was. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"

static const char *url_of(const char *path)
{
    static char url[192];
    snprintf(url, sizeof url, "sqlite:%s", path);
    return url;
}

/* SQLite opens none that is longer than 504 bytes, and does not say why. */
static void long_path_refused(void)
{
    char path[600], url[2 * sizeof path];
    struct simba_owner owner;
    simba_client *s = NULL;
    folder_make();
    int n = snprintf(path, sizeof path, "%s", folder_path("x"));
    while (n < 400) {
        CHECK(mkdir(path, 0700) == 0);
        n += snprintf(path + n, sizeof path - (size_t)n, "/%050d", n);
    }
    CHECK(mkdir(path, 0700) == 0);
    snprintf(url, sizeof url, "sqlite:%s/%0*d", path, 505 - n - 1, 0);
    CHECK_REFUSED(simba_open(url, NULL, &s), SIMBA_EINVAL, "longer than the 504 bytes");
    url[strlen(url) - 1] = '\0';
    CHECK_OK(simba_open(url, NULL, &s));
    CHECK_OK(simba_read(s, "any", PATIENCE_MS, &owner));
    client_close(s);
    folder_remove();
}

static void refused(const char *path, int code, const char *part)
{
    simba_client *s = NULL;
    CHECK_REFUSED(simba_open(url_of(path), NULL, &s), code, part);
    CHECK(s == NULL);
}

static void path_refused(void)
{
    folder_make();
    const char *target = folder_path("target"), *link = folder_path("link.db");
    CHECK(symlink(target, link) == 0);
    refused(link, SIMBA_EINVAL, "symbolic link"); /* also one that leads nowhere */
    CHECK(access(target, F_OK) != 0);
    CHECK(symlink(target, folder_path("b.db-live")) == 0);
    refused(folder_path("b.db"), SIMBA_EINVAL, "symbolic link");
    CHECK(symlink(target, folder_path("c.db-bell")) == 0);
    refused(folder_path("c.db"), SIMBA_EINVAL, "symbolic link");
    CHECK(mkdir(folder_path("d.db"), 0700) == 0);
    refused(folder_path("d.db"), SIMBA_EINVAL, "d.db");
    CHECK(mkfifo(folder_path("e.db"), 0600) == 0);
    refused(folder_path("e.db"), SIMBA_EINVAL, "not a plain file");
    refused(folder_path("missing/a.db"), SIMBA_EINVAL, "make it first");
    refused(folder_path(""), SIMBA_EINVAL, "path");
    CHECK(mkdir(folder_path("open"), 0777) == 0 && chmod(folder_path("open"), 01777) == 0);
    refused(folder_path("open/a.db"), SIMBA_EDENIED, "everybody");
    folder_remove();
}

/* What a client says of the file that is there. is_beside: files of ours are there, too; else none
 * is made. */
static void unusable(const char *part, bool is_beside)
{
    simba_client *s = NULL;
    struct simba_owner owner;
    CHECK_OK(simba_open(url_of(folder_path("a.db")), NULL, &s));
    CHECK_REFUSED(simba_read(s, "any", PATIENCE_MS, &owner), SIMBA_ESCHEMA, part);
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(s, "any", NULL, &l));
    CHECK_CODE(simba_locker_acquire(l, 0), SIMBA_ESCHEMA);
    CHECK(!is_beside || access(folder_path("a.db-live"), F_OK) == 0);
    CHECK(is_beside || access(folder_path("a.db-live"), F_OK) != 0);
    CHECK(unlink(folder_path("a.db")) == 0);
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS)); /* one of our own takes its place */
    client_close(s);
    unlink(folder_path("a.db"));
    unlink(folder_path("a.db-live"));
}

static void make_database(const char *statements)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(folder_path("a.db"), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, statements, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

static void file_is_no_database(void)
{
    folder_make();
    FILE *f = fopen(folder_path("a.db"), "we");
    CHECK(f != NULL);
    for (int i = 0; i < 200; i++)
        fputs("these are notes, not tables\n", f);
    fclose(f);
    unusable("not a database", false);
    folder_remove();
}

static void file_of_another(void)
{
    folder_make();
    make_database("CREATE TABLE customers (name TEXT); PRAGMA user_version = 1");
    unusable("another program", false);
    folder_remove();
}

/* One of the group may write to a shared database, but not have us run what it put there. */
static void file_with_triggers(void)
{
    folder_make();
    simba_client *s = NULL;
    struct simba_owner owner;
    CHECK_OK(simba_open(url_of(folder_path("a.db")), NULL, &s));
    CHECK_OK(simba_read(s, "any", PATIENCE_MS, &owner));
    client_close(s);
    make_database("CREATE TABLE loot (name TEXT); CREATE TRIGGER t AFTER INSERT ON mutex BEGIN "
                  "INSERT INTO loot VALUES (new.name); UPDATE mutex SET owner = 'x'; END");
    CHECK_OK(simba_open(url_of(folder_path("a.db")), NULL, &s));
    simba_locker *l = NULL;
    CHECK_OK(simba_locker_create(s, "any", NULL, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    CHECK_OK(simba_locker_release(l));
    client_close(s);
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(folder_path("a.db"), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db,
                       "INSERT INTO meta SELECT * FROM meta WHERE (SELECT count(*) FROM loot) > 0",
                       NULL, NULL, NULL) == SQLITE_OK); /* would make a second row, which fails */
    CHECK(sqlite3_close(db) == SQLITE_OK);
    folder_remove();
}

/* 0.1 kept no row of its own, and left no mark in PATH-live. */
static void file_of_older_version(void)
{
    folder_make();
    simba_client *s = NULL;
    simba_locker *l = NULL;
    uint64_t token[2];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(simba_open(url_of(folder_path("a.db")), NULL, &s));
        CHECK_OK(simba_locker_create(s, "any", NULL, &l));
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        token[i] = simba_locker_token(l);
        CHECK_OK(simba_locker_release(l));
        client_close(s);
        make_database("DELETE FROM mutex WHERE name = ''");
        CHECK(truncate(folder_path("a.db-live"), 0) == 0);
    }
    CHECK(token[1] > token[0]);
    folder_remove();
}

static void file_of_newer_version(void)
{
    folder_make();
    simba_client *s = NULL;
    struct simba_owner owner;
    CHECK_OK(simba_open(url_of(folder_path("a.db")), NULL, &s));
    CHECK_OK(simba_read(s, "any", PATIENCE_MS, &owner));
    client_close(s);
    make_database("PRAGMA user_version = 99");
    unusable("newer", true);
    folder_remove();
}

const struct test sqlite_refused_path_tests[] = {
    {"path_refused", path_refused, SQLITE_ONLY, 0},
    {"long_path_refused", long_path_refused, SQLITE_ONLY, 0},
    {"file_is_no_database", file_is_no_database, SQLITE_ONLY, 0},
    {"file_of_another", file_of_another, SQLITE_ONLY, 0},
    {"file_with_triggers", file_with_triggers, SQLITE_ONLY, 0},
    {"file_of_older_version", file_of_older_version, SQLITE_ONLY, 0},
    {"file_of_newer_version", file_of_newer_version, SQLITE_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
