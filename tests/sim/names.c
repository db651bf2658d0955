/* names.c: how things are called in traces. */
#include "world.h"

#define FAULT_X(name, text) text,
const char *const fault_text[FAULT_COUNT] = {FAULTS(FAULT_X)};
#undef FAULT_X

const char *name_of_op(enum simba_op op)
{
    static const char *const names[] = {"CONTEND", "RENEW", "RELEASE", "READ",
                                        "LEAVE",   "LIST",  "EVICT",   "PUBLISH"};
    return names[op];
}

const char *name_of_code(int code)
{
#define SIMBA_X(name, number, text) \
    case SIMBA_E##name:             \
        return #name;
    switch (code) {
        SIMBA_ERRORS(SIMBA_X)
    default:
        return "OK";
    }
#undef SIMBA_X
}

const char *name_of_reason(enum simba_reason reason)
{
    static const char *const names[] = {"unchanged", "acquired", "released",
                                        "expired",   "evicted",  "stalled"};
    return names[reason];
}

const char *name_of_callback(enum handle_callback callback)
{
    static const char *const names[] = {"none",       "on_acquired", "on_released",
                                        "on_changed", "on_stopped",  "on_closed"};
    return names[callback];
}

void trace_reply(struct world *w, const struct node *n, const struct message *m)
{
    const char *op = name_of_op(m->request.op);
    unsigned long long token = m->token;
    bool asks = m->request.op == SIMBA_CONTEND || m->request.op == SIMBA_LEAVE;
    if (m->code != 0 || !asks)
        world_trace(w, "%c < %s %s", NAME(n), op, name_of_code(m->code));
    else if (m->granted)
        world_trace(w, "%c < %s: granted %llu", NAME(n), op, token);
    else if (m->owner[0] != '\0')
        world_trace(w, "%c < %s: %s has it, token %llu", NAME(n), op, m->owner, token);
    else
        world_trace(w, "%c < %s: nobody has it", NAME(n), op);
}
