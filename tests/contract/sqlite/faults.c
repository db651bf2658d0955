/* faults.c: the machine fails the sqlite: store: a full disk, a read-only one, errors of the
 * device, another that keeps the database locked, other clocks, a restart. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "help.h"

/* A small file system of our own, seen by this test and its peers only. */
static void begin_mounted(void)
{
    sqlite_begin();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder_path(""), "tmpfs", 0, "size=512k,mode=0700") != 0) {
        folder_remove();
        suite_skip("a file system cannot be mounted here (not root?)");
    }
}

static void end_mounted(void)
{
    CHECK(umount2(folder_path(""), MNT_DETACH) == 0);
    folder_remove();
}

static void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
}

/* The database as somebody else sees it. */
static sqlite3 *open_database(void)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(folder_path("a.db"), &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, PATIENCE_MS);
    return db;
}

static void run(sqlite3 *db, const char *statements)
{
    if (sqlite3_exec(db, statements, NULL, NULL, NULL) != SQLITE_OK)
        suite_fail(__FILE__, __LINE__, sqlite3_errmsg(db));
}

/* ---- full and read-only -------------------------------------------------------------------- */

/* Takes what is free, also what became free since the last time. */
static void fill(int fd)
{
    static const char nothing[512];
    while (write(fd, nothing, sizeof nothing) > 0)
        ;
}

static bool lets_go(struct peer *p, int fd)
{
    fill(fd);
    return peer_number(p, "token") == 0;
}

/* And the log cannot be begun anew, because somebody reads an old state in it. */
static void disk_full(void)
{
    begin_mounted();
    struct peer a = sqlite_peer(lease_short()), b = sqlite_peer(lease_short());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    sqlite3 *reader = open_database();
    run(reader, "BEGIN; SELECT count(*) FROM mutex");
    int fd = open(folder_path("filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    AWAIT(lets_go(&a, fd));
    for (int64_t end = simba_now() + 500; simba_now() < end; nap(10)) {
        fill(fd);
        long long held = peer_number(&a, "token");
        CHECK(held == 0 || peer_number(&b, "token") == 0 || peer_number(&a, "token") != held);
    }
    CHECK(strstr(peer_ask(&a, "log"), "full") != NULL);
    close(fd);
    CHECK(unlink(folder_path("filler")) == 0);
    CHECK(sqlite3_close(reader) == SQLITE_OK);
    AWAIT(peer_number(&a, "token") != 0 || peer_number(&b, "token") != 0);
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    end_mounted();
}

/* It is full of our own log, and nobody will make room but us. */
static void disk_full_of_log(void)
{
    simba_client *s = NULL;
    simba_locker *l;
    struct simba_handle_options o = lease_long();
    struct simba_owner owner;
    begin_mounted();
    CHECK_OK(simba_open(sqlite_url(), NULL, &s));
    CHECK_OK(simba_locker_create(s, "m", &o, &l));
    for (int i = 0; i < 400; i++) {
        CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
        CHECK_OK(simba_locker_release(l));
    }
    client_close(s);
    CHECK_OK(simba_open(sqlite_url(), NULL, &s)); /* and who comes later */
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner));
    client_close(s);
    end_mounted();
}

/* The table of notes comes with the first one, and goes when that is rolled back. What is tried again
 * then makes it again. */
