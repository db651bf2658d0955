/* faults.c: a redis-server that fails, and what others do to it. Each case has its own. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/peer.h"
#include "contract/suite.h"
#include "server.h"

static struct peer start(const struct server *s, struct simba_handle_options like)
{
    struct peer p = {.url = s->url, .mutex = "m", .like = like};
    peer_start(&p);
    return p;
}

static void contend(struct peer *p)
{
    CHECK(peer_number(p, "start") == 0);
}

static uint64_t own(struct peer *p)
{
    contend(p);
    return peer_await_owner(p);
}

static void keep_ledger(struct peer *p)
{
    peer_send(p, "ledger %s", folder_path("ledger"));
    CHECK(strcmp(peer_reply(p, PATIENCE_MS), "0") == 0);
}

/* An owner that renews often, in a lease that it does not lose, and one who waits for it. */
struct scene {
    struct server server;
    struct peer owner, other;
    uint64_t token;
};

static void begin(struct scene *s, const char *const *options)
{
    folder_make();
    *s = (struct scene){.server = {.name = "a"}};
    for (int i = 0; options != NULL && options[i] != NULL; i++)
        s->server.options[i] = options[i];
    server_start(&s->server);
    s->owner = start(&s->server, lease_steady());
    s->other = start(&s->server, lease_long());
    s->token = own(&s->owner);
    contend(&s->other);
    CHECK(peer_number(&s->other, "wait") == 0);
}

/* The mutex passes on by a message, not by the end of a lease. */
static void hand_over_and_end(struct scene *s)
{
    CHECK((uint64_t)peer_number(&s->owner, "token") == s->token);
    CHECK(peer_number(&s->owner, "stop") == 0);
    CHECK(peer_await_owner(&s->other) > s->token);
    peer_end(&s->owner);
    peer_end(&s->other);
    server_end(&s->server);
    folder_remove();
}

/* ---- connections --------------------------------------------------------------------------- */

static void await_subscribers(struct server *s)
{
    AWAIT(run_number(s, "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS', 'simba:*')") >= 2);
}

static void kill_clients(const char *type)
{
    struct scene s;
    begin(&s, NULL);
    for (int i = 0; i < 5; i++) {
        await_subscribers(&s.server);
        AWAIT(run_number(&s.server, "CLIENT KILL TYPE %s SKIPME yes", type) > 0);
        nap(150); /* some renewals */
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
    }
    await_subscribers(&s.server);
    hand_over_and_end(&s);
}

static void redis_client_kill_normal(void)
{
    kill_clients("normal");
}

static void redis_client_kill_pubsub(void)
{
    kill_clients("pubsub");
}

/* The message goes to nobody, and the poll behind it finds out. */
static void redis_deaf(void)
{
    folder_make();
    struct scene s = {.server = {.name = "a"}};
    server_start(&s.server);
    run(&s.server, "ACL SETUSER default resetchannels");
    s.owner = start(&s.server, lease_long());
    s.other = start(&s.server, lease_long());
    s.token = own(&s.owner);
    contend(&s.other);
    CHECK(peer_number(&s.other, "wait") == 0);
    AWAIT(strstr(peer_ask(&s.other, "log"), "cannot subscribe") != NULL);
    hand_over_and_end(&s);
}

static void redis_client_pause(void)
{
    struct scene s;
    begin(&s, NULL);
    run(&s.server, "CLIENT PAUSE 2000 ALL");
    for (int64_t end = simba_now() + 2500; simba_now() < end; nap(50))
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
    hand_over_and_end(&s);
}

static void redis_server_stopped(void)
{
    struct scene s;
    begin(&s, NULL);
    CHECK(kill(s.server.pid, SIGSTOP) == 0);
    for (int64_t end = simba_now() + 2500; simba_now() < end; nap(50))
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
    CHECK(kill(s.server.pid, SIGCONT) == 0);
    hand_over_and_end(&s);
}

