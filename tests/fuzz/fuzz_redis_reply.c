/* fuzz_redis_reply.c: whatever a server sends, in whatever pieces, the decoder either makes a
 * reply of it, within its limits, or says that it cannot. The first byte is the size of the
 * pieces. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/redis/info.h"
#include "backend/redis/resp.h"

static size_t count_values(const struct reply *r, unsigned depth)
{
    size_t values = 1;
    uint64_t number;
    assert(depth < 16);
    assert(r->text != NULL && r->text[r->length] == '\0');
    assert(!reply_is_text(r) || strlen(r->text) == r->length);
    (void)reply_digits(r, &number);
    (void)reply_is_error(r, "NOSCRIPT");
    assert(reply_at(r, r->elements)->kind == REPLY_NIL);
    if (reply_is_text(r)) {
        struct info h;
        char line[256];
        struct simba_finding warning;
        if (info_parse(&h, r->text)) {
            (void)info_refuses(&h, line, sizeof line);
            for (size_t n = 0; info_warns(&h, true, n, &warning, line, sizeof line); n++)
                assert(strlen(warning.text) < sizeof line);
        }
    }
    for (size_t i = 0; i < r->elements; i++)
        values += count_values(reply_at(r, i), depth + 1);
    return values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct decoder d;
    if (size == 0 || !decoder_init(&d))
        return 0;
    size_t piece = data[0] == 0 ? 256 : data[0];
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (!decoder_feed(&d, (const char *)data + at, n))
            break;
        for (const struct reply *r; (r = decoder_next(&d)) != NULL;)
            assert(count_values(r, 0) <= RESP_BYTES_MAX / sizeof *r);
        assert(d.used <= RESP_BYTES_MAX);
    }
    decoder_free(&d);
    return 0;
}
