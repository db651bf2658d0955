/* turn.h: what waits for the next turn, and taking it. */
#ifndef RUNTIME_TURN_H
#define RUNTIME_TURN_H

#include <simba/backend.h>

struct simba_client;
struct actor;
struct inquiry;
struct call;

struct hint {
    struct hint *next;
    const char *id; /* behind the mutex; NULL: for all who contend for it */
    char mutex[];   /* copied */
};

/* All of it under the client's lock. */
struct inbox {
    struct actor *posts, **posts_last;
    struct simba_request *answers, **answers_last;
    struct inquiry *inquiries;
    struct hint *hints;
    size_t hints_count;
    bool hint_all, alarmed, close_asked;
};

/* What a turn leaves to be done after it; whoever has the baton. */
struct turn {
    struct call *results; /* that are known */
    bool submitted;       /* something to the store */
};

void turn_init(struct inbox *in);
void turn_free(struct inbox *in); /* what nobody has taken */

void turn_post_locked(struct actor *a, uint32_t post);    /* 0: it is looked at */
bool turn_is_wanted_locked(const struct simba_client *s); /* something waits */

/* Takes what waits, until nothing does, or the store's own events must get their turn. With the
 * baton. False: nothing waited. */
bool turn_take(struct simba_client *s, struct turn *out);
#endif
