/* config.h: what the URL says. */
#ifndef BACKEND_REDIS_CONFIG_H
#define BACKEND_REDIS_CONFIG_H

#include "backend/kit/options.h"

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379
#define SENTINELS_MAX 16

struct redis_address {
    char host[OPTIONS_HOST_MAX]; /* "": a unix socket */
    int port;
    char path[108];
};

struct config {
    struct redis_address server; /* unless there are sentinels */
    struct redis_address sentinel[SENTINELS_MAX];
    size_t sentinels;
    char master[256];
    char *user, *password, *sentinel_password; /* NULL: none */
    int db;
    bool tls, sentinel_tls, tls_verify;
    char *tls_ca, *tls_cert, *tls_key; /* files; NULL: none */
    char *tls_name; /* in the certificate of the server; NULL: as it is addressed */
    bool restart_grace;
    int64_t restart_grace_ms; /* 0: the lease of who asks */
};

extern const char *const config_options[];

/* 0, or a code and why. On success config_free() it. */
int config_read(struct config *c, const struct simba_url *url, char *why, size_t why_size);
void config_free(struct config *c);
#endif
