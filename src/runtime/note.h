/* note.h: the note of a mutex, kept in as much memory as its text needs. */
#ifndef RUNTIME_NOTE_H
#define RUNTIME_NOTE_H

#include <simba/backend.h>

struct actor;

struct note {
    uint64_t token;
    int64_t written_at; /* ms */
    char text[];
};

struct note *note_keep(const struct simba_noted *noted); /* NULL: there is none, or out of memory */
void note_show(const struct note *n, struct simba_note *out);

/* A caller's: 0, or an error with its text. */
int note_check(const char *mutex, const char *text);

/* In the tenure with this token; waits for the store. Errors as simba_contender_publish. */
int note_publish(struct actor *a, uint64_t token, const char *text, int64_t timeout_ms);
#endif
