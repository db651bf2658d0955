/* demo.c: three processes, one mutex, told as a story.
 *
 * The parent starts three contenders as processes of their own, with the embedded store in a fresh
 * folder. A leader is elected, is killed with -9, hangs, hands over; the parent tells what it hears
 * from them, and exits with 1 if anything was not as promised. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <simba.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUTEX "night-report"
#define TTL_MS 2000
#define TRANSITION_MS 2000
#define PATIENCE_MS 15000
#define ACTORS 3

/* ---- a contender, in its own process ------------------------------------------------------- */

static volatile sig_atomic_t should_stop;

static void on_term(int signal)
{
    (void)signal;
    should_stop = 1;
}

/* What it says goes to the parent, a line each: a word and a token. */
static void say(const char *word, uint64_t token)
{
    char line[64];
    int n = snprintf(line, sizeof line, "%s %llu\n", word, (unsigned long long)token);
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        _exit(1);
}

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    say("leads", state->after.token);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    say(state->reason == SIMBA_RELEASED ? "ends" : "lost", state->before.token);
}

/* The first look after a long sleep is the one that matters: it must not say yes. */
static void watch_sleep(const simba_contender *c, uint64_t *token)
{
    int64_t before = simba_now();
    usleep(5000);
    if (simba_now() - before > 1000 && *token != 0)
        say(simba_contender_owns(c, *token) ? "believes" : "wakes", *token);
    *token = simba_contender_token(c);
}

static int contend(const char *url)
{
    simba_client *client = NULL;
    simba_contender *c = NULL;
    uint64_t token = 0;
    struct simba_handle_options options = SIMBA_HANDLE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.transition_ms = TRANSITION_MS;
    options.on_acquired = on_acquired;
    options.on_released = on_released;
    signal(SIGTERM, on_term);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches us all; the parent ends us */
    if (simba_open(url, NULL, &client) != 0 ||
        simba_contender_create(client, MUTEX, &options, &c) != 0 || simba_contender_start(c) != 0) {
        fprintf(stderr, "%s\n", simba_error_text());
        return 1;
    }
    while (!should_stop)
        watch_sleep(c, &token);
    return simba_close(client, PATIENCE_MS) != 0;
}

/* ---- the parent ---------------------------------------------------------------------------- */

struct actor {
    const char *name, *colour;
    pid_t pid;
    int from;
    char rest[256]; /* heard, but not a whole line yet */
    size_t length;
};

static struct actor actors[ACTORS] = {
    {.name = "ada", .colour = "\033[36m"},
    {.name = "bob", .colour = "\033[33m"},
    {.name = "cy", .colour = "\033[35m"},
};
static char folder[] = "/tmp/simba-demo-XXXXXX", url[64];
static int64_t began;
static bool is_coloured;
static struct actor *leader; /* whoever said so last */
static uint64_t last_token;
static int tenures, broken;
static bool has_woken;

static void tell(const struct actor *who, const char *text, uint64_t token)
{
    printf("%6.2f  %s%-4s %s", (double)(simba_now() - began) / 1000,
           is_coloured && who != NULL ? who->colour : "", who != NULL ? who->name : "", text);
    if (token != 0)
        printf(" %llu", (unsigned long long)token);
    printf("%s\n", is_coloured && who != NULL ? "\033[0m" : "");
}

static void headline(const char *text)
{
    printf("\n%s%s%s\n", is_coloured ? "\033[1m" : "", text, is_coloured ? "\033[0m" : "");
}

static void promise(bool kept, const char *text)
{
    if (!kept) {
        broken++;
        printf("BROKEN PROMISE: %s\n", text);
    }
}

static void hear(struct actor *a, char *line)
{
    char *space = strchr(line, ' ');
    uint64_t token = space != NULL ? strtoull(space, NULL, 10) : 0;
    if (strncmp(line, "leads", 5) == 0) {
        tell(a, "leads now, token", token);
        promise(token > last_token, "every tenure has a greater token");
        promise(leader == NULL, "the last leader has ended before the next begins");
        leader = a;
        last_token = token;
        tenures++;
    } else if (strncmp(line, "ends", 4) == 0) {
        tell(a, "has ended, token", token);
        leader = leader == a ? NULL : leader;
    } else if (strncmp(line, "lost", 4) == 0) {
        tell(a, "was told that it lost token", token);
    } else {
        tell(a, "wakes: \"am I still the leader?\" no, not with token", token);
        promise(strncmp(line, "wakes", 5) == 0, "who wakes late does not believe that it leads");
        has_woken = true;
    }
}

