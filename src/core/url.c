/* url.c: takes the URL of a store apart.
 *
 * One pass over a text of bounded length. Delimiters are looked for in the text as it was written,
 * each part is decoded after that, into `bytes`; `shown` is put together beside it.
 *
 * A URL that is wrong is often wrong around its password, where an unescaped / ? @ or & makes one
 * part look like another. So messages say which part is at fault and how to write it, and never
 * quote it. Only the names of options are quoted, and not even those after an option that is a
 * secret. */
#include "core/url.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

#define PORT_MAX 65535
#define DIGITS(limit) DIGITS_OF(limit)
#define DIGITS_OF(limit) #limit
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DECIMAL "0123456789"
#define NEAR 2 /* edits within which a wrong option is taken for a known one */

struct parser {
    struct simba_url *u;
    struct text why, shown;
    size_t used; /* of u->bytes */
};

/* A part of the text: [at, end). */
struct span {
    const char *at, *end;
};

static int refuse(struct text *why, const char *part, const char *fault)
{
    text_add(why, part);
    text_add(why, fault);
    return SIMBA_EINVAL;
}

/* Is the value of such an option not to be shown? password_file and the like only say where. */
static bool is_secret(const char *name)
{
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, "_file") == 0)
        return false;
    return strstr(name, "pass") != NULL || strstr(name, "pwd") != NULL ||
           strstr(name, "secret") != NULL || strstr(name, "token") != NULL;
}

/* Which option, the n-th. One after a secret may be the rest of a password with an & in it. */
static void add_option(struct text *why, const struct simba_url *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_secret(u->option[i].name)) {
            text_add(why, "option number ");
            text_add_uint(why, n + 1);
            return;
        }
    }
    text_add(why, "option ");
    text_add(why, u->option[n].name);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static const char *find(struct span s, char c)
{
    const char *at = memchr(s.at, c, (size_t)(s.end - s.at));
    return at != NULL ? at : s.end;
}

/* The last such character, or NULL. */
static const char *find_last(struct span s, char c)
{
    return memrchr(s.at, c, (size_t)(s.end - s.at));
}

/* Decodes s to the end of `bytes`. */
static int take(struct parser *p, struct span s, const char *part, const char **out)
{
    size_t length = (size_t)(s.end - s.at);
    assert(p->used + length < sizeof(p->u->bytes));
    char *to = p->u->bytes + p->used;
    const char *fault = text_unescape(to, s.at, length);
    if (fault != NULL)
        return refuse(&p->why, part, fault);
    p->used += strlen(to) + 1;
    *out = to;
    return 0;
}

static void show(struct parser *p, struct span s)
{
    text_add_bytes(&p->shown, s.at, (size_t)(s.end - s.at));
}

/* ---- parts --------------------------------------------------------------------------------- */

/* What a text without a scheme may be meant as. NULL: nobody knows. */
static const char *guess_scheme(const char *text)
{
    static const struct {
        const char *port, *scheme;
    } usual[] = {{"6379", "redis://"},      {"6380", "rediss://"},   {"26379", "redis+sentinel://"},
                 {"3306", "mysql://"},      {"3307", "mysql://"},    {"5432", "postgresql://"},
                 {"6432", "postgresql://"}, {"2181", "zookeeper://"}};
    const char *at = strchr(text, '@'), *colon = strchr(at != NULL ? at : text, ':');
    size_t length = strlen(text), digits = colon != NULL ? strspn(colon + 1, DECIMAL) : 0;
    if (strchr("/.~", text[0]) != NULL || (length > 3 && strcmp(text + length - 3, ".db") == 0))
        return "sqlite:";
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (digits == strlen(usual[i].port) && strncmp(colon + 1, usual[i].port, digits) == 0 &&
            strchr("/?,", colon[1 + digits]) != NULL) /* also its end */
            return usual[i].scheme;
    return NULL;
}