static void disk_full_first_note(void)
{
    simba_client *s = NULL;
    simba_locker *l;
    struct simba_handle_options o = lease_long();
    struct simba_note note;
    begin_mounted();
    CHECK_OK(simba_open(sqlite_url(), NULL, &s));
    CHECK_OK(simba_locker_create(s, "m", &o, &l));
    CHECK_OK(simba_locker_acquire(l, PATIENCE_MS));
    sqlite3 *reader = open_database();
    run(reader, "BEGIN; SELECT count(*) FROM mutex");
    int fd = open(folder_path("filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    fill(fd);
    CHECK_REFUSED(simba_locker_publish(l, "first", PATIENCE_MS), SIMBA_ESTORE, "is full");
    close(fd);
    CHECK(unlink(folder_path("filler")) == 0);
    CHECK(sqlite3_close(reader) == SQLITE_OK);
    CHECK_OK(simba_locker_publish(l, "first", PATIENCE_MS));
    CHECK_OK(simba_read_note(s, "m", PATIENCE_MS, &note, NULL));
    CHECK(strcmp(note.text, "first") == 0);
    client_close(s);
    end_mounted();
}

static void disk_read_only(void)
{
    begin_mounted();
    struct peer maker = sqlite_peer(lease_short());
    CHECK(peer_number(&maker, "acquire 20000") == 0 && peer_number(&maker, "release") == 0);
    peer_end(&maker);
    CHECK(mount("tmpfs", folder_path(""), NULL, MS_REMOUNT | MS_RDONLY, "size=512k") == 0);
    struct peer a = sqlite_peer(lease_short());
    CHECK(peer_ask(&a, "read")[0] == '0'); /* who only reads need not write */
    CHECK(peer_number(&a, "acquire 0") == SIMBA_EDENIED);
    contend(&a);
    AWAIT(strstr(peer_ask(&a, "log"), "Read-only") != NULL);
    CHECK(mount("tmpfs", folder_path(""), NULL, MS_REMOUNT, "size=512k") == 0);
    peer_await_owner(&a);
    peer_end(&a);
    end_mounted();
}

/* Another user, who may read the files and the folder and write to neither: it sees the owner while
 * that is connected, that it was killed, and the rows also when nobody is. */
static void other_user_reads(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_long());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    CHECK(chmod(folder_path(""), 0755) == 0);
    for (size_t i = 0; i < SQLITE_FILES; i++)
        CHECK(chmod(folder_path(sqlite_files[i]), 0644) == 0);
    struct peer b = {.url = sqlite_url(), .mutex = "m", .like = lease_short(), .user = 65534};
    peer_start(&b);
    if (!peer_is_up(&b)) {
        folder_remove();
        suite_skip("a peer cannot become another user here (not root?)");
    }
    long long code, held;
    CHECK(sscanf(peer_ask(&b, "read"), "%lld %lld", &code, &held) == 2);
    CHECK(code == 0 && (uint64_t)held == token);
    CHECK(peer_number(&b, "acquire 0") == SIMBA_EDENIED);
    peer_kill(&a);
    CHECK(sscanf(peer_ask(&b, "read"), "%lld %lld", &code, &held) == 2);
    CHECK(code == 0 && held == 0);
    peer_end(&b);
    folder_remove();
}

/* Without any newcomer who would put it right. */
static void truncated(const char *file)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short()), b = sqlite_peer(lease_long());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    contend(&b);
    CHECK(peer_number(&b, "wait") == 0);
    peer_stop(&a);
    peer_stop(&b);
    CHECK(truncate(folder_path(file), 0) == 0);
    CHECK(kill(a.pid, SIGCONT) == 0 && kill(b.pid, SIGCONT) == 0);
    CHECK(peer_number(&a, "stop") == 0);
    CHECK(peer_await_owner(&b) > token);
    peer_end(&a);
    peer_end(&b);
    folder_remove();
}

static void truncated_wakeup_file(void)
{
    truncated("a.db-bell");
}

static void truncated_index(void)
{
    truncated("a.db-shm");
}

/* ---- errors and locks ---------------------------------------------------------------------- */

