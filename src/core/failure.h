/* failure.h: what mends an error. Time mends most: the store comes back, another owner releases. These
 * two say which it does not, and differ in who can:
 *
 *   failure_lasts     Somebody has to act: an operator gives rights or makes a table, or nobody can.
 *                     Whoever must not wait in vain stops: a caller that has not asked for a long
 *                     wait, a leader that cannot do its work.
 *   failure_is_ours   Nothing that is done at the store helps: it can do nothing with this name, or
 *                     with what this program asks for. Even who would wait for an operator gives up. */
#ifndef CORE_FAILURE_H
#define CORE_FAILURE_H

#include <simba.h>
#include <stdbool.h>

static inline bool failure_is_ours(int code)
{
    return code == SIMBA_EINVAL || code == SIMBA_EUNSUPPORTED;
}

static inline bool failure_lasts(int code)
{
    return failure_is_ours(code) || code == SIMBA_EDENIED || code == SIMBA_ESCHEMA;
}
#endif
