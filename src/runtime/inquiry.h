/* inquiry.h: questions that no handle asks, and notes. Whoever has the baton, but what is a
 * caller's. */
#ifndef RUNTIME_INQUIRY_H
#define RUNTIME_INQUIRY_H

#include <simba/backend.h>

struct actor;
struct simba_client;
struct request;
struct inquiry;
struct snapshot;

void inquiry_send(struct simba_client *s); /* all that wait */
void inquiry_answered(struct request *r);
void inquiry_say(struct inquiry *q, const struct simba_finding *finding); /* any thread */

/* A caller's: 0, or an error with its text. */
/* As simba_read_note; wall_ms: the time of day by the store's clock, 0: unknown. */
int inquiry_read_note(struct simba_client *s, const char *mutex, int64_t timeout_ms,
                      struct simba_note *note, struct simba_owner *owner, int64_t *wall_ms);
int inquiry_snapshot(struct simba_client *s, struct snapshot **out);

/* The note of a mutex, kept in as much memory as its text needs. */
struct note {
    uint64_t token;
    int64_t written_at; /* ms */
    char text[];
};

struct note *note_keep(const struct simba_noted *noted); /* NULL: there is none, or out of memory */
void note_show(const struct note *n, struct simba_note *out);

/* A caller's, too. */
int note_check(const char *mutex, const char *text);

/* In the tenure with this token; waits for the store. Errors as simba_contender_publish. */
int note_publish(struct actor *a, uint64_t token, const char *text, int64_t timeout_ms);
#endif
