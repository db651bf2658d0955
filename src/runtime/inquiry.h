/* inquiry.h: questions that no handle asks; whoever has the baton, but the last. */
#ifndef RUNTIME_INQUIRY_H
#define RUNTIME_INQUIRY_H

#include <simba/backend.h>

struct simba_client;
struct request;
struct inquiry;
struct snapshot;

void inquiry_send(struct simba_client *s); /* all that wait */
void inquiry_answered(struct request *r);
void inquiry_say(struct inquiry *q, const struct simba_finding *finding); /* any thread */

/* A caller's: 0, or an error with its text. */
int inquiry_publish(struct simba_client *s, const char *mutex, const char *id, uint64_t token,
                    const char *text, int64_t timeout_ms);
/* As simba_read_note; wall_ms: the time of day by the store's clock, 0: unknown. */
int inquiry_read_note(struct simba_client *s, const char *mutex, int64_t timeout_ms,
                      struct simba_note *note, struct simba_owner *owner, int64_t *wall_ms);
int inquiry_snapshot(struct simba_client *s, struct snapshot **out); /* a caller's */
#endif
