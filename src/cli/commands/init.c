/* init.c: simba init: makes a store ready. Most need nothing; the file of sqlite: needs a
 * folder, and one for several users needs a group. What has to be done for which kind of store
 * is in one table. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <simba/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/schemes.h"
#include "cli/commands/commands.h"
#include "cli/data.h"
#include "cli/messages.h"
#include "cli/mysql_schema.h"
#include "cli/mysql_schema_note.h"
#include "cli/mysql_upgrade.h"
#include "cli/postgres_schema.h"
#include "cli/postgres_schema_note.h"
#include "cli/postgres_upgrade.h"
#include "cli/sqlite_path.h"

#define SHARED_MODE 02770 /* setgid: what is made in it belongs to the group */

enum { OPT_SHARED, OPT_GROUP, OPT_PRINT };

static const struct option options[] = {
    {"shared", 0, OPT_SHARED, NULL, "sqlite: a folder for all members of a group"},
    {"group", 'g', OPT_GROUP, "G", "that group, by name or number"},
    {"print", 'p', OPT_PRINT, NULL, "SQL servers: print what would be run, without connecting"},
    {NULL, 0, 0, NULL, NULL},
};

struct init_options {
    bool shared, print, upgrades;
    const char *group;
    gid_t gid;
    const char *url;
};

static struct step take_option(struct cli *c, void *data, int id, char *value)
{
    struct init_options *r = data;
    (void)c;
    if (id == OPT_SHARED)
        r->shared = true;
    else if (id == OPT_PRINT)
        r->print = true;
    else
        r->group = value;
    return GO_ON;
}

static struct step find_group(struct cli *c, struct init_options *r)
{
    char *end;
    if (r->shared != (r->group != NULL))
        return usage(c, r->shared ? "--shared needs --group G: whom to share with"
                                  : "--group is for --shared: write --shared --group G");
    if (!r->shared)
        return GO_ON;
    const struct group *g = getgrnam(r->group);
    unsigned long number = strtoul(r->group, &end, 10);
    if (g == NULL && (r->group[0] < '0' || r->group[0] > '9' || *end != '\0'))
        return usage(c, "unknown group '%.60s'", r->group);
    r->gid = g != NULL ? g->gr_gid : (gid_t)number;
    return GO_ON;
}

/* ---- sqlite: ------------------------------------------------------------------------------- */

/* 1: it was there already; 0: made; -1: see errno. Those above it are made, too, as mkdir -p does. */
static int make_folder(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0755); /* what is missing then shows below */
        *p = '/';
    }
    if (mkdir(folder, 0700) == 0)
        return 0;
    return errno == EEXIST ? 1 : -1;
}

/* A member of the group may have put something else in its place, so what is changed is what was
 * looked at, and only if it can be nothing but ours. */
static bool share_file(int folder, const char *file, gid_t gid)
{
    struct stat s;
    char path[64];
    int fd = openat(folder, file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT; /* it will be made so */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool done = fstat(fd, &s) == 0 &&
                ((s.st_gid == gid && (s.st_mode & 07777) == 0660) ||
                 (S_ISREG(s.st_mode) && s.st_nlink == 1 &&
                  fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) == 0 && chmod(path, 0660) == 0));
    close(fd);
    return done;
}

static const char *const ends[] = {"", "-live", "-tree", "-bell", "-wal", "-shm", "-journal"};
#define ENDS (sizeof ends / sizeof *ends)

static bool is_of_store(const struct sqlite_path *at, const char *file)
{
    size_t length = strlen(at->file);
    bool found = strcmp(file, ".") == 0 || strcmp(file, "..") == 0;
    for (size_t i = 0; i < ENDS; i++)
        found =
            found || (strncmp(file, at->file, length) == 0 && strcmp(file + length, ends[i]) == 0);
    return found;
}

