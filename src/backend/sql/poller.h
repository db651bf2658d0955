/* poller.h: looks at what is waited for or observed, and what they mean: often at first, then
 * rarely; where the server tells, only to make sure.
 *
 * One poll serves all of a client, so that the server's load depends on the number of clients
 * and not on that of contenders. What the client owns itself needs no poll: it knows of a
 * release because it releases, and of an eviction by the row of evictions, which has no name and
 * counts them. */
#ifndef BACKEND_SQL_POLLER_H
#define BACKEND_SQL_POLLER_H

#include <simba/backend.h>
#include <uv.h>

struct sql_poller {
    uv_timer_t timer;  /* until the next poll */
    int64_t poll_ms;   /* 0: no polls */
    int64_t pause_ms;  /* between polls, at present; at most poll_ms */
    bool is_set;       /* the timer is */
    bool is_under_way; /* a poll is */
    bool is_early;     /* the next poll comes too soon to tell whether a tenure lasts */
    bool missed; /* perhaps something, while nobody listened: poll, even if that is not wanted */
    bool digest_known;
    uint64_t digest, evictions; /* as last seen */
};

struct sql;

void sql_watch(void *store, const char *mutex, enum simba_interest interest);
void sql_poller_poll_in(struct sql *s, int64_t ms);
void sql_poller_refused(struct sql *s, const char *mutex); /* another has it */

/* A grant or renewal until that time, of simba_now(); 0: it is not ours any more. */
void sql_poller_ours(struct sql *s, const char *mutex, int64_t until);
void sql_poller_hint_ours(struct sql *s);                /* all that are */
bool sql_poller_waits(struct sql *s, const char *mutex); /* for this very mutex, anybody */
bool sql_poller_owns(struct sql *s, const char *mutex);  /* anybody of this client */

/* What was seen of a mutex; owner "": nobody. True: that was a reason for a hint. */
bool sql_poller_saw(struct sql *s, const char *mutex, const char *owner, uint64_t token);
void sql_poller_done(struct sql *s, bool news);

/* Pure, of a mutex: has it to be polled? Is what was seen of it news? */
bool sql_poller_needs_poll(const struct simba_watched *w, int64_t now);
bool sql_poller_is_news(struct simba_watched *w, const char *owner, uint64_t token);
void sql_poller_set_ours(struct simba_watched *w, int64_t until);
bool sql_poller_is_ours(const struct simba_watched *w, int64_t now);

/* Pure: the count of evictions: 0: no news, 1: of one mutex, 2: of several. Has the digest changed? */
int sql_poller_evictions(struct sql_poller *p, uint64_t count);
bool sql_poller_digest(struct sql_poller *p, uint64_t digest);
#endif
