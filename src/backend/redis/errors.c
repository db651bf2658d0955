/* errors.c: see errors.h. */
#include "backend/redis/errors.h"

#include <simba.h>
#include <stdio.h>
#include <string.h>

int errors_describe(const struct reply *r, char *why, size_t size)
{
    static const struct {
        const char *kind;
        int code;
        const char *what;
    } known[] = {
        {"NOAUTH", SIMBA_EDENIED, "the server wants a password"},
        {"WRONGPASS", SIMBA_EDENIED, "the server does not accept user and password"},
        {"NOPERM", SIMBA_EDENIED, "the user lacks a permission"},
        {"WRONGTYPE", SIMBA_ESCHEMA, "a key of this mutex holds something that is not ours"},
        {"READONLY", SIMBA_ESTORE, "the server is a read-only replica"},
        {"SIMBAEPOCH", SIMBA_ESTORE, "the server is not what it was"},
        {"LOADING", SIMBA_ESTATE, "the server is still loading its data"},
        {"OOM", SIMBA_ESTORE, "the server is out of memory (maxmemory)"},
        {"MISCONF", SIMBA_ESTORE, "the server cannot save its data and refuses to write"},
        {"MASTERDOWN", SIMBA_ESTORE, "the server is a replica without its master"},
        {"NOREPLICAS", SIMBA_ESTORE, "the server has too few replicas to write"},
        {"BUSY", SIMBA_ESTATE, "the server is busy with somebody's script"},
        {"MOVED", SIMBA_EUNSUPPORTED, "this is a Redis Cluster, which is not supported yet"},
        {"CROSSSLOT", SIMBA_EUNSUPPORTED, "this is a Redis Cluster, which is not supported yet"},
    };
    /* Before Redis 7 an error within a script names its kind later in the line. */
    bool in_script = strncmp(r->text, "ERR Error running script", 24) == 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (reply_is_error(r, known[i].kind) ||
            (in_script && strstr(r->text, known[i].kind) != NULL)) {
            snprintf(why, size, "%s: %.200s", known[i].what, r->text);
            return known[i].code;
        }
    }
    if (strstr(r->text, "The user executing the script can't") != NULL ||
        strstr(r->text, "ACL failure in script") != NULL) { /* from 7.2 on */
        snprintf(why, size, "the user lacks a permission: %.200s", r->text);
        return SIMBA_EDENIED;
    }
    if (strstr(r->text, "not an integer") != NULL) { /* the fence */
        snprintf(why, size, "a key of this mutex holds something that is not ours: %.150s",
                 r->text);
        return SIMBA_ESCHEMA;
    }
    if (strstr(r->text, "max number of clients") != NULL) { /* it has no kind of its own */
        snprintf(why, size, "the server has as many clients as it may have (maxclients): %.200s",
                 r->text);
        return SIMBA_ESTATE;
    }
    snprintf(why, size, "the server says: %.200s", r->text);
    return SIMBA_ESTORE;
}
