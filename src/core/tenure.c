/* tenure.c: see tenure.h. */
#include "core/tenure.h"

#include <string.h>

bool tenure_is_same(const struct tenure *a, const struct tenure *later)
{
    if (a->id == NULL || later->id == NULL)
        return a->id == later->id;
    if (strcmp(a->id, later->id) != 0)
        return false;
    if (a->token != 0 && later->token != 0)
        return a->token == later->token;
    return !later->aged || later->acquired_at <= a->seen_at;
}

enum simba_reason tenure_end(const struct tenure *was, int64_t now)
{
    if (was->evicted)
        return SIMBA_EVICTED;
    return now >= was->until ? SIMBA_EXPIRED : SIMBA_RELEASED;
}