/* True if there is something else than the store in it; `what` is one of that. */
static bool holds_others(int folder, const struct sqlite_path *at, char what[NAME_MAX + 1])
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool found = dir == NULL;
    snprintf(what, NAME_MAX + 1, "what cannot be read");
    for (struct dirent *e; dir != NULL && !found && (e = readdir(dir)) != NULL;) {
        found = !is_of_store(at, e->d_name);
        if (found)
            snprintf(what, NAME_MAX + 1, "%.*s", NAME_MAX, e->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return found;
}

static bool is_at(const char *path, const struct stat *s)
{
    struct stat there;
    return path != NULL && stat(path, &there) == 0 && there.st_ino == s->st_ino &&
           there.st_dev == s->st_dev;
}

static bool is_home(const struct stat *s)
{
    const struct passwd *owner = getpwuid(s->st_uid);
    return is_at(getenv("HOME"), s) || (owner != NULL && is_at(owner->pw_dir, s));
}

/* A folder that we did not make is changed only if it can be nothing but the store's: nobody
 * else may use it, and nothing else is in it. */
static bool may_change(struct cli *c, const struct init_options *r, const struct sqlite_path *at,
                       int fd, const struct stat *s)
{
    char why[NAME_MAX + 64] = "", what[NAME_MAX + 1];
    bool is_private = (s->st_mode & 077) == 0 || (s->st_mode & 07777) == SHARED_MODE;
    if (is_home(s))
        snprintf(why, sizeof why, "it is a home folder");
    else if (holds_others(fd, at, what))
        snprintf(why, sizeof why, "it also holds %s", what);
    else if (!is_private)
        snprintf(why, sizeof why, "others use it: its mode is %o", s->st_mode & 07777U);
    else
        return true;
    print_error(c,
                "the folder %s is not changed: %s. Give the store a folder of its own, as in "
                "sqlite:%s%ssimba/%s; or share this one yourself: chgrp %s %s && chmod 2770 %s",
                at->folder, why, at->folder, strcmp(at->folder, "/") == 0 ? "" : "/", at->file,
                r->group, at->folder, at->folder);
    return false;
}

static bool share_folder(struct cli *c, const struct init_options *r, const struct sqlite_path *at,
                         int fd, bool is_new)
{
    struct stat s;
    bool done = fd >= 0 && fstat(fd, &s) == 0;
    if (done && (s.st_mode & 07777) == SHARED_MODE && s.st_gid == r->gid)
        return true;
    if (done && !is_new && !may_change(c, r, at, fd, &s))
        return false;
    done = done && fchown(fd, (uid_t)-1, r->gid) == 0 && fchmod(fd, SHARED_MODE) == 0;
    if (!done)
        print_error(c, "cannot give the folder %s to group %s: %s", at->folder, r->group,
                    strerror(errno));
    return done;
}

static bool share(struct cli *c, const struct init_options *r, const struct sqlite_path *at,
                  bool is_new)
{
    int fd = open(at->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool done = share_folder(c, r, at, fd, is_new);
    for (size_t i = 0; done && i < ENDS; i++) {
        char file[NAME_MAX + 16];
        snprintf(file, sizeof file, "%s%s", at->file, ends[i]);
        done = share_file(fd, file, r->gid);
        if (!done)
            print_error(c, "cannot give %s/%s to group %s: it is another's, or not a plain file",
                        at->folder, file, r->group);
    }
    if (fd >= 0)
        close(fd);
    return done;
}

static struct step init_sqlite(struct cli *c, struct init_options *r)
{
    static struct sqlite_path at;
    const char *wrong = sqlite_path_of(r->url, &at);
    if (wrong != NULL && c->setting[SET_URL].by_flag)
        return usage(c, "the URL of the store: %s", wrong);
    if (wrong != NULL)
        return print_error(c, "the URL of the store, from %s: %s", c->setting[SET_URL].where,
                           wrong);
    int made = make_folder(at.folder);
    if (made < 0)
        return print_error(c, "cannot make the folder %s: %s", at.folder, strerror(errno));
    if (r->shared && !share(c, r, &at, made == 0))
        return end_with(EXIT_TROUBLE);
    print_note(c, "the folder %s %s%s%s", at.folder, made == 0 ? "was made" : "is there",
               r->shared ? ", for all members of " : "", r->shared ? r->group : "");
    return GO_ON;
}

/* ---- SQL servers --------------------------------------------------------------------------- */

#define UPGRADE "create=upgrade"

/* The store makes its table by itself; that it changes one that is there has to be asked for. */
static struct step init_sql(struct cli *c, struct init_options *r)
{
    static char url[URL_MAX + sizeof UPGRADE + 1];
    if (strstr(r->url, "create=") != NULL)
        return GO_ON; /* as was said there */
    snprintf(url, sizeof url, "%s%c" UPGRADE, r->url, strchr(r->url, '?') != NULL ? '&' : '?');
    c->setting[SET_URL].value = url;
    r->upgrades = true;
    return GO_ON;
}

/* Of all that the store says: what its table is like now. */
static void say_table(void *data, const struct simba_finding *f)
{
    if (f->kind == SIMBA_FINDING_TABLE)
        print_note(data, "%s", f->text);
}

/* ---- the others ---------------------------------------------------------------------------- */

static struct step init_nothing(struct cli *c, struct init_options *r)
{
    (void)r;
    print_note(c, "nothing has to be made for this kind of store");
    return GO_ON;
}

static struct step init_others(struct cli *c, struct init_options *r)
{
    (void)c;
    (void)r;
    return GO_ON; /* a store of somebody's own: it will say what it misses */
}

static const struct preparation {
    struct step (*init)(struct cli *c, struct init_options *r); /* then the store can be asked */
    const char *schema, *notes, *upgrade,
        *user; /* the SQL that the store itself runs, and whom it is for */
} preparations[STORE_KINDS] = {
    [STORE_OTHER] = {init_others, NULL, NULL, NULL, NULL},
    [STORE_SQLITE] = {init_sqlite, NULL, NULL, NULL, NULL},
    [STORE_MEMORY] = {init_nothing, NULL, NULL, NULL, NULL},
    [STORE_REDIS] = {init_nothing, NULL, NULL, NULL, NULL},
    [STORE_MYSQL] = {init_sql, mysql_schema, mysql_schema_note, mysql_upgrade, "USER"},
    [STORE_POSTGRES] = {init_sql, postgres_schema, postgres_schema_note, postgres_upgrade, "ROLE"},
    [STORE_ZOOKEEPER] = {init_nothing, NULL, NULL, NULL, NULL},
};

/* For who has the right to make the tables and wants to read first. */
static struct step print_schema(const struct cli *c, const struct preparation *k)
{
    if (k->schema == NULL)
        return usage(c, "--print is for mysql:, mariadb: and postgresql: stores");
    printf("%s\n%s\n%s\n-- Who uses it needs no more than this ('simba doctor' has it with all "
           "names), and for notes the second line:\n-- GRANT SELECT, INSERT, UPDATE ON simba_mutex "
           "TO %s;\n"
           "-- GRANT SELECT, INSERT, UPDATE ON simba_note TO %s;\n",
           k->schema, k->notes, k->upgrade, k->user, k->user);
    return GO_ON;
}

/* The first exchange makes what the store makes by itself, such as tables. */
static struct step exchange(struct cli *c, const struct init_options *r)
{
    struct step step = cli_open(c);
    if (step.ends)
        return step;
    if (r->upgrades) /* that was ours, and is no part of the name */
        c->store[strlen(c->store) - sizeof UPGRADE] = '\0';
    if (cli_ask(c, "simba.init") != 0) {
        step = print_error(c, "%s", simba_error_text());
    } else {
        if (r->upgrades)
            simba_examine(c->client, ANSWER_MS, say_table, c);
        if (c->json)
            print_json("{s:s, s:b}", "store", c->store, "ready", 1);
        else
            printf("%s\n", c->store);
    }
    simba_close(c->client, ANSWER_MS);
    return step;
}

static int run(struct cli *c)
{
    struct init_options r = {.shared = false};
    char by_default[URL_MAX];
    struct step step = cli_take(c, take_option, cli_take_url, &r);
    step = AND_THEN(step, find_group(c, &r));
    step = AND_THEN(step, cli_configure(c));
    if (step.ends)
        return step.code;
    r.url = c->setting[SET_URL].value;
    if (r.url == NULL && simba_default_url(by_default, sizeof by_default) != 0)
        return print_error(c, "%s", simba_error_text()).code;
    if (r.url == NULL)
        r.url = by_default;
    if (r.shared && scheme_kind(r.url) != STORE_SQLITE)
        return usage(c, "--shared is for sqlite: stores").code;
    const struct preparation *how = &preparations[scheme_kind(r.url)];
    if (r.print)
        return print_schema(c, how).code;
    step = how->init(c, &r);
    step = AND_THEN(step, exchange(c, &r));
    if (!step.ends && r.shared && !c->json)
        print_note(c, "let its users have SIMBA_URL=%s", r.url);
    return step.code;
}

const struct subcommand init_command = {
    .name = "init",
    .operands = "[URL]",
    .summary = "make the store ready: its folder, its tables",
    .help = "Prints the URL of the store that is ready. It can be repeated.\n\n"
            "SQL servers: the table is made, or one of JVM Simba gets the columns that it lacks, "
            "also while it is used; --print shows the statements instead.\n\n"
            "sqlite: the folder is made, for its owner only (0700); with --shared --group G for "
            "all members of G (2770, files 0660): they can take and free each other's locks, "
            "nobody else can. A folder that was there is shared only if it is the store's "
            "alone.\n\n"
            "Other stores need nothing.\n\n"
            "Exit status: 0 ready; 125 it cannot be made or does not answer; 64 wrong usage.\n\n"
            "Examples:\n"
            "  simba init\n"
            "  simba init --print postgresql://db.example.org/app | psql app\n"
            "  simba -u sqlite:/var/lib/backup/locks.db init --shared --group backup\n",
    .options = options,
    .run = run,
};
