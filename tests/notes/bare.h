/* bare.h: a store by its own interface (simba/backend.h), without the runtime: so that it can be asked
 * what no handle would ask any more. One thread; nobody waits or observes. */
#ifndef NOTES_BARE_H
#define NOTES_BARE_H

#include <simba/backend.h>
#include <stdatomic.h>
#include <uv.h>

#define PATIENCE_MS 30000
#define CHECK(cond) ((cond) ? (void)0 : bare_fail(__FILE__, __LINE__, #cond))
_Noreturn void bare_fail(const char *file, int line, const char *what);
void bare_nap(void); /* a moment, before the store is asked again */

struct bare {
    struct simba_host host; /* first */
    uv_loop_t loop;
    const struct simba_backend *backend;
    void *store;
    struct simba_url *url;
    atomic_int open; /* requests that are not answered */
    atomic_bool closed;
};

/* A request, and what its answer was. */
struct bare_request {
    struct simba_request request; /* first */
    atomic_bool is_answered;
    struct simba_answer answer;
    char id[SIMBA_ID_MAX + 1], text[512];
    uint64_t note_token; /* 0: none */
    char note[SIMBA_NOTE_MAX + 1];
};

void bare_open(struct bare *b, const char *url);
void bare_close(struct bare *b);

/* A lease of this length, if it is one that is asked for. Waits for the answer; returns its code. */
int bare_ask(struct bare *b, struct bare_request *r, int64_t lease_ms);
int bare_contend(struct bare *b, const char *mutex, const char *id, int64_t lease_ms,
                 uint64_t *token); /* 0, or SIMBA_EHELD, or a failure */
int bare_publish(struct bare *b, const char *mutex, const char *id, uint64_t token, uint64_t serial,
                 const char *note);
void bare_read(struct bare *b, const char *mutex, struct bare_request *out);
#endif