/* What it cannot write it does not own for long; the other one has it after the lease. */
static void device_fails_writing(void)
{
    sqlite_begin();
    struct peer a = {.url = sqlite_url(), .mutex = "m", .like = lease_short(), .flaky = true};
    peer_start(&a);
    struct peer b = sqlite_peer(lease_long());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    contend(&b);
    CHECK(peer_number(&a, "fail write") == 0);
    AWAIT(peer_number(&a, "token") == 0);
    uint64_t next = peer_await_owner(&b);
    CHECK(next > token && peer_number(&a, "token") == 0);
    CHECK(strstr(peer_ask(&a, "log"), "disk I/O error") != NULL);
    CHECK(peer_number(&a, "fail none") == 0);
    CHECK(peer_number(&b, "stop") == 0);
    CHECK(peer_await_owner(&a) > next);
    peer_end(&a);
    peer_end(&b);
    folder_remove();
}

/* Not "this is no database of ours": the next try may find that it is. */
static void device_fails_reading(void)
{
    sqlite_begin();
    struct peer maker = sqlite_peer(lease_short());
    CHECK(peer_number(&maker, "acquire 20000") == 0 && peer_number(&maker, "release") == 0);
    peer_end(&maker);
    struct peer a = {.url = sqlite_url(), .mutex = "m", .like = lease_short(), .flaky = true};
    peer_start(&a);
    CHECK(peer_number(&a, "fail read") == 0);
    const char *said = peer_ask(&a, "read");
    if (atoi(said) != SIMBA_ESTORE || strstr(said, "disk I/O error") == NULL)
        suite_fail(__FILE__, __LINE__, said);
    contend(&a);
    CHECK(peer_number(&a, "fail none") == 0);
    peer_await_owner(&a);
    peer_end(&a);
    folder_remove();
}

/* Somebody's transaction outlasts several timeouts, but not the lease. */
static void database_locked(void)
{
    sqlite_begin();
    struct peer a = {
        .url = sqlite_url(), .mutex = "m", .like = lease(4000, 16000), .command_timeout_ms = 300};
    a.like.renew_ms = 200;
    peer_start(&a);
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    sqlite3 *db = open_database();
    run(db, "BEGIN IMMEDIATE");
    for (int64_t end = simba_now() + 2500; simba_now() < end; nap(20))
        CHECK((uint64_t)peer_number(&a, "token") == token);
    AWAIT(peer_ask(&a, "read")[0] == '0'); /* who only reads need not wait for it */
    AWAIT(strstr(peer_ask(&a, "log"), "database is locked") != NULL);
    run(db, "COMMIT");
    CHECK(sqlite3_close(db) == SQLITE_OK);
    AWAIT(peer_ask(&a, "read")[0] == '0');
    CHECK((uint64_t)peer_number(&a, "token") == token);
    peer_end(&a);
    folder_remove();
}

/* Another program locks PATH-live to its end: who comes is refused within its time, and those
 * who are there go on. */
static void foreign_lock(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    int fd = open(folder_path("a.db-live"), O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 100};
    CHECK(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    struct peer b = {.url = sqlite_url(), .mutex = "n", .like = lease_long()};
    peer_start(&b);
    const char *said = peer_ask(&b, "read");
    CHECK(atoi(said) == SIMBA_ESTORE && strstr(said, "locked") != NULL);
    for (int64_t end = simba_now() + 4000; simba_now() < end; nap(20))
        CHECK((uint64_t)peer_number(&a, "token") == token);
    close(fd);
    CHECK(peer_number(&b, "acquire 20000") == 0);
    peer_end(&a);
    peer_end(&b);
    folder_remove();
}

/* What PATH-live says of the last writer, with the sum that makes it whole (client_lock.c). */
static void say_last_writer(int64_t serial, int64_t token, int64_t lease)
{
    int64_t all[4] = {serial, token, lease};
    uint64_t sum = UINT64_C(0x53494d4261);
    for (int i = 0; i < 3; i++)
        sum = (sum ^ (uint64_t)all[i]) * UINT64_C(0x100000001b3);
    all[3] = (int64_t)sum;
    int fd = open(folder_path("a.db-live"), O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, all, sizeof all, 0) == sizeof all);
    close(fd);
}