static void listen_to(struct actor *a)
{
    ssize_t n = read(a->from, a->rest + a->length, sizeof a->rest - 1 - a->length);
    if (n <= 0) {
        close(a->from);
        a->from = -1;
        return;
    }
    a->length += (size_t)n;
    a->rest[a->length] = '\0';
    for (char *end; (end = strchr(a->rest, '\n')) != NULL;) {
        *end = '\0';
        hear(a, a->rest);
        a->length -= (size_t)(end + 1 - a->rest);
        memmove(a->rest, end + 1, a->length + 1);
    }
}

/* Listens for so long, or until another leads (who != NULL). */
static void listen_all(int64_t ms, const struct actor *other_than)
{
    int64_t until = simba_now() + ms;
    while (simba_now() < until && !(other_than != NULL && leader != NULL && leader != other_than)) {
        struct pollfd from[ACTORS];
        for (int i = 0; i < ACTORS; i++)
            from[i] = (struct pollfd){.fd = actors[i].from, .events = POLLIN};
        if (poll(from, ACTORS, 20) <= 0)
            continue;
        for (int i = 0; i < ACTORS; i++) {
            if (from[i].revents != 0)
                listen_to(&actors[i]);
        }
    }
}

static void start(struct actor *a, const char *self)
{
    int pipes[2];
    if (pipe(pipes) != 0 || (a->pid = fork()) < 0) {
        perror("demo");
        exit(1);
    }
    if (a->pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execl(self, self, "--contender", url, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    a->from = pipes[0];
    a->length = 0;
    tell(a, "starts, a process of its own", 0);
}

static void end(struct actor *a, int signal)
{
    kill(a->pid, signal);
    waitpid(a->pid, NULL, 0);
    listen_to(a);
    a->pid = 0;
}

static void clean_up(void);

/* Without a leader there is no story to go on with. */
static struct actor *expect_other(const struct actor *a, const char *what)
{
    listen_all(PATIENCE_MS, a);
    promise(leader != NULL && leader != a, what);
    if (leader == NULL) {
        clean_up();
        exit(1);
    }
    return leader;
}

static void play(const char *self)
{
    headline("An election: three processes, an embedded store, no server");
    for (int i = 0; i < ACTORS; i++)
        start(&actors[i], self);
    static struct actor nobody;
    struct actor *a = expect_other(&nobody, "somebody leads");
    listen_all(500, NULL);

    headline("kill -9: the store sees that nobody is left, and does not wait for the lease");
    int64_t killed = simba_now();
    tell(NULL, "kill -9 of the leader", 0);
    end(a, SIGKILL);
    leader = NULL;
    struct actor *b = expect_other(a, "another takes over");
    int64_t took = simba_now() - killed;
    start(a, self);
    listen_all(500, NULL);

    headline("The leader hangs: it is fenced, and knows it the instant it wakes");
    tell(NULL, "the leader is stopped (SIGSTOP), for longer than its lease", 0);
    kill(b->pid, SIGSTOP);
    leader = NULL;
    struct actor *c = expect_other(b, "another leads when the lease has ended");
    tell(NULL, "the old leader goes on (SIGCONT)", 0);
    kill(b->pid, SIGCONT);
    for (int i = 0; i < 100 && !has_woken; i++)
        listen_all(50, NULL);
    promise(has_woken, "the one that slept says what it believes");

    headline("A hand-over: the next one begins when the last one has ended");
    end(c, SIGTERM);
    expect_other(c, "another leads");
    listen_all(300, NULL);
    printf(
        "\n%s\n  %d tenures, tokens rose with each; after kill -9 another led in %lld ms, with a "
        "lease of %d ms\n",
        broken == 0 ? "All promises kept" : "PROMISES BROKEN", tenures, (long long)took,
        TTL_MS + TRANSITION_MS);
}

static void clean_up(void)
{
    static const char *const files[] = {"", "-wal", "-shm", "-live", "-bell"};
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].pid > 0) {
            kill(actors[i].pid, SIGKILL);
            waitpid(actors[i].pid, NULL, 0);
        }
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[80];
        snprintf(path, sizeof path, "%s/demo.db%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--contender") == 0)
        return contend(argv[2]);
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(url, sizeof url, "sqlite:%s/demo.db", folder);
    setvbuf(stdout, NULL, _IOLBF, 0);
    is_coloured = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    began = simba_now();
    play("/proc/self/exe");
    clean_up();
    return broken > 0;
}
