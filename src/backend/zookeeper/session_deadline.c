/* session_deadline.c: see session_deadline.h. */
#include "backend/zookeeper/session_deadline.h"

#include <assert.h>
#include <string.h>

#define PART_WRITE 6  /* a write every S/6 */
#define PART_PING 4   /* a ping within S/4 */
#define PART_ENOUGH 3 /* this much is left when the next write is sent, in quiet times half */
#define PART_APART 16 /* exchanges closer together than this are kept as one */

void zk_session_deadline_begin(struct session_deadline *s, int64_t timeout, int64_t sent)
{
    assert(timeout > 0);
    *s = (struct session_deadline){.timeout = timeout, .counted = sent, .written = sent};
    s->kept[0].sent = s->kept[0].ended = sent;
    s->count = 1;
}

void zk_session_deadline_moved(struct session_deadline *s, int64_t timeout, int64_t sent)
{
    assert(timeout > 0);
    if (timeout < s->timeout)
        s->timeout = timeout;
    if (sent > s->counted)
        s->counted = sent;
}

void zk_session_deadline_heard(struct session_deadline *s, int64_t sent, int64_t ended)
{
    assert(ended >= sent);
    if (s->count > 0 && sent - s->kept[s->count - 1].sent < s->timeout / PART_APART)
        return;
    if (s->count == DEADLINE_KEPT)
        memmove(s->kept, s->kept + 1, sizeof *s->kept * (size_t)--s->count);
    s->kept[s->count].sent = sent;
    s->kept[s->count++].ended = ended;
}

void zk_session_deadline_wrote(struct session_deadline *s, int64_t sent, int64_t ended)
{
    for (int i = 0; i < s->count; i++) {
        if (sent - s->kept[i].ended >= s->timeout / PART_PING && s->kept[i].sent > s->counted)
            s->counted = s->kept[i].sent;
    }
    if (sent > s->written)
        s->written = sent;
    zk_session_deadline_heard(s, sent, ended);
}

int64_t zk_session_deadline_until(const struct session_deadline *s)
{
    int64_t counted = s->counted + s->timeout, written = s->written + s->timeout * 2 / 3;
    return counted < written ? counted : written;
}

/* After a disturbance the leader may count from long ago, and the next regular write be too late
 * for those who rely on the session: then the first one that shows more. */
int64_t zk_session_deadline_write_at(const struct session_deadline *s)
{
    int64_t at = s->written + s->timeout / PART_WRITE;
    if (zk_session_deadline_until(s) - at >= s->timeout / PART_ENOUGH)
        return at;
    for (int i = 0; i < s->count; i++) {
        int64_t shows = s->kept[i].ended + s->timeout / PART_PING;
        if (s->kept[i].sent > s->counted && shows < at)
            at = shows;
    }
    return at;
}

int64_t zk_session_deadline_idle_ms(const struct session_deadline *s)
{
    return s->timeout / PART_PING;
}