static void redis_script_flush(void)
{
    struct scene s;
    begin(&s, NULL);
    for (int i = 0; i < 20; i++) {
        run(&s.server, "SCRIPT FLUSH");
        nap(30);
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
        CHECK(peer_ask(&s.owner, "read")[0] == '0');
    }
    run(&s.server, "SCRIPT FLUSH");
    hand_over_and_end(&s);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void redis_wrong_password(void)
{
    folder_make();
    struct server s = {.name = "a", .options = {"--requirepass", "right"}};
    char url[256];
    simba_client *c = NULL;
    struct simba_owner o;
    server_launch(&s);
    struct simba_options quick = SIMBA_OPTIONS_INIT;
    const char *const wrong[] = {":wrong-secret@", "somebody:wrong-secret@", ""};
    for (size_t i = 0; i < 3; i++) {
        snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", wrong[i], s.port);
        CHECK_OK(simba_open(url, &quick, &c));
        int code;
        AWAIT((code = simba_read(c, "m", PATIENCE_MS, &o)) == SIMBA_EDENIED);
        CHECK(strstr(simba_error_text(), "password") != NULL);
        CHECK(strstr(simba_error_text(), "wrong-secret") == NULL);
        client_close(c);
    }
    snprintf(url, sizeof url, "redis://:right@127.0.0.1:%d?restart_guard=off", s.port);
    CHECK_OK(simba_open(url, NULL, &c));
    CHECK_OK(simba_read(c, "m", PATIENCE_MS, &o));
    client_close(c);
    FILE *f = fopen(folder_path("password"), "we");
    CHECK(f != NULL && fputs("right\n", f) > 0 && fclose(f) == 0);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?password_file=%s", s.port,
             folder_path("password"));
    CHECK_OK(simba_open(url, NULL, &c));
    CHECK_OK(simba_read(c, "m", PATIENCE_MS, &o));
    client_close(c);
    server_kill(&s);
    folder_remove();
}

/* How often the mask of these bytes is in the memory that this process may write. */
static int in_memory(const unsigned char *masked, size_t size)
{
    char line[512], rights[8];
    static unsigned char page[1 << 16];
    unsigned long from, to;
    int count = 0, mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(mem >= 0 && maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[1] != 'w')
            continue;
        for (size_t step = sizeof page - size + 1; from < to; from += step) {
            ssize_t n =
                pread(mem, page, to - from < sizeof page ? to - from : sizeof page, (off_t)from);
            bool is_page = (unsigned long)(uintptr_t)page < from + sizeof page &&
                           (unsigned long)(uintptr_t)page + sizeof page > from;
            for (ssize_t i = 0; !is_page && i + (ssize_t)size <= n; i++) {
                size_t same = 0;
                while (same < size && (page[i + (ssize_t)same] ^ 0x55) == masked[same])
                    same++;
                count += same == size;
            }
        }
    }
    fclose(maps);
    close(mem);
    return count;
}

/* The password is in memory while the client is open, and not afterwards. */
static void redis_password_wiped(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    suite_skip("a sanitizer keeps copies, and more memory than can be searched");
#endif
    unsigned char masked[64]; /* its end is looked for: free() writes over the beginning */
    char url[256];
    simba_client *c = NULL;
    struct simba_owner o;
    folder_make();
    struct server s = {.name = "a"};
    server_start(&s);
    FILE *f = fopen(folder_path("password"), "we");
    CHECK(f != NULL && setvbuf(f, NULL, _IONBF, 0) == 0);
    for (size_t i = 0; i < sizeof masked; i++) {
        masked[i] = (unsigned char)(('a' + (i * i + i / 8 + (size_t)getpid()) % 26) ^ 0x55);
        fputc(masked[i] ^ 0x55, f);
    }
    CHECK(fclose(f) == 0);
    char command[512];
    snprintf(command, sizeof command, "redis-cli -s %s CONFIG SET requirepass \"$(cat %s)\" >%s",
             s.socket, folder_path("password"), folder_path("said"));
    CHECK(system(command) == 0);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?restart_guard=off&password_file=%s", s.port,
             folder_path("password"));
    CHECK_OK(simba_open(url, NULL, &c));
    CHECK_OK(simba_read(c, "m", PATIENCE_MS, &o));
    CHECK(in_memory(masked + 40, 24) == 1); /* for the next connection */
    client_close(c);
    CHECK(in_memory(masked + 40, 24) == 0);
    server_kill(&s);
    folder_remove();
}

