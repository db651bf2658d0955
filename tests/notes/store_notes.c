/* store_notes.c: PUBLISH as stores take it, without the runtime, whose handles would not ask any more:
 * by another id or token, after the end, too late. `store_notes URL [TRIES]`: so often an owner is
 * stopped (SIGSTOP) between the check that it owns and the write, and goes on when its lease is over.
 * The last line is "N passed, N failed". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare.h"

static char names[24];

/* A name that no other run uses. */
static void fresh(char out[SIMBA_MUTEX_MAX + 1], const char *tag, int number)
{
    snprintf(out, SIMBA_MUTEX_MAX + 1, "%s-%s-%d", tag, names, number);
}

/* Whatever a client believes: the store compares id, token and lease itself. */
static void compare(const char *url)
{
    struct bare b;
    struct bare_request r;
    char mutex[SIMBA_MUTEX_MAX + 1];
    uint64_t token = 0, next = 0;
    fresh(mutex, "compares", 0);
    bare_open(&b, url);
    CHECK(bare_publish(&b, mutex, "a", 1, 1, "of nobody") == SIMBA_ELOST);
    CHECK(bare_contend(&b, mutex, "a", 60000, &token) == 0);
    int code = bare_publish(&b, mutex, "a", token, 5, "five");
    if (code == SIMBA_EUNSUPPORTED) {
        printf("this store keeps no notes\n");
        exit(77);
    }
    CHECK(code == 0);
    CHECK(bare_publish(&b, mutex, "b", token, 6, "another id") == SIMBA_ELOST);
    CHECK(bare_publish(&b, mutex, "a", token + 1, 6, "another token") == SIMBA_ELOST);
    CHECK(bare_publish(&b, mutex, "a", token - 1, 6, "an old token") == SIMBA_ELOST);
    CHECK(bare_publish(&b, mutex, "", token, 6, "no id") == SIMBA_ELOST);
    bare_read(&b, mutex, &r);
    CHECK(strcmp(r.note, "five") == 0 && r.note_token == token);
    CHECK(llabs(r.answer.wall_ms - simba_wall_ms(simba_now())) < PATIENCE_MS);
    CHECK(bare_publish(&b, mutex, "a", token, 4, "overtaken") == 0);
    CHECK(bare_publish(&b, mutex, "a", token, 5, "sent twice") == 0);
    bare_read(&b, mutex, &r);
    CHECK(strcmp(r.note, "five") == 0);
    CHECK(bare_publish(&b, mutex, "a", token, 6, "six") == 0);
    r = (struct bare_request){
        .request = {.op = SIMBA_RELEASE, .mutex = mutex, .id = "a", .token = token}};
    CHECK(bare_ask(&b, &r, 60000) == 0);
    CHECK(bare_publish(&b, mutex, "a", token, 7, "released") == SIMBA_ELOST);
    CHECK(bare_contend(&b, mutex, "a", 60000, &next) == 0);
    CHECK(bare_publish(&b, mutex, "a", token, 8, "of an earlier tenure") == SIMBA_ELOST);
    bare_read(&b, mutex, &r);
    CHECK(strcmp(r.note, "six") == 0 && r.note_token == token && strcmp(r.id, "a") == 0);
    CHECK(bare_publish(&b, mutex, "a", next, 1, "serials begin anew") == 0);
    r = (struct bare_request){.request = {.op = SIMBA_EVICT, .mutex = mutex, .id = ""}};
    CHECK(bare_ask(&b, &r, 60000) == 0);
    CHECK(bare_publish(&b, mutex, "a", next, 2, "evicted") == SIMBA_ELOST);
    r = (struct bare_request){
        .request = {.op = SIMBA_EVICT, .mutex = mutex, .id = "", .forced = true}};
    CHECK(bare_ask(&b, &r, 60000) == 0);
    CHECK(bare_publish(&b, mutex, "a", next, 3, "evicted by force") == SIMBA_ELOST);
    bare_read(&b, mutex, &r);
    CHECK(strcmp(r.note, "serials begin anew") == 0 && r.note_token == next && r.id[0] == '\0');
    bare_close(&b);
}

/* ---- stopped between the check and the write ----------------------------------------------- */

#define AT_ONCE 50 /* mutexes of one process, so that many tries wait for one lease */
#define LEASE_MS 600

