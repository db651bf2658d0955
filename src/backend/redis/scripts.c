/* scripts.c: see scripts.h. */
#include "backend/redis/scripts.h"

#include "backend/redis/script_absent.h"
#include "backend/redis/script_acquire.h"
#include "backend/redis/script_acquire_many.h"
#include "backend/redis/script_epoch.h"
#include "backend/redis/script_evict.h"
#include "backend/redis/script_publish.h"
#include "backend/redis/script_read.h"
#include "backend/redis/script_release.h"
#include "backend/redis/script_release_many.h"
#include "backend/redis/script_renew.h"
#include "backend/redis/script_rights.h"

#define SCRIPT(name) name##_text, sizeof name##_text - 1, name##_sha

#define ENDING_KEYS "", ":contender", ":token"
#define ACQUIRE_KEYS "", ":contender", ":fence", ":token"

static const struct {
    const char *text;
    size_t length;
    const char *sha;        /* of the text: by this Redis knows it */
    const char *keys[5];    /* of each mutex: what follows simba:{M}; NULL ends them */
    size_t mutex_arguments; /* of each mutex: its arguments */
    bool takes_epoch;       /* its first key is SCRIPTS_EPOCH_KEY */
    size_t first_arguments; /* arguments before those of the mutexes */
} scripts[SCRIPTS] = {
    [SCRIPT_ACQUIRE] = {SCRIPT(script_acquire), {ACQUIRE_KEYS}, 4, true, 1},
    [SCRIPT_RENEW] = {SCRIPT(script_renew), {"", ":token"}, 3, true, 1},
    [SCRIPT_RELEASE] = {SCRIPT(script_release), {ENDING_KEYS}, 4, false, 0},
    [SCRIPT_READ] = {SCRIPT(script_read), {"", ":token", ":contender", ":note"}, 1, false, 0},
    [SCRIPT_EVICT] = {SCRIPT(script_evict), {ENDING_KEYS}, 3, false, 0},
    [SCRIPT_ABSENT] = {SCRIPT(script_absent), {""}, 0, false, 0},
    [SCRIPT_EPOCH] = {SCRIPT(script_epoch), {NULL}, 0, true, 5},
    [SCRIPT_PUBLISH] = {SCRIPT(script_publish), {"", ":token", ":note"}, 4, false, 0},
    [SCRIPT_RIGHTS] = {SCRIPT(script_rights), {NULL}, 0, false, 0},
    [SCRIPT_ACQUIRE_MANY] = {SCRIPT(script_acquire_many), {ACQUIRE_KEYS}, 4, true, 1},
    [SCRIPT_RELEASE_MANY] = {SCRIPT(script_release_many), {ENDING_KEYS}, 4, false, 0},
};

void scripts_call(struct buffer *b, enum script script, bool whole, size_t mutexes)
{
    size_t each = 0, at_first = scripts[script].takes_epoch;
    while (scripts[script].keys[each] != NULL)
        each++;
    size_t keys = at_first + each * mutexes;
    resp_begin(b, 3 + keys + scripts[script].first_arguments +
                      scripts[script].mutex_arguments * mutexes);
    if (whole) {
        resp_bytes(b, "EVAL", 4);
        resp_bytes(b, scripts[script].text, scripts[script].length);
    } else {
        resp_bytes(b, "EVALSHA", 7);
        resp_argument(b, scripts[script].sha);
    }
    resp_number(b, (int64_t)keys);
    if (at_first > 0)
        resp_argument(b, SCRIPTS_EPOCH_KEY);
}

void scripts_keys(struct buffer *b, enum script script, const char *mutex)
{
    for (const char *const *key = scripts[script].keys; *key != NULL; key++)
        resp_pieces(b, (const char *const[]){"simba:{", mutex, "}", *key, NULL});
}

const char *scripts_text(enum script script)
{
    return scripts[script].text;
}