/* What a server says that cannot be used, and that it can be used when that is over. */
static void expect_refusal(const struct server *s, int want, const char *part)
{
    simba_client *c = NULL;
    struct simba_owner o;
    CHECK_OK(simba_open(s->url, NULL, &c));
    CHECK_REFUSED(simba_read(c, "m", PATIENCE_MS, &o), want, part);
    client_close(c);
}

/* Two authorities, and a certificate of the first one for the name localhost, in the test's folder. */
static void make_certificates(void)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && exec 2>/dev/null && for ca in ca other; do openssl req -x509 -newkey ec "
             "-pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$ca -keyout $ca.key -out "
             "$ca.crt; done && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
             "-subj /CN=localhost -keyout key -out csr && echo subjectAltName=DNS:localhost >names "
             "&& openssl x509 -req -in csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
             "-extfile names -out crt",
             folder_path(""));
    if (system(command) != 0)
        suite_skip("openssl cannot make certificates here");
}

/* What verification is for: a certificate of somebody else's, or for another name. */
static void redis_tls(void)
{
    char port[16], url[256];
    simba_client *c = NULL;
    struct simba_owner o;
    folder_make();
    make_certificates();
    struct server s = {.name = "a"};
    snprintf(port, sizeof port, "%d", port_draw());
    const char *const tls[] = {"--tls-port",         port,
                               "--tls-cert-file",    folder_path("crt"),
                               "--tls-key-file",     folder_path("key"),
                               "--tls-ca-cert-file", folder_path("ca.crt"),
                               "--tls-auth-clients", "optional"};
    for (size_t i = 0; i < sizeof tls / sizeof *tls; i++)
        s.options[i] = tls[i];
    server_start(&s);
    const struct {
        const char *host, *option, *file;
        int code;
        const char *name; /* that the certificate is to be for; NULL: the host */
    } cases[] = {
        {"localhost", "tls_ca", "ca.crt", 0, NULL},
        {"127.0.0.1", "tls_ca", "ca.crt", 0, "localhost"}, /* as sentinels name it */
        {"localhost", "tls_ca", "ca.crt", SIMBA_EDENIED, "elsewhere"},
        {"localhost", "tls_ca", "other.crt", SIMBA_EDENIED, NULL}, /* not who we trust */
        {"127.0.0.1", "tls_ca", "ca.crt", SIMBA_EDENIED, NULL},    /* not for this name */
        {"localhost", "ttl", NULL, SIMBA_EDENIED, NULL},           /* not the system's */
        {"127.0.0.1", "tls_verify", "off", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *value = cases[i].file == NULL                    ? "10s"
                            : strcmp(cases[i].option, "tls_ca") == 0 ? folder_path(cases[i].file)
                                                                     : cases[i].file;
        const char *name = cases[i].name;
        snprintf(url, sizeof url, "rediss://%s:%s?%s=%s%s%s", cases[i].host, port, cases[i].option,
                 value, name != NULL ? "&tls_name=" : "", name != NULL ? name : "");
        CHECK_OK(simba_open(url, NULL, &c));
        int code = simba_read(c, "m", PATIENCE_MS, &o);
        if (strcmp(cases[i].host, "127.0.0.1") == 0 && code != 0)
            CHECK(strstr(simba_error_text(),
                         "the server's certificate is for localhost, not for 127.0.0.1") != NULL &&
                  strstr(simba_error_text(), "tls_verify=off") != NULL);
        if (code != cases[i].code ||
            (code != 0 && strstr(simba_error_text(), "certificate") == NULL))
            suite_fail(__FILE__, __LINE__, code != 0 ? simba_error_text() : url);
        client_close(c);
    }
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?connect_timeout=300ms",
             s.port); /* nobody speaks TLS there */
    CHECK_OK(simba_open(url, NULL, &c));
    CHECK(simba_read(c, "m", PATIENCE_MS, &o) != 0);
    client_close(c);
    server_end(&s);
    folder_remove();
}

/* The sentinels have TLS, too: each is to have the name that the URL gives it. They name the master by its
 * address, so tls_name is about that one alone. */
