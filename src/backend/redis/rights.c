/* rights.c: whether the user may do all that this store does, and which rights would be enough. Asked only
 * when somebody wants to know, as what is missing may not be needed for weeks. */
#include <stdio.h>
#include <string.h>

#include "backend/redis/redis.h"

static void add_denied(struct redis *s, const char *mark, const char *name, size_t length)
{
    char word[48];
    size_t used = strlen(s->rights.denied);
    snprintf(word, sizeof word, " %s%.*s", mark, (int)(length < 40 ? length : 40), name);
    if (strstr(s->rights.denied, word) == NULL)
        snprintf(s->rights.denied + used, sizeof s->rights.denied - used, "%s", word);
}

/* NOPERM this user has no permissions to run the 'ping' command; or to access one of the channels. */
static void add_error(struct redis *s, const struct reply *r, const char *right)
{
    const char *at = strchr(r->text, '\'');
    if (!reply_is_error(r, "NOPERM"))
        return;
    if (right != NULL)
        add_denied(s, "+", right, strlen(right));
    else if (at != NULL)
        add_denied(s, "+", at + 1, strcspn(at + 1, "'"));
    else if (strstr(r->text, "channel") != NULL)
        add_denied(s, "", HEALTH_ACL_CHANNELS, strlen(HEALTH_ACL_CHANNELS));
}

static void ask(struct redis *s, const char *right, const char *const *word, size_t words)
{
    struct flight *f = s->link.state == LINK_READY ? calls_push(s, FLIGHT_RIGHT) : NULL;
    if (f == NULL)
        return;
    f->right = right;
    resp_begin(&s->link.out, words);
    for (size_t i = 0; i < words; i++)
        resp_word(&s->link.out, word[i]);
    s->rights.open++;
}

void rights_ask(struct redis *s)
{
    char db[16];
    if (s->link.state != LINK_READY || s->rights.asked)
        return;
    snprintf(db, sizeof db, "%d", (int)s->config.db);
    s->rights.asked = true;
    s->rights.open = 0;
    s->rights.denied[0] = '\0';
    ask(s, "ping", (const char *const[]){"PING"}, 1);
    ask(s, "select", (const char *const[]){"SELECT", db}, 2);
    ask(s, "client|setname", (const char *const[]){"CLIENT", "SETNAME", "simba"}, 3);
    ask(s, "scan", (const char *const[]){"SCAN", "0", "MATCH", "simba:rights", "COUNT", "1"}, 6);
    ask(s, "eval",
        (const char *const[]){"EVAL", script_text(SCRIPT_RIGHTS), "3", "simba:rights",
                              "simba:rights:queue", "simba:rights:hash"},
        6);
    link_flush(&s->link);
    ear_try(&s->ear);
}

void rights_reply(struct redis *s, const struct flight *f, const struct reply *r)
{
    s->rights.open--;
    if (r->kind == REPLY_ERROR)
        add_error(s, r, f->right);
    for (size_t i = 0; strcmp(f->right, "eval") == 0 && i < r->elements; i++) {
        if (reply_is_text(&r->element[i]))
            add_denied(s, "+", r->element[i].text, r->element[i].length);
    }
}

void rights_heard(struct ear *e, const struct reply *r)
{
    struct redis *s = (struct redis *)(void *)((char *)e - offsetof(struct redis, ear));
    add_error(s, r, NULL);
}

void rights_say(const struct redis *s, simba_finding_fn *say, void *data)
{
    char line[1024];
    if (s->rights.denied[0] != '\0')
        snprintf(line, sizeof line, "the user lacks rights:%s", s->rights.denied);
    else if (!s->rights.asked || s->rights.open > 0 || s->ear.tries)
        snprintf(line, sizeof line, "the user's rights are being looked at: ask again");
    else
        snprintf(line, sizeof line, "the user has all rights that are needed");
    say(data, s->rights.denied[0] != '\0' ? SIMBA_LOG_ERROR : SIMBA_LOG_INFO, line);
    snprintf(line, sizeof line, "rights that are enough: ACL SETUSER NAME on >PASSWORD %s",
             health_acl());
    say(data, SIMBA_LOG_INFO, line);
}
