/* backend.c: a store of your own, in one file: a folder with a file per mutex.
 *
 *     cc -shared -fPIC backend.c -o simba-dir.so $(pkg-config --cflags --libs simba libuv)
 *     SIMBA_MODULE_PATH=$PWD elect dir:/var/lib/app/locks
 *
 * It is real: any number of processes of one machine can use it, and it passes the contract
 * suite. It is short, because it does everything on the loop's thread. That is right for what
 * takes microseconds; a store that may have to wait (for a server, for a slow disk) does it with
 * libuv, or on a thread of its own.
 *
 * The rules of simba/backend.h, and how they are kept here:
 *   one operation at a time   flock() on the folder's file ".lock"
 *   all or nothing            a new file is written and renamed over the old one
 *   time                      boot time, which all processes of the machine share; of the time before a
 *                             reboot nothing counts, because nobody from then is alive
 *   notes                     a file "n.NAME" beside that of the mutex, under the same lock
 *   tokens only rise          a file stays when its mutex is free; a new one begins at the clock
 *   pushes                    inotify tells that a file has changed; we look whether the owner has. They
 *                             are optional: dir:PATH?hints=off goes without, and is as right, but slow */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <simba/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define NAME_MAX_BYTES (3 * SIMBA_MUTEX_MAX + 3)

/* What a note's file says: after a line with numbers, the text. Ages are those of the wall clock, so that
 * they also make sense after a reboot. */
struct note {
    uint64_t token, serial;
    int64_t written; /* ms since 1970 */
    char text[SIMBA_NOTE_MAX + 1];
};

/* What a file says. */
struct record {
    char boot[40], id[SIMBA_ID_MAX + 1]; /* id "": nobody */
    uint64_t token;
    int64_t acquired, until; /* boot time, ms */
    bool evicted;
};

struct dir {
    struct simba_host *host;
    int folder, lock;
    char boot[40];
    uv_fs_event_t events;
};

/* ---- files --------------------------------------------------------------------------------- */

/* The name of a mutex's file: "m." and all that is not a letter or a digit as %XX. */
static void encode(char out[static NAME_MAX_BYTES], const char *mutex)
{
    out += sprintf(out, "m.");
    for (; *mutex != '\0'; mutex++) {
        unsigned char c = (unsigned char)*mutex;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        out += sprintf(out, plain ? "%c" : "%%%02X", c);
    }
}

static bool decode(char out[static SIMBA_MUTEX_MAX + 1], const char *name)
{
    size_t n = 0;
    unsigned c;
    if (strncmp(name, "m.", 2) != 0)
        return false;
    for (name += 2; *name != '\0' && n < SIMBA_MUTEX_MAX; n++) {
        if (*name != '%')
            out[n] = *name++;
        else if (sscanf(name, "%%%2X", &c) == 1)
            out[n] = (char)c, name += 3;
        else
            return false;
    }
    out[n] = '\0';
    return *name == '\0' && n > 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All zero if there is no such file; -1: it cannot be read. */
static int read_record(const struct dir *d, const char *name, struct record *r)
{
    char text[512] = "";
    *r = (struct record){.token = 0};
    int fd = openat(d->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    int evicted = 0;
    if (n < 0 || sscanf(text, "%39s %" SCNu64 " %" SCNd64 " %" SCNd64 " %d %128[^\n]", r->boot,
                        &r->token, &r->acquired, &r->until, &evicted, r->id) < 5)
        return -1;
    r->evicted = evicted != 0;
    return 0;
}

static int write_file(const struct dir *d, const char *name, const char *text, int n)
{
    int fd = openat(d->folder, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool written = write(fd, text, (size_t)n) == n;
    if (close(fd) != 0 || !written)
        return -1;
    return renameat(d->folder, ".new", d->folder, name);
}

static int write_record(const struct dir *d, const char *name, const struct record *r)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s %" PRIu64 " %" PRId64 " %" PRId64 " %d %s\n", r->boot,
                     r->token, r->acquired, r->until, r->evicted, r->id);
    return write_file(d, name, text, n);
}

/* False: there is none, or it cannot be read. The name of its file is the mutex's with an n. */
static bool read_note(const struct dir *d, const char *name, struct note *out)
{
    char text[SIMBA_NOTE_MAX + 128] = "", file[NAME_MAX_BYTES];
    int at = 0;
    snprintf(file, sizeof file, "n%s", name + 1);
    int fd = openat(d->folder, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0 || sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNd64 "%n", &out->token, &out->serial,
                        &out->written, &at) < 3)
        return false;
    snprintf(out->text, sizeof out->text, "%s", text + at + 1);
    return true;
}

static int64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One that a later note of the same tenure has overtaken is not written. */
static int publish(const struct dir *d, const char *name, const struct simba_request *q)
{
    char text[SIMBA_NOTE_MAX + 128], file[NAME_MAX_BYTES];
    struct note before;
    if (read_note(d, name, &before) && before.token == q->token && before.serial >= q->serial)
        return 0;
    int n = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRId64 "\n%s", q->token,
                     q->serial, wall_ms(), q->note);
    snprintf(file, sizeof file, "n%s", name + 1);
    return write_file(d, file, text, n);
}

