/* help.c: see help.h. */
#include "help.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const sqlite_files[SQLITE_FILES] = {"a.db",      "a.db-wal",  "a.db-shm",
                                                "a.db-live", "a.db-tree", "a.db-bell"};

static char url[192];

void sqlite_begin(void)
{
    folder_make();
    snprintf(url, sizeof url, "sqlite:%s", folder_path("a.db"));
}

void sqlite_begin_in(const char *folder)
{
    folder_make();
    CHECK(mkdir(folder_path(folder), 0700) == 0);
    snprintf(url, sizeof url, "sqlite:%s/a.db", folder_path(folder));
}

const char *sqlite_url(void)
{
    return url;
}

struct peer sqlite_peer(struct simba_handle_options like)
{
    struct peer p = {.url = url, .mutex = "m", .like = like};
    peer_start(&p);
    return p;
}

void sqlite_contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
    peer_send(p, "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(p, PATIENCE_MS), "0") == 0);
}

void sqlite_end(void)
{
    ledger_check(ledger_map(folder_path("ledger")));
    folder_remove();
}
