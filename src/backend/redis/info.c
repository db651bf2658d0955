/* info.c: see info.h. */
#include "backend/redis/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPTIME_MAX_S 10000000000 /* what is more is nonsense */

/* The value of a line NAME:VALUE. */
static bool find(const char *reply, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (const char *line = reply; *line != '\0';) {
        size_t n = strcspn(line, "\r\n");
        if (n > length && strncmp(line, name, length) == 0 && line[length] == ':') {
            snprintf(out, size, "%.*s", (int)(n - length - 1), line + length + 1);
            return true;
        }
        line += n;
        line += strspn(line, "\r\n");
    }
    out[0] = '\0';
    return false;
}

static int64_t number(const char *reply, const char *name)
{
    char text[32];
    return find(reply, name, text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

bool info_parse_process(struct info *info, const char *reply)
{
    *info = (struct info){.major = 0};
    if (!find(reply, "redis_version", info->version, sizeof info->version) ||
        !find(reply, "run_id", info->run_id, sizeof info->run_id))
        return false;
    info->major = (int)strtol(info->version, NULL, 10);
    /* The difference of two times in whole seconds: up to one more than it is. */
    int64_t uptime_s = number(reply, "uptime_in_seconds");
    info->uptime_ms = uptime_s > 1 && uptime_s < UPTIME_MAX_S ? (uptime_s - 1) * 1000 : 0;
    return true;
}

bool info_parse(struct info *info, const char *reply)
{
    char text[64], host[256];
    if (!info_parse_process(info, reply) || !find(reply, "role", text, sizeof text))
        return false;
    info->replica = strcmp(text, "master") != 0;
    info->cluster = number(reply, "cluster_enabled") != 0;
    info->loading = number(reply, "loading") != 0;
    info->append_only = number(reply, "aof_enabled") != 0;
    info->replicas = number(reply, "connected_slaves");
    info->memory_limit = (uint64_t)number(reply, "maxmemory");
    find(reply, "maxmemory_policy", info->eviction, sizeof info->eviction);
    find(reply, "master_replid", info->replid, sizeof info->replid);
    if (find(reply, "master_replid2", text, sizeof text))
        info->promoted = strspn(text, "0") < strlen(text);
    if (info->replica && find(reply, "master_host", host, sizeof host))
        snprintf(info->master, sizeof info->master, "%s:%lld", host,
                 (long long)number(reply, "master_port"));
    return true;
}

int info_refuses(const struct info *info, char *why, size_t size)
{
    if (info->cluster) {
        snprintf(why, size,
                 "this is a Redis Cluster, which is not supported yet: use a single "
                 "server, or one with replicas under Sentinel");
        return SIMBA_EUNSUPPORTED;
    }
    if (info->major < INFO_VERSION_MIN) {
        snprintf(why, size, "Redis %s is too old: it takes %d.0 or newer", info->version,
                 INFO_VERSION_MIN);
        return SIMBA_EUNSUPPORTED;
    }
    if (info->loading) {
        snprintf(why, size, "the server is still loading its data");
        return SIMBA_ESTORE;
    }
    return 0;
}

bool info_is_read_only(const struct info *info, char *why, size_t size)
{
    if (info->replica)
        snprintf(why, size,
                 "this server is a read-only replica%s%.160s: to contend, give the address of the "
                 "master, or ask Sentinel with redis+sentinel://",
                 info->master[0] != '\0' ? " of " : "", info->master);
    return info->replica;
}

bool info_evicts(const struct info *info)
{
    return info->memory_limit > 0 && info->eviction[0] != '\0' &&
           strcmp(info->eviction, "noeviction") != 0;
}

bool info_warns(const struct info *info, bool has_restart_grace, size_t n,
                struct simba_finding *out, char *line, size_t size)
{
    *out = (struct simba_finding){.level = SIMBA_LOG_WARN, .text = line};
    if (info_evicts(info) && n-- == 0) {
        out->level = SIMBA_LOG_ERROR;
        snprintf(line, size,
                 "maxmemory-policy is %s: with its memory full the server throws away locks that "
                 "are held. Set it to noeviction, or use a server of its own",
                 info->eviction);
        return true;
    }
    if (!info->append_only && n-- == 0) {
        out->kind = has_restart_grace ? SIMBA_FINDING_OTHER : SIMBA_FINDING_TWO_OWNERS;
        snprintf(line, size, "appendonly is off: a restart ends all tenures, and after one %s",
                 has_restart_grace
                     ? "nothing is granted for the length of a lease (restart_guard)"
                     : "two may own a mutex for the length of a lease, as restart_guard is off");
        return true;
    }
    if (info->replicas > 0 && n-- == 0) {
        snprintf(line, size,
                 "%lld replica%s: a failover may lose a lock that was just granted; check tokens "
                 "where that matters",
                 (long long)info->replicas, info->replicas == 1 ? "" : "s");
        return true;
    }
    return false;
}

const char *info_acl(void)
{
    return "resetkeys resetchannels " INFO_ACL_KEYS " " INFO_ACL_CHANNELS
           " -@all +evalsha +eval +info +ping +select "
           "+client|setname +subscribe +unsubscribe +psubscribe +punsubscribe +publish +get +set "
           "+mget +del +exists +incr +time +pttl +pexpire +pexpireat +zadd +zrem +zrank +zscore "
           "+zcard +zpopmin +scan";
}
