/* config.h: what the URL says. */
#ifndef BACKEND_ZOOKEEPER_CONFIG_H
#define BACKEND_ZOOKEEPER_CONFIG_H

#include "backend/kit/options.h"
#include "backend/zookeeper/path.h"

#define ZOOKEEPER_PORT 2181
#define ZOOKEEPER_HOSTS_MAX 16
#define ZOOKEEPER_SECRET_MAX 4096
#define ZOOKEEPER_AUTH_MAX (ZOOKEEPER_SECRET_MAX + 1024)
#define ZOOKEEPER_TIMEOUT_MIN_MS 100

enum zookeeper_acl { ACL_OPEN, ACL_CREATOR, ACL_CREATOR_READ };

struct zookeeper_config {
    struct {
        char name[OPTIONS_HOST_MAX];
        int port;
    } host[ZOOKEEPER_HOSTS_MAX];
    size_t hosts;
    char chroot[PATH_BASE_MAX];    /* "": none */
    char auth[ZOOKEEPER_AUTH_MAX]; /* user:password; "": none */
    enum zookeeper_acl acl;
    int64_t session_timeout_ms; /* 0: as long as the lease asked for */
    bool disconnect_releases;
};

extern const char *const zk_config_options[];

/* 0, or a code and why. No secret is quoted. */
int zk_config_read(struct zookeeper_config *c, const struct simba_url *url, char *why,
                   size_t why_size);
#endif