/* Numbers that no client can have written: sums of them must not overflow, and tokens not fall. */
static void last_writer_is_impossible(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    CHECK(peer_number(&a, "acquire 20000") == 0);
    int64_t token = peer_number(&a, "held");
    CHECK(peer_number(&a, "release") == 0);
    peer_end(&a);
    const int64_t impossible[] = {INT64_MAX, (INT64_C(1) << 62) + 1};
    for (int i = 0; i < 4; i++) {
        say_last_writer(impossible[i / 2], impossible[i / 2], impossible[i / 2]);
        struct peer b = sqlite_peer(lease_short());
        CHECK(peer_number(&b, "acquire 5000") == 0);
        int64_t next = peer_number(&b, "held");
        CHECK(next > token && next < token + 3600 * INT64_C(1000000));
        token = next;
        peer_end(&b);
    }
    folder_remove();
}

/* A member of the group writes what it likes into the database. */
static void rows_are_impossible(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    CHECK(peer_number(&a, "acquire 20000") == 0);
    peer_end(&a);
    sqlite3 *db = open_database();
    run(db,
        "UPDATE mutex SET token = 9223372036854775807, client = 9223372036854775807, acquired = "
        "-9223372036854775808, until = 9223372036854775807, lease = 9223372036854775807;"
        "UPDATE meta SET base = 9223372036854775807");
    CHECK(sqlite3_close(db) == SQLITE_OK);
    struct peer b = sqlite_peer(lease_short());
    CHECK(peer_number(&b, "acquire 1000") != 0); /* that it survives is what counts */
    peer_end(&b);
    folder_remove();
}

/* There is none above it, and none below it may be given. */
static void last_token_is_given(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    CHECK(peer_number(&a, "acquire 20000") == 0 && peer_number(&a, "release") == 0);
    sqlite3 *db = open_database();
    run(db, "UPDATE mutex SET token = 9223372036854775807 WHERE name <> ''");
    CHECK(sqlite3_close(db) == SQLITE_OK);
    CHECK(peer_number(&a, "acquire 1000") == SIMBA_ESCHEMA);
    peer_end(&a);
    folder_remove();
}

/* The number that it could not write down is nobody's. */
static void full_when_enrolling(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    CHECK(peer_number(&a, "acquire 20000") == 0 && peer_number(&a, "release") == 0);
    struct peer b = {.url = sqlite_url(), .mutex = "m", .like = lease_short(), .flaky = true};
    peer_start(&b);
    CHECK(peer_number(&b, "fail write") == 0);
    CHECK(atoi(peer_ask(&b, "read")) == SIMBA_ESTORE);
    struct peer c = sqlite_peer(lease_short());
    CHECK(peer_number(&c, "acquire 0") == 0 && peer_number(&c, "release") == 0);
    CHECK(peer_number(&b, "fail none") == 0);
    CHECK(peer_number(&b, "acquire 20000") == 0 && peer_number(&b, "release") == 0);
    CHECK(peer_number(&c, "acquire 0") == 0);
    peer_end(&a);
    peer_end(&b);
    peer_end(&c);
    folder_remove();
}

