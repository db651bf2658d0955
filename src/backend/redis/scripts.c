/* scripts.c: see scripts.h. */
#include "backend/redis/scripts.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/absent_lua.h"
#include "backend/redis/acquire_lua.h"
#include "backend/redis/acquire_many_lua.h"
#include "backend/redis/epoch_lua.h"
#include "backend/redis/evict_lua.h"
#include "backend/redis/guard_lua.h"
#include "backend/redis/read_lua.h"
#include "backend/redis/release_lua.h"
#include "backend/redis/release_many_lua.h"
#include "backend/redis/rights_lua.h"
#include "backend/redis/same_epoch_lua.h"
#include "backend/redis/wake_lua.h"

#define SHA1_BYTES ((size_t)20)

static struct {
    const char *name, *before, *body;
    const char *many; /* what does for many what the body, as a function, does for one */
    char *text;
    size_t length;
    char sha[2 * SHA1_BYTES + 1];
} scripts[SCRIPTS] = {
    [SCRIPT_ACQUIRE] = {"acquire", same_epoch_lua, acquire_lua, NULL, NULL, 0, ""},
    [SCRIPT_GUARD] = {"guard", "", guard_lua, NULL, NULL, 0, ""},
    [SCRIPT_RELEASE] = {"release", wake_lua, release_lua, NULL, NULL, 0, ""},
    [SCRIPT_READ] = {"read", "", read_lua, NULL, NULL, 0, ""},
    [SCRIPT_EVICT] = {"evict", wake_lua, evict_lua, NULL, NULL, 0, ""},
    [SCRIPT_ABSENT] = {"absent", "", absent_lua, NULL, NULL, 0, ""},
    [SCRIPT_EPOCH] = {"epoch", "", epoch_lua, NULL, NULL, 0, ""},
    [SCRIPT_RIGHTS] = {"rights", "", rights_lua, NULL, NULL, 0, ""},
    [SCRIPT_ACQUIRE_MANY] = {"acquire many", same_epoch_lua, acquire_lua, acquire_many_lua, NULL, 0,
                             ""},
    [SCRIPT_RELEASE_MANY] = {"release many", wake_lua, release_lua, release_many_lua, NULL, 0, ""},
};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool done;

/* Redis knows a script by the SHA-1 of its text. */
static bool prepare(enum script i)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    const char *after = scripts[i].many != NULL ? scripts[i].many : "";
    const char *head = scripts[i].many != NULL ? "local function one(KEYS, ARGV)\n" : "";
    const char *end = scripts[i].many != NULL ? "end\n" : "";
    size_t size = strlen(scripts[i].before) + strlen(head) + strlen(scripts[i].body) + strlen(end) +
                  strlen(after) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return false;
    scripts[i].length = (size_t)snprintf(text, size, "%s%s%s%s%s", scripts[i].before, head,
                                         scripts[i].body, end, after);
    scripts[i].text = text;
    if (EVP_Digest(text, scripts[i].length, digest, &length, EVP_sha1(), NULL) != 1 ||
        length != SHA1_BYTES)
        return false;
    for (size_t n = 0; n < SHA1_BYTES; n++)
        snprintf(scripts[i].sha + 2 * n, 3, "%02x", digest[n]);
    return true;
}

static void prepare_all(void)
{
    done = true;
    for (int i = 0; i < SCRIPTS; i++)
        done = prepare((enum script)i) && done;
}

bool scripts_init(void)
{
    pthread_once(&once, prepare_all);
    return done;
}

void script_call(struct buffer *b, enum script script, bool whole, size_t keys, size_t arguments)
{
    resp_begin(b, 3 + keys + arguments);
    if (whole) {
        resp_bytes(b, "EVAL", 4);
        resp_bytes(b, scripts[script].text, scripts[script].length);
    } else {
        resp_bytes(b, "EVALSHA", 7);
        resp_bytes(b, scripts[script].sha, 2 * SHA1_BYTES);
    }
    resp_number(b, (int64_t)keys);
}

const char *script_name(enum script script)
{
    return scripts[script].name;
}

const char *script_text(enum script script)
{
    return scripts[script].text;
}