static int refuse_without_scheme(struct parser *p, const char *meant)
{
    text_add(&p->why, "the URL has no scheme: write sqlite:PATH, or redis://, rediss://, "
                      "redis+sentinel://, mysql://, mariadb://, postgresql:// or zookeeper:// "
                      "before the host");
    if (meant != NULL) {
        text_add(&p->why, "; here it may be ");
        text_add(&p->why, meant);
    }
    return SIMBA_EINVAL;
}

/* Could it be HOST:PORT, as other programs take it? s ends at the colon. */
static bool is_address(struct span s, const char *meant)
{
    size_t length = (size_t)(s.end - s.at);
    if (strncmp(s.end + 1, "//", 2) == 0)
        return false;
    bool is_scheme = meant != NULL && strncmp(meant, s.at, length) == 0;
    return memchr(s.at, '.', length) != NULL ||
           (meant != NULL && strcmp(meant, "sqlite:") != 0 && !is_scheme);
}

static int parse_scheme(struct parser *p, struct span s)
{
    size_t length = (size_t)(s.end - s.at);
    const char *meant = guess_scheme(s.at);
    if (*s.end == '\0' || strcspn(s.at, "/?@") < length || is_address(s, meant))
        return refuse_without_scheme(p, meant);
    if (strcspn(s.at, UPPER) < length)
        return refuse(&p->why, "the scheme", " is written in lower case");
    if (strspn(s.at, LOWER DECIMAL "+") < length || strspn(s.at, LOWER) == 0)
        return refuse(&p->why, "the scheme", " is made of a-z, 0-9 and +, with a letter first");
    return take(p, s, "the scheme", &p->u->scheme);
}

static int parse_port(struct parser *p, struct span s, int *port)
{
    int value = 0;
    for (const char *c = s.at; c < s.end && value <= PORT_MAX; c++)
        value = *c >= '0' && *c <= '9' ? value * 10 + (*c - '0') : PORT_MAX + 1;
    if (value < 1 || value > PORT_MAX)
        return refuse(&p->why, "the port of a host", " is a number from 1 to 65535");
    *port = value;
    return 0;
}

static int parse_host(struct parser *p, struct span s, struct url_host *host)
{
    struct span name = {s.at, find(s, ':')};
    const char *rest = name.end;
    if (*s.at == '[') {
        name = (struct span){s.at + 1, find(s, ']')};
        if (name.end == s.end || find(name, ':') == name.end)
            return refuse(&p->why, "a host", " in brackets is an IPv6 address, as in [::1]:6379");
        rest = name.end + 1;
        if (rest < s.end && *rest != ':')
            return refuse(&p->why, "a host", " in brackets is followed by : and the port, if any");
    } else if (rest < s.end && find_last(s, ':') != rest) {
        return refuse(&p->why, "a host",
                      " has more than one colon: an IPv6 address stands in brackets, as in [::1]");
    }
    if (name.at == name.end)
        return refuse(&p->why, "the name of a host", " is empty");
    int rc = take(p, name, "the name of a host", &host->name);
    if (rc != 0)
        return rc;
    const char *fault = text_fault(host->name);
    if (fault != NULL)
        return refuse(&p->why, "the name of a host", fault);
    host->port = URL_PORT_NONE;
    return rest == s.end ? 0 : parse_port(p, (struct span){rest + 1, s.end}, &host->port);
}

static int parse_hosts(struct parser *p, struct span s)
{
    for (;;) {
        if (p->u->hosts == URL_HOSTS_MAX)
            return refuse(&p->why, "the URL", " has more than " DIGITS(URL_HOSTS_MAX) " hosts");
        struct span one = {s.at, find(s, ',')};
        int rc = parse_host(p, one, &p->u->host[p->u->hosts++]);
        if (rc != 0 || one.end == s.end)
            return rc;
        s.at = one.end + 1;
    }
}

