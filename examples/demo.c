/* demo.c: three contenders, one mutex, told as a story.
 *
 * Each contender has a client of its own and so stands for a process of its own; the store is in
 * memory. A leader is elected, hands over, loses the store and fences itself, and is replaced. All
 * the while a thread looks for two owners at once. Exit 1 if anything was not as promised. */
#include <pthread.h>
#include <simba.h>
#include <simba/backend.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define URL "memory:demo"
#define MUTEX "night-report"
#define TTL_MS 2000
#define TRANSITION_MS 1000
#define PATIENCE_MS 10000
#define ACTORS 3

struct actor {
    const char *name, *colour;
    simba *client;
    simba_contender *c;
    atomic_bool is_leading; /* between the beginning of on_acquired and the end of on_released */
};

static struct actor actors[ACTORS] = {
    {.name = "ada", .colour = "\033[36m"},
    {.name = "bob", .colour = "\033[33m"},
    {.name = "cy", .colour = "\033[35m"},
};

static int64_t began;
static bool is_coloured;
static atomic_int broken; /* promises */
static atomic_int tenures;
static atomic_int in_office; /* actors that is_leading */
static _Atomic uint64_t last_token;
static atomic_bool is_over;
static atomic_long samples;

/* ---- telling ------------------------------------------------------------------------------- */

static void nap(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* One call is one line; stdio keeps lines of several threads apart. */
static void say(const struct actor *who, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bool paint = is_coloured && who != NULL;
    printf("%6.2f  %s%-5s %s%s\n", (double)(simba_now() - began) / 1000, paint ? who->colour : "",
           who != NULL ? who->name : "", text, paint ? "\033[0m" : "");
}

static void headline(const char *text)
{
    printf("\n%s%s%s\n", is_coloured ? "\033[1m" : "", text, is_coloured ? "\033[0m" : "");
}

static void promise(bool kept, const char *text)
{
    if (kept)
        return;
    atomic_fetch_add(&broken, 1);
    say(NULL, "BROKEN PROMISE: %s", text);
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "demo: %s: %s\n", what, simba_error_text());
    exit(1);
}

/* ---- the contenders ------------------------------------------------------------------------ */

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    struct actor *me = data;
    (void)mutex;
    uint64_t token = state->after.token;
    say(me, "on_acquired            leads now, token %llu", (unsigned long long)token);
    promise(atomic_exchange(&last_token, token) < token, "tokens rise");
    promise(atomic_fetch_add(&in_office, 1) == 0, "the last one had finished");
    atomic_store(&me->is_leading, true);
    atomic_fetch_add(&tenures, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    struct actor *me = data;
    (void)mutex;
    bool is_lost = state->reason == SIMBA_EXPIRED;
    promise(!simba_contender_is_owner(me->c), "no owner in on_released");
    if (is_lost)
        say(me, "is_owner is false      by the clock alone");
    say(me, "on_released begins     %s", is_lost ? "the lease could not be renewed" : "tidies up");
    nap(is_lost ? 0 : 500);
    say(me, "on_released returns");
    atomic_store(&me->is_leading, false);
    atomic_fetch_sub(&in_office, 1);
}

static void enter(struct actor *a)
{
    struct simba_options client = SIMBA_OPTIONS_INIT;
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    client.ttl_ms = TTL_MS;
    client.transition_ms = TRANSITION_MS;
    o.id = a->name; /* ids must be unique; here they are */
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    o.data = a;
    if (simba_open(URL, &client, &a->client) != 0 ||
        simba_contender_create(a->client, MUTEX, &o, &a->c) != 0)
        give_up(a->name);
}

static void start(struct actor *a)
{
    if (simba_contender_start(a->c) != 0 ||
        simba_contender_wait(a->c, SIMBA_RUNNING, PATIENCE_MS) != 0)
        give_up(a->name);
    nap(50);
    if (!simba_contender_is_owner(a->c))
        say(a, "start                  waits");
}

/* ---- the referee --------------------------------------------------------------------------- */