static void redis_tls_sentinel(void)
{
    char port[16], lines[5][160];
    folder_make();
    make_certificates();
    struct server master = {.name = "a"}, at_tls = {.port = port_draw()};
    snprintf(port, sizeof port, "%d", at_tls.port);
    const char *const tls[] = {"--tls-port",         port,
                               "--tls-cert-file",    folder_path("crt"),
                               "--tls-key-file",     folder_path("key"),
                               "--tls-ca-cert-file", folder_path("ca.crt"),
                               "--tls-auth-clients", "no"};
    for (size_t i = 0; i < sizeof tls / sizeof *tls; i++)
        master.options[i] = tls[i];
    server_start(&master);
    struct server sentinel = {.name = "sentinel", .watches = &at_tls};
    int tls_port = port_draw();
    snprintf(lines[0], sizeof lines[0], "tls-port %d", tls_port);
    for (size_t i = 1; i < 5; i++)
        snprintf(lines[i], sizeof lines[i], "%s %s", tls[2 * i] + 2, tls[2 * i + 1]);
    for (size_t i = 0; i < 5; i++)
        sentinel.options[i] = lines[i];
    server_start(&sentinel);
    const struct {
        const char *host;
        int port;
        const char *ca, *options;
        const char *why; /* it is refused; NULL: it is not */
    } cases[] = {
        {"localhost", tls_port, "ca.crt", "tls_name=localhost", NULL},
        {"127.0.0.1", tls_port, "ca.crt", "tls_name=localhost", "localhost, not for 127.0.0.1"},
        {"localhost", tls_port, "ca.crt", "ttl=10s", "localhost, not for 127.0.0.1"},
        {"localhost", tls_port, "other.crt", "tls_name=localhost", "certificate is not accepted"},
        {"127.0.0.1", tls_port, "ca.crt", "tls_verify=off", NULL},
        {"127.0.0.1", sentinel.port, "ca.crt", "tls_name=localhost&sentinel_tls=off", NULL},
        {"localhost", sentinel.port, "ca.crt", "connect_timeout=300ms", "sentinel_tls=off"},
        {"localhost", tls_port, "ca.crt", "tls_name=localhost&sentinel_tls=off", "expect TLS"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[512];
        simba_client *c = NULL;
        struct simba_owner o;
        snprintf(url, sizeof url, "rediss+sentinel://%s:%d/0?master=main&tls_ca=%s&%s",
                 cases[i].host, cases[i].port, folder_path(cases[i].ca), cases[i].options);
        CHECK_OK(simba_open(url, NULL, &c));
        int code = simba_read(c, "m", PATIENCE_MS, &o);
        bool is_right = cases[i].why == NULL
                            ? code == 0
                            : code != 0 && strstr(simba_error_text(), cases[i].why) != NULL;
        if (!is_right)
            suite_fail(__FILE__, __LINE__, code != 0 ? simba_error_text() : url);
        client_close(c);
    }
    server_end(&sentinel);
    server_end(&master);
    folder_remove();
}

/* A name that nobody knows, and a host that does not answer: said, and closed without waiting. */
static void redis_unreachable(void)
{
    static const char *const urls[] = {"redis://does-not-exist.invalid", "redis://127.0.0.1:1",
                                       "redis+unix:///does/not/exist",
                                       "redis+sentinel://127.0.0.1:1,127.0.0.1:2?master=main"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        simba_client *c = NULL;
        struct simba_owner o;
        CHECK_OK(simba_open(urls[i], NULL, &c));
        int code = simba_read(c, "m", 200, &o); /* a resolver may take its time */
        CHECK(code == SIMBA_ESTORE || code == SIMBA_ETIMEOUT);
        int64_t began = simba_now();
        client_close(c);
        CHECK(simba_now() - began < 4500); /* the first answer that a resolver gives up takes 5 s */
    }
}

static void count_entry(void *data, const struct simba_entry *entry)
{
    *(int *)data += strcmp(entry->owner.id, "somebody") == 0;
}

/* Reading needs no right to write. */
static void check_replica(struct server *master, const struct server *replica)
{
    simba_client *c = NULL;
    struct simba_owner o;
    int found = 0;
    run(master, "SET simba:{seen} somebody PX 600000");
    CHECK_OK(simba_open(replica->url, NULL, &c));
    AWAIT(simba_read(c, "seen", PATIENCE_MS, &o) == 0 && strcmp(o.id, "somebody") == 0);
    CHECK_OK(simba_list(c, "", PATIENCE_MS, count_entry, &found));
    CHECK(found == 1);
    CHECK_REFUSED(simba_evict(c, "seen", 0, true, PATIENCE_MS), SIMBA_ESTORE, "read-only replica");
    client_close(c);
}

static void redis_replica(void)
{
    char port[16];
    folder_make();
    struct server master = {.name = "master"};
    server_start(&master);
    snprintf(port, sizeof port, "%d", master.port);
    struct server s = {.name = "replica", .options = {"--replicaof", "127.0.0.1", port}};
    server_start(&s);
    check_replica(&master, &s);
    struct peer p = start(&s, lease_long());
    CHECK(peer_ask(&p, "read")[0] == '0');
    contend(&p);
    AWAIT(strstr(peer_ask(&p, "log"), "replica") != NULL);
    run(&s, "REPLICAOF NO ONE");
    peer_await_owner(&p);
    run(&s, "REPLICAOF 127.0.0.1 %s", port); /* a demotion in the middle of a connection */
    CHECK(peer_number(&p, "stop") == 0);
    AWAIT(strstr(peer_ask(&p, "log"), "read-only replica: READONLY") != NULL);
    peer_end(&p);
    server_end(&s);
    server_end(&master);
    folder_remove();
}

static void redis_cluster(void)
{
    folder_make();
    struct server s = {.name = "a",
                       .options = {"--cluster-enabled", "yes", "--cluster-config-file", "nodes"}};
    server_start(&s);
    expect_refusal(&s, SIMBA_EUNSUPPORTED, "Cluster");
    server_end(&s);
    folder_remove();
}

static void redis_loading(void)
{
    folder_make();
    struct server s = {.name = "a"};
    server_start(&s);
    run(&s, "DEBUG POPULATE 2000");
    run(&s, "SAVE");
    server_kill(&s);
    s.options[0] = "--key-load-delay"; /* us: it would take 20 s */
    s.options[1] = "10000";
    s.options[2] = "--loading-process-events-interval-bytes";
    s.options[3] = "1024";
    server_launch(&s);
    struct peer p = start(&s, lease_long());
    contend(&p);
    AWAIT(strstr(peer_ask(&p, "read"), "loading") != NULL);
    run(&s, "CONFIG SET key-load-delay 0");
    peer_await_owner(&p);
    peer_end(&p);
    server_end(&s);
    folder_remove();
}

/* T36. */
static void redis_eviction_policy(void)
{
    folder_make();
    struct server s = {.name = "a",
                       .options = {"--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"}};
    server_start(&s);
    struct peer p = start(&s, lease_long());
    own(&p);
    AWAIT(strstr(peer_ask(&p, "log"), "maxmemory-policy is volatile-lru") != NULL);
    peer_end(&p);
    server_end(&s);
    folder_remove();
}

/* Who owns goes on, who would like to does not. */
static void redis_memory_full(void)
{
    struct scene s;
    begin(&s, NULL);
    run(&s.server, "CONFIG SET maxmemory 1");
    for (int64_t end = simba_now() + 1000; simba_now() < end; nap(50))
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
    struct peer late = {.url = s.server.url, .mutex = "another", .like = lease_long()};
    peer_start(&late);
    CHECK(peer_number(&late, "acquire 0") == SIMBA_ESTORE);
    AWAIT(strstr(peer_ask(&late, "log"), "out of memory") != NULL);
    CHECK(run_number(&s.server, "EXISTS simba:{another} simba:{another}:fence") == 0);
    run(&s.server, "CONFIG SET maxmemory 0");
    CHECK(peer_number(&late, "acquire 20000") == 0);
    peer_end(&late);
    hand_over_and_end(&s);
}

/* The same after a restart: the server's new epoch is noted all the same, so owners go on renewing. */
static void redis_memory_full_restart(void)
{
    folder_make();
    struct server s = {.name = "a", .options = {"--appendonly", "yes", "--appendfsync", "always"}};
    server_start(&s);
    struct peer p = start(&s, lease_short());
    uint64_t token = own(&p);
    server_kill(&s);
    s.options[4] = "--maxmemory";
    s.options[5] = "1";
    server_start(&s);
    for (int64_t end = simba_now() + 5000; simba_now() < end; nap(50))
        CHECK((uint64_t)peer_number(&p, "token") == token);
    peer_end(&p);
    server_end(&s);
    folder_remove();
}

/* T40: whatever answers there, nobody becomes owner by it. */
static void redis_nonsense(void)
{
    static const char *const nonsense[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "*2147483647\r\n",
        "*-5\r\n",
        "$-7\r\n",
        "$9999999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "+OK\r\n$5\r\nhello\r\n",
        ":1\r\n:1\r\n",
        "\r\n\r\n",
        "*1152921504606846976\r\n"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        int ready[2], port;
        folder_make();
        CHECK(pipe(ready) == 0);
        pid_t liar = fork();
        CHECK(liar >= 0);
        if (liar == 0)
            redis_lie(nonsense[i], ready[1]);
        CHECK(read(ready[0], &port, sizeof port) == sizeof port);
        struct server s = {.port = port};
        snprintf(s.url, sizeof s.url, "redis://127.0.0.1:%d?connect_timeout=200ms", port);
        struct peer p = start(&s, lease_long());
        long long code = SIMBA_ETIMEOUT;
        while (code == SIMBA_ETIMEOUT) /* it has not heard it yet */
            code = peer_number(&p, "acquire 300");
        CHECK(code == SIMBA_ESTORE);
        CHECK(peer_number(&p, "held") == 0);
        peer_end(&p);
        CHECK(kill(liar, SIGKILL) == 0 && waitpid(liar, NULL, 0) == liar);
        close(ready[0]);
        close(ready[1]);
        folder_remove();
    }
}

/* ---- forgetting ---------------------------------------------------------------------------- */

/* T37: what it has granted it remembers. */
static void redis_restart_with_aof(void)
{
    struct scene s;
    begin(&s, (const char *const[]){"--appendonly", "yes", "--appendfsync", "always", NULL});
    for (int i = 0; i < 3; i++) {
        server_kill(&s.server);
        server_start(&s.server);
        nap(300);
        AWAIT(peer_ask(&s.owner, "read")[0] == '0'); /* it is connected, and renews */
        CHECK((uint64_t)peer_number(&s.owner, "token") == s.token);
        CHECK(peer_number(&s.other, "token") == 0);
    }
    AWAIT(peer_ask(&s.owner, "read")[0] == '0');
    hand_over_and_end(&s);
}

/* T37: it has forgotten everything, again and again. Never two owners, and tokens only rise. */
static void redis_restart_empty(void)
{
    int rounds = suite_is_long() ? 50 : 3;
    folder_make();
    struct server s = {.name = "a", .query = "restart_guard=on"};
    struct peer p[3];
    struct ledger *ledger = ledger_map(folder_path("ledger"));
    server_start(&s);
    for (int i = 0; i < 3; i++) {
        p[i] = start(&s, lease(1000, 0));
        contend(&p[i]);
        keep_ledger(&p[i]);
    }
    for (int i = 0, before = 0; i < rounds; i++) {
        AWAIT(atomic_load(&ledger->tenures) > before);
        nap(i % 7 * 20);
        server_kill(&s);
        before = atomic_load(&ledger->tenures);
        server_start(&s);
    }
    bool said = true;
    for (int i = 0; i < 3; i++) {
        said = said && strstr(peer_ask(&p[i], "log"), "restart_guard") != NULL;
        peer_kill(&p[i]);
    }
    ledger_check(ledger);
    CHECK(said);
    server_kill(&s);
    server_start(&s);
    simba_client *c = NULL;
    simba_locker *l = NULL;
    struct simba_handle_options o = lease_long();
    CHECK_OK(simba_open(s.url, NULL, &c));
    CHECK_OK(simba_locker_create(c, "n", &o, &l));
    CHECK_REFUSED(simba_locker_acquire(l, 0), SIMBA_ENOTYET, "restart_guard"); /* by nobody */
    client_close(c);
    server_end(&s);
    folder_remove();
}

/* T37: a replica that missed the grant becomes the master. */
static void redis_stale_replica(void)
{
    char port[16];
    folder_make();
    struct server master = {.name = "master"};
    server_start(&master);
    snprintf(port, sizeof port, "%d", master.port);
    struct server replica = {.name = "replica", .options = {"--replicaof", "127.0.0.1", port}};
    server_start(&replica);
    AWAIT(strstr(run(&replica, "INFO replication")->str, "master_link_status:up") != NULL);
    AWAIT(run_number(&replica, "EVAL %s 0",
                     "return tonumber(string.match(redis.call('INFO', 'server'), "
                     "'uptime_in_seconds:(%d+)'))") >= 8); /* only the promotion is young */
    CHECK(symlink(master.socket, folder_path("current")) == 0);
    struct server either = {.port = 1};
    snprintf(either.url, sizeof either.url, "redis+unix://%s?restart_guard=6s",
             folder_path("current"));
    struct simba_handle_options o = lease(2000, 1000);
    o.renew_ms = 1500; /* until then nobody tells it */
    struct peer a = start(&either, o), b = start(&either, o);
    CHECK(peer_number(&a, "acquire 20000") == 0 && peer_number(&a, "release") == 0);
    AWAIT(run_number(&replica, "EXISTS simba:{m}") == 0 &&
          run_number(&replica, "GET simba:{m}:fence") > 0);
    run(&replica, "REPLICAOF 127.0.0.1 1"); /* it hears no more of its master */
    contend(&a);
    keep_ledger(&a);
    uint64_t token = peer_await_owner(&a);
    contend(&b);
    keep_ledger(&b);
    CHECK(peer_number(&b, "wait") == 0);
    server_kill(&master);
    run(&replica, "REPLICAOF NO ONE");
    CHECK(unlink(folder_path("current")) == 0);
    CHECK(symlink(replica.socket, folder_path("current")) == 0);
    AWAIT(peer_number(&b, "token") != 0 || (uint64_t)peer_number(&a, "token") > token);
    bool said = strstr(peer_ask(&a, "log"), "become the master") != NULL ||
                strstr(peer_ask(&b, "log"), "become the master") != NULL;
    nap(50); /* for the ledgers */
    peer_kill(&a);
    peer_kill(&b);
    ledger_check(ledger_map(folder_path("ledger")));
    CHECK(said);
    server_end(&replica);
    folder_remove();
}

/* The operator's mistake: the owner learns of it with its next renewal, and no token comes twice. */
static void forget(const char *command)
{
    folder_make();
    struct server s = {.name = "a"};
    server_start(&s);
    struct peer p = start(&s, lease_steady());
    uint64_t token = own(&p);
    const redisReply *r =
        strcmp(command, "flush") == 0 ? run(&s, "FLUSHALL") : run(&s, "DEL simba:{m}");
    CHECK(r->type != REDIS_REPLY_ERROR);
    AWAIT((uint64_t)peer_number(&p, "token") > token);
    AWAIT(strstr(peer_ask(&p, "log"), "the store has ended the tenure") != NULL);
    peer_end(&p);
    server_end(&s);
    folder_remove();
}

static void redis_flushall(void)
{
    forget("flush");
}

static void redis_del(void)
{
    forget("del");
}

static void *kill_soon(void *arg)
{
    struct server *s = arg;
    nap(1 + s->pid % 5);
    server_kill(s);
    return NULL;
}

/* A caller that writes to a connection that has just broken, which costs it no more than an
 * error. The moment is seldom met: about once in ten rounds, and not always on the caller's
 * thread. */
static void redis_broken_pipe(void)
{
    folder_make();
    struct server server = {.name = "a"};
    struct simba_handle_options o = lease_tiny();
    simba_client *s = NULL;
    simba_locker *l = NULL;
    char url[256];
    signal(SIGPIPE, SIG_DFL);
    for (int round = 0; round < 10; round++) {
        server_start(&server);
        if (round == 0) {
            snprintf(url, sizeof url, "redis+unix://%s?restart_guard=off", server.socket);
            CHECK_OK(simba_open(url, NULL, &s));
            CHECK_OK(simba_locker_create(s, fresh("pipe"), &o, &l));
        }
        AWAIT(simba_locker_acquire(l, PATIENCE_MS) == 0);
        pthread_t killer = spawn(kill_soon, &server);
        while (simba_locker_release(l) == 0 && simba_locker_acquire(l, 0) == 0) {
        }
        join(killer);
    }
    client_close(s);
    folder_remove();
}

/* T94: the same without a thread of ours, where all is written on the caller's. */
static void redis_broken_pipe_polled(void)
{
    folder_make();
    struct server server = {.name = "a"};
    struct simba_options options = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = lease_long();
    simba_client *s = NULL;
    simba_locker *l = NULL;
    char url[256];
    options.flags = SIMBA_NO_THREAD;
    signal(SIGPIPE, SIG_DFL);
    server_start(&server);
    snprintf(url, sizeof url, "redis+unix://%s?restart_guard=off", server.socket);
    CHECK_OK(simba_open(url, &options, &s));
    CHECK_OK(simba_locker_create(s, "pipe", &o, &l));
    for (int round = 0; round < 3; round++) {
        AWAIT(simba_locker_acquire(l, PATIENCE_MS) == 0);
        server_kill(&server);
        simba_locker_release(l); /* it has not read yet that the server is gone */
        CHECK_OK(simba_poll(s));
        sigset_t now, left;
        CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && !sigismember(&now, SIGPIPE));
        CHECK(sigpending(&left) == 0 && !sigismember(&left, SIGPIPE));
        server_start(&server);
    }
    client_close(s);
    server_kill(&server);
    folder_remove();
}