static int parse_authority(struct parser *p, struct span s)
{
    struct span hosts = s;
    int rc = 0;
    const char *at = find_last(s, '@');
    if (at != NULL) {
        struct span user = {s.at, find((struct span){s.at, at}, ':')};
        show(p, user);
        if (user.at < user.end)
            rc = take(p, user, "the user", &p->u->user);
        if (rc == 0 && user.end < at) {
            rc = take(p, (struct span){user.end + 1, at}, "the password", &p->u->password);
            text_add(&p->shown, ":***");
        }
        hosts.at = at + 1;
        text_add(&p->shown, "@");
    }
    show(p, hosts);
    return rc != 0 || hosts.at == hosts.end ? rc : parse_hosts(p, hosts);
}

static int parse_option(struct parser *p, struct span s)
{
    struct simba_url *u = p->u;
    struct span name = {s.at, find(s, '=')};
    if (name.at == name.end)
        return refuse(&p->why, "an option", " has no name: write ?name=value&name=value");
    if (name.end == s.end)
        return refuse(&p->why, "an option", " has no value: write name=value, and & as %26");
    if (u->options == URL_OPTIONS_MAX)
        return refuse(&p->why, "the URL", " has more than " DIGITS(URL_OPTIONS_MAX) " options");
    struct url_option *o = &u->option[u->options];
    int rc = take(p, name, "the name of an option", &o->name);
    if (rc != 0)
        return rc;
    size_t length = strlen(o->name);
    if (length > URL_NAME_MAX || strspn(o->name, LOWER DECIMAL "_") < length)
        return refuse(&p->why, "the name of an option",
                      " has at most " DIGITS(URL_NAME_MAX) " letters, of a-z, 0-9 and _");
    if (simba_url_option(u, o->name) != NULL) {
        add_option(&p->why, u, u->options);
        return refuse(&p->why, " is given twice", "");
    }
    u->options++;
    struct span value = {name.end + 1, s.end};
    show(p, (struct span){name.at, value.at});
    if (is_secret(o->name))
        text_add(&p->shown, "***");
    else
        show(p, value);
    return take(p, value, "the value of an option", &o->value);
}

/* s begins with the question mark, or is empty. */
static int parse_options(struct parser *p, struct span s)
{
    int rc = 0;
    while (rc == 0 && s.at < s.end) {
        struct span one = {s.at + 1, find((struct span){s.at + 1, s.end}, '&')};
        show(p, (struct span){s.at, one.at});
        rc = parse_option(p, one);
        s.at = one.end;
    }
    return rc;
}

/* Is there an @ that may be the end of a password which we took for something else? */
static bool has_stray_at(struct span authority, struct span path, struct span query)
{
    const char *at = find(path, '@');
    bool plain = authority.at == authority.end && *path.at == '/' && find(path, ':') > at;
    return find(query, '@') < query.end || (at < path.end && !plain);
}

static int check_text(struct parser *p, const char *text)
{
    if (strlen(text) >= URL_BYTES_MAX)
        return refuse(&p->why, "the URL", " must be below " DIGITS(URL_BYTES_MAX) " bytes");
    if (strchr(text, '#') != NULL)
        return refuse(&p->why, "the URL", " has a #, which begins nothing here: write it as %23");
    const char *fault = text_fault(text);
    return fault == NULL ? 0 : refuse(&p->why, "the URL", fault);
}

static int parse(struct parser *p, const char *text)
{
    const char *end = text + strlen(text);
    struct span scheme = {text, find((struct span){text, end}, ':')};
    int rc = parse_scheme(p, scheme);
    if (rc != 0)
        return rc;
    struct span path = {scheme.end + 1, scheme.end + 1 + strcspn(scheme.end + 1, "?")};
    struct span query = {path.end, end};
    struct span authority = {path.at, path.at};
    if (strncmp(path.at, "//", 2) == 0) {
        authority.at = path.at + 2;
        authority.end = path.at = authority.at + strcspn(authority.at, "/?");
    }
    if (has_stray_at(authority, path, query))
        return refuse(&p->why, "the URL has an @ out of place",
                      ": but for the one before the host write / as %2F, ? as %3F and @ as %40");
    show(p, (struct span){text, authority.at});
    rc = parse_authority(p, authority);
    show(p, path);
    if (rc == 0)
        rc = take(p, path, "the path", &p->u->path);
    return rc != 0 ? rc : parse_options(p, query);
}