/* "A owns tenure T, B is owner, A still owns T" would be two owners at once. */
static void *referee(void *arg)
{
    (void)arg;
    for (const struct timespec pause = {.tv_nsec = 20000}; !atomic_load(&is_over);
         nanosleep(&pause, NULL)) {
        for (int i = 0; i < ACTORS; i++) {
            uint64_t token = simba_contender_token(actors[i].c);
            for (int j = 0; j < ACTORS; j++) {
                bool is_second = i != j && token != 0 && simba_contender_is_owner(actors[j].c);
                promise(!is_second || !simba_contender_owns(actors[i].c, token), "one owner");
            }
        }
        atomic_fetch_add(&samples, 1);
    }
    return NULL;
}

/* ---- the story ----------------------------------------------------------------------------- */

/* The one who leads, other than `except`; waits for it. */
static struct actor *leader(const struct actor *except)
{
    for (int64_t end = simba_now() + PATIENCE_MS; simba_now() < end; nap(5))
        for (int i = 0; i < ACTORS; i++)
            if (&actors[i] != except && atomic_load(&actors[i].is_leading) &&
                simba_contender_is_owner(actors[i].c))
                return &actors[i];
    say(NULL, "nobody leads after %d s", PATIENCE_MS / 1000);
    exit(1);
}

static void election(void)
{
    headline("An election");
    say(NULL, "three contenders of the mutex \"%s\", leases of %d + %d s", MUTEX, TTL_MS / 1000,
        TRANSITION_MS / 1000);
    for (int i = 0; i < ACTORS; i++)
        start(&actors[i]);
    leader(NULL);
    nap(1500);
}

static void hand_over(void)
{
    headline("A hand-over: the next one begins when the last one has finished");
    struct actor *old = leader(NULL);
    say(old, "stop");
    if (simba_contender_stop(old->c) != 0)
        give_up("stop");
    leader(old);
    if (simba_contender_wait(old->c, SIMBA_INITIAL, PATIENCE_MS) != 0)
        give_up("wait");
    start(old);
    nap(1000);
}

static void fault(bool hangs)
{
    struct simba_memory_faults f = SIMBA_MEMORY_FAULTS_INIT;
    f.hang = hangs;
    if (simba_memory_set_faults(URL, &f) != 0)
        give_up("fault");
}

static void self_fencing(void)
{
    headline("The store hangs: the leader fences itself before anybody else can lead");
    struct actor *old = leader(NULL);
    uint64_t token = simba_contender_token(old->c);
    fault(true);
    say(NULL, "the store stops answering; nobody tells the leader anything");
    while (simba_contender_owns(old->c, token))
        nap(1);
    for (int64_t end = simba_now() + PATIENCE_MS; atomic_load(&old->is_leading); nap(1)) {
        if (simba_now() > end) {
            promise(false, "on_released comes although the store hangs");
            break;
        }
    }
    nap(500);
    say(NULL, "the store is back");
    fault(false);
    promise(simba_contender_token(leader(NULL)->c) > token, "a new tenure has a higher token");
    nap(1000);
}

static void conclusion(void)
{
    headline(atomic_load(&broken) == 0 ? "All promises kept" : "PROMISES WERE BROKEN");
    printf("  %d tenures, tokens rose with each, the last is %llu\n", atomic_load(&tenures),
           (unsigned long long)atomic_load(&last_token));
    printf("  never two owners in %ld looks, %d broken promises\n", atomic_load(&samples),
           atomic_load(&broken));
}

int main(void)
{
    const char *plain = getenv("NO_COLOR");
    is_coloured = isatty(STDOUT_FILENO) && (plain == NULL || *plain == '\0');
    setvbuf(stdout, NULL, _IOLBF, 0);
    began = simba_now();
    for (int i = 0; i < ACTORS; i++)
        enter(&actors[i]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, referee, NULL) != 0)
        give_up("referee");
    election();
    hand_over();
    self_fencing();
    headline("The end: each client hands over and closes");
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < ACTORS; i++)
        if (simba_close(actors[i].client, PATIENCE_MS) != 0)
            give_up(actors[i].name);
    conclusion();
    return atomic_load(&broken) == 0 ? 0 : 1;
}