struct tenures {
    int count;
    uint64_t token[AT_ONCE];
    char name[AT_ONCE][SIMBA_MUTEX_MAX + 1];
};

/* An owner that is stopped when it has found that it owns, and is about to publish. It goes on after
 * the lease has ended. Says how many were written all the same. */
static int publish_late(const char *url, struct tenures *t, int begun)
{
    struct bare b;
    int written = 0;
    bare_open(&b, url);
    for (int i = 0; i < t->count; i++)
        CHECK(bare_contend(&b, t->name[i], "stopped", LEASE_MS, &t->token[i]) == 0);
    CHECK(write(begun, t->token, sizeof t->token) == (ssize_t)sizeof t->token);
    raise(SIGSTOP);
    for (int i = 0; i < t->count; i++) {
        int code = bare_publish(&b, t->name[i], "stopped", t->token[i], 9, "too late");
        if (code != SIMBA_ELOST && code != SIMBA_ESTORE)
            written++;
    }
    return written;
}

/* Every second one is taken over by another before it goes on; the rest are free. */
static int stop_some(const char *url, struct bare *b, struct tenures *t, int number)
{
    char first[16], count[16], begun[16];
    int pipes[2], status;
    struct bare_request r;
    CHECK(pipe(pipes) == 0);
    snprintf(first, sizeof first, "%d", number);
    snprintf(count, sizeof count, "%d", t->count);
    snprintf(begun, sizeof begun, "%d", pipes[1]);
    pid_t child = fork(); /* and exec: what SQLite knows of its locks must not be inherited */
    CHECK(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "store_notes", "--late", url, names, first, count, begun, NULL);
        _exit(126);
    }
    close(pipes[1]);
    bare_open(b, url);
    CHECK(read(pipes[0], t->token, sizeof t->token) == (ssize_t)sizeof t->token);
    close(pipes[0]);
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    CHECK(WIFSTOPPED(status));
    for (int i = 0; i < t->count; i++) {
        uint64_t token = 0;
        int code = SIMBA_EHELD;
        if (i % 2 == 0) {
            while ((code = bare_contend(b, t->name[i], "next", 60000, &token)) == SIMBA_EHELD)
                bare_nap();
            CHECK(code == 0);
            CHECK(token > t->token[i]);
            CHECK(bare_publish(b, t->name[i], "next", token, 1, "of the next") == 0);
            t->token[i] = token;
        } else {
            while (bare_read(b, t->name[i], &r), r.id[0] != '\0')
                bare_nap();
            t->token[i] = 0;
        }
    }
    CHECK(kill(child, SIGCONT) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    for (int i = 0; i < t->count; i++) {
        bare_read(b, t->name[i], &r);
        CHECK(r.note_token == t->token[i]);
        CHECK(strcmp(r.note, t->token[i] != 0 ? "of the next" : "") == 0);
    }
    bare_close(b);
    return WEXITSTATUS(status);
}

static void name_all(struct tenures *t, int first, int count)
{
    t->count = count;
    for (int i = 0; i < count; i++)
        fresh(t->name[i], "stopped", first + i);
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    static struct tenures t;
    if (argc == 7 && strcmp(argv[1], "--late") == 0) {
        snprintf(names, sizeof names, "%s", argv[3]);
        name_all(&t, number(argv[4]), number(argv[5]));
        _exit(publish_late(argv[2], &t, number(argv[6]))); /* the store is not closed in order */
    }
    const char *url = argc > 1 ? argv[1] : "memory:";
    long tries = argc > 2 ? strtol(argv[2], NULL, 10) : 0, done = 0, written = 0;
    struct timespec now;
    setvbuf(stdout, NULL, _IOLBF, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(names, sizeof names, "%lx%06lx", (long)now.tv_sec, now.tv_nsec / 64);
    compare(url);
    for (; done < tries; done += t.count) {
        struct bare b;
        name_all(&t, (int)done, tries - done < AT_ONCE ? (int)(tries - done) : AT_ONCE);
        written += stop_some(url, &b, &t, (int)done);
    }
    if (tries > 0)
        printf("%ld owners were stopped before they published; of their notes %ld were written\n",
               done, written);
    printf("%d passed, %d failed\n", written == 0 ? 1 + (tries > 0) : 1, written != 0);
    return written != 0;
}