int url_parse(struct simba_url *u, const char *text, char *why, size_t why_size)
{
    memset(u, 0, sizeof(*u));
    struct parser p = {.u = u};
    text_init(&p.why, why, why_size);
    text_init(&p.shown, u->shown, sizeof(u->shown));
    int rc = check_text(&p, text);
    if (rc == 0)
        rc = parse(&p, text);
    if (rc != 0)
        url_wipe(u); /* half a URL is none, and may hold a password */
    return rc;
}

void url_wipe(struct simba_url *u)
{
    explicit_bzero(u, sizeof(*u));
}

/* ---- options ------------------------------------------------------------------------------- */

struct guess {
    const char *name; /* NULL: none */
    size_t edits;
};

/* Is one of these nearer to what was written? */
static void guess(struct guess *g, const char *written, const char *const *known)
{
    for (; *known != NULL; known++) {
        size_t edits = text_distance(written, *known);
        if (edits > NEAR && strncmp(*known, written, strlen(written)) == 0)
            edits = NEAR; /* an abbreviation */
        if (edits < g->edits)
            *g = (struct guess){*known, edits};
    }
}

static void add_known(struct text *why, const char *const *known)
{
    for (; *known != NULL; known++) {
        text_add(why, " ");
        text_add(why, *known);
    }
}

int url_check_options(const struct simba_url *u, const char *const *common, const char *const *own,
                      char *why, size_t why_size)
{
    static const char *const none[] = {NULL};
    own = own != NULL ? own : none;
    struct text t;
    text_init(&t, why, why_size);
    for (size_t i = 0; i < u->options; i++) {
        struct guess meant = {NULL, NEAR + 1};
        guess(&meant, u->option[i].name, common);
        guess(&meant, u->option[i].name, own);
        if (meant.edits == 0)
            continue;
        text_add(&t, "unknown ");
        add_option(&t, u, i);
        if (meant.name != NULL)
            return refuse(&t, "; did you mean ", meant.name);
        text_add(&t, "; known are:");
        add_known(&t, common);
        add_known(&t, own);
        return SIMBA_EINVAL;
    }
    return 0;
}

/* ---- for stores ---------------------------------------------------------------------------- */

/* The layout of a URL belongs to the version of the interface for stores. */
_Static_assert(sizeof(void *) != 8 ||
                   (SIMBA_BACKEND_VERSION == 8 && sizeof(struct simba_url) == 13104),
               "url.h");

const char *simba_url_scheme(const struct simba_url *u)
{
    return u != NULL ? u->scheme : NULL;
}

const char *simba_url_user(const struct simba_url *u)
{
    return u != NULL ? u->user : NULL;
}

const char *simba_url_password(const struct simba_url *u)
{
    return u != NULL ? u->password : NULL;
}

const char *simba_url_path(const struct simba_url *u)
{
    return u != NULL ? u->path : "";
}

bool simba_url_host(const struct simba_url *u, size_t n, const char **host, int *port)
{
    if (u == NULL || host == NULL || port == NULL || n >= u->hosts)
        return false;
    *host = u->host[n].name;
    *port = u->host[n].port;
    return true;
}

const char *simba_url_option(const struct simba_url *u, const char *name)
{
    for (size_t i = 0; u != NULL && name != NULL && i < u->options; i++)
        if (strcmp(u->option[i].name, name) == 0)
            return u->option[i].value;
    return NULL;
}

const char *simba_url_text(const struct simba_url *u)
{
    return u != NULL ? u->shown : "";
}