/* Not a refusal: the next try may find one. */
static void no_descriptors(void)
{
    sqlite_begin();
    simba_client *s = NULL;
    struct simba_owner owner;
    struct rlimit limit, old;
    CHECK_OK(simba_open(sqlite_url(), NULL, &s));
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    limit = old;
    int next = dup(STDERR_FILENO);
    CHECK(next >= 0);
    for (int more = 0; more < 5; more++) { /* it fails at each of the files in turn */
        limit.rlim_cur = (rlim_t)(next + more);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        int code = simba_read(s, "m", PATIENCE_MS, &owner);
        if (code != 0 && code != SIMBA_ESTORE)
            suite_fail(__FILE__, __LINE__, simba_error_text());
        CHECK(more > 0 || code != 0);
        if (code != 0 && strstr(simba_error_text(), "ulimit -n") == NULL)
            suite_fail(__FILE__, __LINE__, simba_error_text());
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    CHECK_OK(simba_read(s, "m", PATIENCE_MS, &owner));
    close(next);
    client_close(s);
    folder_remove();
}

/* ---- clocks -------------------------------------------------------------------------------- */

static void check_left(struct peer *p, uint64_t token, int64_t most)
{
    long long code, held, left;
    CHECK(sscanf(peer_ask(p, "read"), "%lld %lld %lld", &code, &held, &left) == 3);
    CHECK(code == 0 && (uint64_t)held == token);
    CHECK(left > 0 && left <= most);
}

/* T62, T63: each of two processes lives in a time of its own; the leases are the same. */
static void other_time_namespace(void)
{
    sqlite_begin();
    struct peer p[2] = {{.boottime_s = 100000}, {.boottime_s = 0}};
    for (int i = 0; i < 2; i++) {
        p[i].url = sqlite_url();
        p[i].mutex = "m";
        p[i].like = lease_short();
        peer_start(&p[i]);
    }
    if (!peer_is_up(&p[0]) || peer_number(&p[0], "now") - peer_number(&p[1], "now") < 99000000) {
        folder_remove();
        suite_skip("time namespaces cannot be made here (not root?)");
    }
    for (int i = 0; i < 2; i++) {
        struct peer *owner = &p[i], *other = &p[1 - i];
        contend(owner);
        uint64_t token = peer_await_owner(owner);
        contend(other);
        CHECK(peer_number(other, "wait") == 0);
        for (int64_t end = simba_now() + 1000; simba_now() < end; nap(100)) {
            CHECK(peer_number(other, "token") == 0);
            check_left(other, token, 3000);
        }
        peer_stop(owner);
        CHECK(peer_await_owner(other) > token); /* at the end of the lease, not in a day */
        CHECK(kill(owner->pid, SIGCONT) == 0);
        CHECK(peer_number(owner, "token") == 0);
        CHECK(peer_number(owner, "stop") == 0 && peer_number(other, "stop") == 0);
    }
    peer_end(&p[0]);
    peer_end(&p[1]);
    folder_remove();
}

/* The offsets that the kernel shows are those of the children's namespace: ours cannot be known. */
static void unshared_time_namespace(void)
{
    sqlite_begin();
    if (unshare(CLONE_NEWTIME) != 0) {
        folder_remove();
        suite_skip("time namespaces cannot be made here (not root?)");
    }
    simba_client *s = NULL;
    CHECK_REFUSED(simba_open(sqlite_url(), NULL, &s), SIMBA_EUNSUPPORTED, "time namespace");
    folder_remove();
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Two containers on one kernel, each with a boot id of its own, take turns. Whom nobody outlives
 * has its lease waited for once, however often the others come and go; else it is noticed at
 * once. */
static void other_boot_id(void)
{
    sqlite_begin();
    char id[2][160];
    for (int i = 0; i < 2; i++) {
        snprintf(id[i], sizeof id[i], "%s", folder_path(i == 0 ? "x" : "y"));
        write_file(id[i], i == 0 ? "11111111-1111-4111-8111-111111111111\n"
                                 : "22222222-2222-4222-8222-222222222222\n");
    }
    struct peer a = {.url = sqlite_url(), .mutex = "m", .like = lease_short(), .boot_id = id[0]};
    struct peer b = {.url = sqlite_url(), .mutex = "m", .like = lease_long(), .boot_id = id[1]};
    peer_start(&a);
    if (!peer_is_up(&a)) {
        folder_remove();
        suite_skip("a file cannot be mounted here (not root?)");
    }
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    peer_start(&b);
    check_left(&b, token, 3000);
    CHECK(peer_number(&b, "acquire 0") != 0);
    CHECK((uint64_t)peer_number(&a, "token") == token);
    peer_end(&b);
    peer_kill(&a);
    for (int64_t end = simba_now() + 6000; simba_now() < end;) { /* in turns, for two leases */
        for (int i = 0; i < 2; i++) {
            struct peer p = {.url = sqlite_url(), .mutex = "other", .like = lease_short()};
            p.boot_id = id[i];
            peer_start(&p);
            CHECK(peer_number(&p, "acquire 20000") == 0 && peer_number(&p, "release") == 0);
            peer_end(&p);
        }
    }
    struct peer c = {.url = sqlite_url(), .mutex = "m", .like = lease_long(), .boot_id = id[1]};
    peer_start(&c);
    CHECK(peer_number(&c, "acquire 0") == 0);
    CHECK((uint64_t)peer_number(&c, "held") > token);
    peer_end(&c);
    folder_remove();
}

/* T63, T66: tokens jump over all that a power cut may have lost, and an owner of before the restart
 * is honoured for one lease, since nobody knows when it got it. */
static void machine_restarted(void)
{
    sqlite_begin();
    struct peer a = sqlite_peer(lease_short());
    contend(&a);
    uint64_t token = peer_await_owner(&a);
    peer_kill(&a);
    sqlite3 *db = open_database();
    run(db, "UPDATE meta SET boot = 'another'; UPDATE mutex SET until = until - 1000000000000");
    CHECK(sqlite3_close(db) == SQLITE_OK);
    int64_t before = simba_now();
    struct peer b = sqlite_peer(lease_long()), c = sqlite_peer(lease_long());
    contend(&b);
    peer_send(&b, "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(&b, PATIENCE_MS), "0") == 0);
    CHECK(peer_number(&b, "wait") == 0);
    check_left(&c, token, 3000);
    uint64_t next = peer_await_owner(&b);
    CHECK(next > token + 1000000);
    struct ledger *l = ledger_map(folder_path("ledger"));
    AWAIT(atomic_load(&l->tenure[0].from) != 0);
    CHECK(atomic_load(&l->tenure[0].from) >= before + 3000);
    CHECK(peer_number(&b, "stop") == 0);
    CHECK(peer_number(&c, "acquire 20000") == 0);
    long long third = peer_number(&c, "held");
    CHECK((uint64_t)third > next && (uint64_t)third < next + 1000000); /* once per restart */
    peer_end(&b);
    peer_end(&c);
    folder_remove();
}

const struct test sqlite_fault_tests[] = {
    {"disk_full", disk_full, SQLITE_ONLY, 0},
    {"disk_full_of_log", disk_full_of_log, SQLITE_ONLY, 0},
    {"disk_full_first_note", disk_full_first_note, SQLITE_ONLY, 0},
    {"disk_read_only", disk_read_only, SQLITE_ONLY, 0},
    {"other_user_reads", other_user_reads, SQLITE_ONLY, 0},
    {"truncated_wakeup_file", truncated_wakeup_file, SQLITE_ONLY, 0},
    {"truncated_index", truncated_index, SQLITE_ONLY, 0},
    {"device_fails_writing", device_fails_writing, SQLITE_ONLY, 0},
    {"device_fails_reading", device_fails_reading, SQLITE_ONLY, 0},
    {"database_locked", database_locked, SQLITE_ONLY, 0},
    {"other_time_namespace", other_time_namespace, SQLITE_ONLY, 0},
    {"unshared_time_namespace", unshared_time_namespace, SQLITE_ONLY, 0},
    {"other_boot_id", other_boot_id, SQLITE_ONLY, 0},
    {"foreign_lock", foreign_lock, SQLITE_ONLY, 0},
    {"last_writer_is_impossible", last_writer_is_impossible, SQLITE_ONLY, 0},
    {"rows_are_impossible", rows_are_impossible, SQLITE_ONLY, 0},
    {"last_token_is_given", last_token_is_given, SQLITE_ONLY, 0},
    {"full_when_enrolling", full_when_enrolling, SQLITE_ONLY, 0},
    {"no_descriptors", no_descriptors, SQLITE_ONLY, 0},
    {"machine_restarted", machine_restarted, SQLITE_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