/* NULL: there is none, or nobody wants to know. */
static const struct simba_noted *noted(const struct dir *d, const char *name,
                                       const struct simba_request *q, struct note *note,
                                       struct simba_noted *out)
{
    if (!q->with_note || !read_note(d, name, note))
        return NULL;
    int64_t age = wall_ms() - note->written;
    *out = (struct simba_noted){note->text, note->token, age > 0 ? age : 0};
    return out;
}

/* ---- what the requests mean ---------------------------------------------------------------- */

static bool is_held(const struct dir *d, const struct record *r, int64_t now)
{
    return r->id[0] != '\0' && r->until > now && strcmp(r->boot, d->boot) == 0;
}

static bool is_tenure(const struct record *r, const struct simba_request *q)
{
    return r->token == q->token && strcmp(r->id, q->id) == 0;
}

static void take(const struct dir *d, struct record *r, const struct simba_request *q, int64_t now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t clock_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    r->token = r->token + 1 > clock_us ? r->token + 1 : clock_us;
    snprintf(r->id, sizeof r->id, "%s", q->id);
    snprintf(r->boot, sizeof r->boot, "%s", d->boot);
    r->acquired = now;
    r->until = now + q->ttl_ms + q->transition_ms;
    r->evicted = false;
}

static void free_it(struct record *r)
{
    r->id[0] = '\0';
    r->until = 0;
}

/* Changes the record as the request says; true: it has to be written. */
static bool apply(const struct dir *d, struct record *r, const struct simba_request *q, int64_t now,
                  struct simba_answer *answer)
{
    bool held = is_held(d, r, now);
    switch (q->op) {
    case SIMBA_CONTEND:
        if (held)
            return false;
        take(d, r, q, now);
        answer->granted = true;
        return true;
    case SIMBA_RENEW:
        if (!held || !is_tenure(r, q) || r->evicted)
            break;
        r->until = now + q->ttl_ms + q->transition_ms;
        return true;
    case SIMBA_PUBLISH: /* do_request writes it */
        if (!held || !is_tenure(r, q) || r->evicted)
            break;
        return false;
    case SIMBA_RELEASE:
        if (!is_tenure(r, q))
            break;
        free_it(r);
        return true;
    case SIMBA_EVICT:
        if (!held || (q->token != 0 && q->token != r->token) ||
            (q->id[0] != '\0' && strcmp(q->id, r->id) != 0))
            break;
        r->evicted = true;
        if (q->forced)
            free_it(r);
        return true;
    default: /* READ; and LEAVE, which is for stores with a queue */
        return false;
    }
    answer->code = SIMBA_ELOST;
    return false;
}

static void fail(struct simba_answer *answer, char *text, size_t size, const char *what)
{
    snprintf(text, size, "%s: %s", what, strerror(errno));
    *answer = (struct simba_answer){.code = SIMBA_ESTORE, .age_ms = -1, .text = text};
}

static void do_request(struct dir *d, struct simba_request *q)
{
    char name[NAME_MAX_BYTES], text[128];
    struct record r;
    struct note note;
    struct simba_noted shown;
    struct simba_answer answer = {.age_ms = -1, .more = q->next != NULL};
    int64_t now = now_ms();
    encode(name, q->mutex);
    if (read_record(d, name, &r) != 0)
        fail(&answer, text, sizeof text, "cannot read the mutex's file");
    else if (apply(d, &r, q, now, &answer) && write_record(d, name, &r) != 0)
        fail(&answer, text, sizeof text, "cannot write the mutex's file");
    else if (q->op == SIMBA_PUBLISH && answer.code == 0 && publish(d, name, q) != 0)
        fail(&answer, text, sizeof text, "cannot write the note's file");
    else if (is_held(d, &r, now)) {
        answer.id = r.id;
        answer.token = r.token;
        answer.evicted = r.evicted;
        answer.left_ms = r.until - now;
        answer.age_ms = now - r.acquired;
    }
    if (answer.code == 0) {
        answer.note = noted(d, name, q, &note, &shown);
        answer.wall_ms = wall_ms();
    }
    d->host->answer(d->host, q, &answer);
}

