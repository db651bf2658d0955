/* scripts.c: see scripts.h. The headers are made by cmake/stores.cmake. */
#include "backend/redis/scripts.h"

#include <string.h>

#include "backend/redis/script_absent.h"
#include "backend/redis/script_acquire.h"
#include "backend/redis/script_acquire_many.h"
#include "backend/redis/script_epoch.h"
#include "backend/redis/script_evict.h"
#include "backend/redis/script_read.h"
#include "backend/redis/script_release.h"
#include "backend/redis/script_release_many.h"
#include "backend/redis/script_renew.h"
#include "backend/redis/script_rights.h"

#define SCRIPT(name)                                    \
    {                                                   \
        name##_text, sizeof name##_text - 1, name##_sha \
    }

static const struct {
    const char *text;
    size_t length;
    const char *sha; /* of the text: by this Redis knows it */
} scripts[SCRIPTS] = {
    [SCRIPT_ACQUIRE] = SCRIPT(script_acquire),
    [SCRIPT_RENEW] = SCRIPT(script_renew),
    [SCRIPT_RELEASE] = SCRIPT(script_release),
    [SCRIPT_READ] = SCRIPT(script_read),
    [SCRIPT_EVICT] = SCRIPT(script_evict),
    [SCRIPT_ABSENT] = SCRIPT(script_absent),
    [SCRIPT_EPOCH] = SCRIPT(script_epoch),
    [SCRIPT_RIGHTS] = SCRIPT(script_rights),
    [SCRIPT_ACQUIRE_MANY] = SCRIPT(script_acquire_many),
    [SCRIPT_RELEASE_MANY] = SCRIPT(script_release_many),
};

void scripts_call(struct buffer *b, enum script script, bool whole, size_t keys, size_t arguments)
{
    resp_begin(b, 3 + keys + arguments);
    if (whole) {
        resp_bytes(b, "EVAL", 4);
        resp_bytes(b, scripts[script].text, scripts[script].length);
    } else {
        resp_bytes(b, "EVALSHA", 7);
        resp_word(b, scripts[script].sha);
    }
    resp_number(b, (int64_t)keys);
}

void scripts_key(struct buffer *b, const char *mutex, const char *part)
{
    resp_pieces(b, (const char *const[]){"simba:{", mutex, "}", part, NULL});
}

void scripts_read_keys(struct buffer *b, const char *mutex)
{
    scripts_key(b, mutex, "");
    scripts_key(b, mutex, ":token");
    scripts_key(b, mutex, ":contender");
}

const char *scripts_text(enum script script)
{
    return scripts[script].text;
}
