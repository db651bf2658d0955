/* note_data.h: a note as the data of a node: TOKEN SERIAL, a line break, the text. Pure. */
#ifndef BACKEND_ZOOKEEPER_NOTE_DATA_H
#define BACKEND_ZOOKEEPER_NOTE_DATA_H

#include <simba.h>

#define NOTE_DATA_SIZE (SIMBA_NOTE_MAX + 48)

struct note_data {
    uint64_t token, serial;
    const char *text; /* in the data; without a NUL at its end */
    size_t length;
};

size_t zk_note_format(char out[NOTE_DATA_SIZE], uint64_t token, uint64_t serial, const char *text);
bool zk_note_parse(const char *data, int length, struct note_data *out); /* false: none of ours */
#endif