const struct test redis_fault_tests[] = {
    {"redis_broken_pipe_polled", redis_broken_pipe_polled, REDIS_ONLY, 0},
    {"redis_broken_pipe", redis_broken_pipe, REDIS_ONLY, 0},
    {"redis_client_kill_normal", redis_client_kill_normal, REDIS_ONLY, 0},
    {"redis_client_kill_pubsub", redis_client_kill_pubsub, REDIS_ONLY, 0},
    {"redis_deaf", redis_deaf, REDIS_ONLY, 0},
    {"redis_client_pause", redis_client_pause, REDIS_ONLY, 0},
    {"redis_server_stopped", redis_server_stopped, REDIS_ONLY, 0},
    {"redis_script_flush", redis_script_flush, REDIS_ONLY, 0},
    {"redis_wrong_password", redis_wrong_password, REDIS_ONLY, 0},
    {"redis_password_wiped", redis_password_wiped, REDIS_ONLY, 0},
    {"redis_tls", redis_tls, REDIS_ONLY, 0},
    {"redis_tls_sentinel", redis_tls_sentinel, REDIS_ONLY, 0},
    {"redis_unreachable", redis_unreachable, REDIS_ONLY, 0},
    {"redis_replica", redis_replica, REDIS_ONLY, 0},
    {"redis_cluster", redis_cluster, REDIS_ONLY, 0},
    {"redis_loading", redis_loading, REDIS_ONLY, 0},
    {"redis_eviction_policy", redis_eviction_policy, REDIS_ONLY, 0},
    {"redis_memory_full_restart", redis_memory_full_restart, REDIS_ONLY, 0},
    {"redis_memory_full", redis_memory_full, REDIS_ONLY, 0},
    {"redis_nonsense", redis_nonsense, REDIS_ONLY, 0},
    {"redis_restart_with_aof", redis_restart_with_aof, REDIS_ONLY, 0},
    {"redis_restart_empty", redis_restart_empty, REDIS_ONLY, 300},
    {"redis_stale_replica", redis_stale_replica, REDIS_ONLY, 0},
    {"redis_flushall", redis_flushall, REDIS_ONLY, 0},
    {"redis_del", redis_del, REDIS_ONLY, 0},
    {NULL, NULL, ANY_STORE, 0},
};