static void do_list(struct dir *d, struct simba_request *q)
{
    static const struct simba_answer done = {.age_ms = -1};
    DIR *folder = fdopendir(openat(d->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int64_t now = now_ms();
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        char mutex[SIMBA_MUTEX_MAX + 1];
        struct record r;
        struct note note;
        struct simba_noted shown;
        if (decode(mutex, e->d_name) && strncmp(mutex, q->mutex, strlen(q->mutex)) == 0 &&
            read_record(d, e->d_name, &r) == 0 && is_held(d, &r, now))
            d->host->found(d->host, q,
                           &(struct simba_found){mutex, r.id, r.token, r.until - now,
                                                 now - r.acquired, -1, r.evicted,
                                                 noted(d, e->d_name, q, &note, &shown)});
    }
    if (folder != NULL)
        closedir(folder);
    d->host->answer(d->host, q, &done);
}

/* One lock for the whole batch. */
static void submit(void *store, struct simba_request *batch)
{
    struct dir *d = store;
    while (flock(d->lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    for (struct simba_request *next; batch != NULL; batch = next) {
        next = batch->next; /* the answer gives the request back */
        if (batch->op == SIMBA_LIST)
            do_list(d, batch);
        else
            do_request(d, batch);
    }
    flock(d->lock, LOCK_UN);
}

/* ---- pushes -------------------------------------------------------------------------------- */

/* What was last seen of a mutex that somebody waits for or observes; the runtime keeps it for us. */
enum { SEEN_TOKEN, SEEN_OWNED, SEEN_EVICTED };

struct change {
    const struct dir *dir;
    bool known;   /* hints are wanted of it */
    bool changed; /* since it was last seen */
};

/* Renewals change the file, too, but are nobody's business. */
static void hint_if_changed(void *data, struct simba_watched *w)
{
    struct change *c = data;
    char name[NAME_MAX_BYTES];
    struct record r;
    encode(name, w->mutex);
    c->known = c->changed = true;
    if (read_record(c->dir, name, &r) != 0)
        return; /* whoever asks sees the failure */
    int64_t owned = is_held(c->dir, &r, now_ms());
    c->changed = owned != w->seen[SEEN_OWNED] || (int64_t)r.token != w->seen[SEEN_TOKEN] ||
                 r.evicted != w->seen[SEEN_EVICTED];
    w->seen[SEEN_OWNED] = owned;
    w->seen[SEEN_TOKEN] = (int64_t)r.token;
    w->seen[SEEN_EVICTED] = r.evicted;
}

static void on_event(uv_fs_event_t *events, const char *name, int what, int status)
{
    (void)what, (void)status;
    struct dir *d = events->data;
    char mutex[SIMBA_MUTEX_MAX + 1];
    struct change c = {.dir = d};
    if (name == NULL) { /* too many events */
        d->host->hint(d->host, NULL);
        return;
    }
    if (!decode(mutex, name))
        return;
    d->host->watched(d->host, mutex, hint_if_changed, &c);
    if (c.changed)
        d->host->hint(d->host, mutex);
    else if (!c.known && d->host->interest(d->host, "") == SIMBA_OBSERVES)
        d->host->hint(d->host, ""); /* one that we were not asked to watch by its name */
}

/* Somebody begins to wait or to observe, and has not asked yet: what changes from now on counts. */
static void watch(void *store, const char *mutex, enum simba_interest interest)
{
    struct dir *d = store;
    struct change c = {.dir = d};
    if (mutex != NULL && interest != SIMBA_NO_INTEREST)
        d->host->watched(d->host, mutex, hint_if_changed, &c);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void free_dir(struct dir *d)
{
    close(d->lock);
    close(d->folder);
    free(d);
}

static void on_closed(uv_handle_t *handle)
{
    struct dir *d = handle->data;
    struct simba_host *host = d->host;
    free_dir(d);
    host->closed(host);
}

/* Every request has been answered within submit, so there is nothing to cancel. */
static void close_dir(void *store)
{
    uv_close((uv_handle_t *)&((struct dir *)store)->events, on_closed);
}

static void read_boot(char *out, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL || fgets(out, (int)size, f) == NULL)
        snprintf(out, size, "unknown");
    out[strcspn(out, "\n")] = '\0';
    if (f != NULL)
        fclose(f);
}

static int open_dir(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                    size_t why_size)
{
    const char *path = simba_url_path(url), *hints = simba_url_option(url, "hints");
    if (hints != NULL && strcmp(hints, "on") != 0 && strcmp(hints, "off") != 0) {
        snprintf(why, why_size, "option hints is on or off");
        return SIMBA_EINVAL;
    }
    struct dir *d = calloc(1, sizeof *d);
    if (d == NULL) {
        snprintf(why, why_size, "out of memory");
        return SIMBA_ELIMIT;
    }
    d->host = host;
    read_boot(d->boot, sizeof d->boot);
    d->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d->lock = openat(d->folder, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock < 0) {
        snprintf(why, why_size, "cannot use the folder %.200s: %s", path, strerror(errno));
        free_dir(d);
        return SIMBA_EDENIED;
    }
    uv_fs_event_init(host->loop, &d->events);
    d->events.data = d;
    bool pushes = hints == NULL || strcmp(hints, "on") == 0;
    int rc = pushes ? uv_fs_event_start(&d->events, on_event, path, 0) : 0;
    *store = d;
    if (rc != 0) /* without pushes: who waits asks when the lease ends */
        host->log(host, SIMBA_LOG_WARN, "inotify does not work here: waiting takes longer");
    return 0;
}

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    static const char *const schemes[] = {"dir", NULL};
    static const char *const options[] = {"hints", NULL};
    static const struct simba_backend backend = {
        .version = SIMBA_BACKEND_VERSION,
        .schemes = schemes,
        .options = options,
        .open = open_dir,
        .submit = submit,
        .asks = true,
        .watch = watch,
        .close = close_dir,
    };
    return &backend;
}
