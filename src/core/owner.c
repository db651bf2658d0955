/* owner.c: questions about a tenure and about the step from one to the next. Pure: the caller says
 * what time it is.
 *
 * The stores let another take a mutex from the millisecond transition_at on. The JVM original
 * nevertheless has an owner while `transitionAt >= now`, so that in this one millisecond two
 * contenders may each believe in their own tenure. Here a tenure is over at transition_at: the
 * comparison is `>`, as it is for the ttl in both. "In transition" also begins only where the ttl
 * ends, while the original counts the ttl in. */
#include <simba.h>
#include <string.h>

bool simba_owner_is(const struct simba_owner *o, const char *id)
{
    if (o == NULL || id == NULL || id[0] == '\0')
        return false; /* nobody has an empty id; without an owner it must not match */
    return strncmp(o->id, id, sizeof(o->id)) == 0;
}

bool simba_owner_exists(const struct simba_owner *o, int64_t now)
{
    return o != NULL && o->transition_at > now;
}

bool simba_owner_in_ttl(const struct simba_owner *o, int64_t now)
{
    return o != NULL && o->ttl_at > now;
}

bool simba_owner_in_transition(const struct simba_owner *o, int64_t now)
{
    return simba_owner_exists(o, now) && !simba_owner_in_ttl(o, now);
}

/* The token counts too: whoever loses a mutex and wins it again has another tenure under the same
 * id. Such a state is both a release and an acquisition. */
bool simba_state_changed(const struct simba_state *s)
{
    return s != NULL && (s->before.token != s->after.token ||
                         strncmp(s->before.id, s->after.id, sizeof(s->after.id)) != 0);
}

bool simba_state_acquired(const struct simba_state *s, const char *id)
{
    return simba_state_changed(s) && simba_owner_is(&s->after, id);
}

bool simba_state_released(const struct simba_state *s, const char *id)
{
    return simba_state_changed(s) && simba_owner_is(&s->before, id);
}
