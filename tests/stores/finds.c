/* finds.c: the store of examples/backend.c, which says of itself what its URL tells it to:
 *     finds:FOLDER?kind=1&level=1&text=TEXT        and with lease_ms= and outage_ms=
 * and answers as late as its URL says: delay_ms=, and every seventh batch another peak_ms=.
 * For tests of those who decide by what a store says, and when. */
#include <time.h>

#define simba_module dir_module
#include "../../examples/backend.c" // NOLINT(bugprone-suspicious-include)
#undef simba_module

static struct simba_finding finding;
static char text[256];
static int64_t delay_ms, peak_ms;

static int64_t number(const struct simba_url *url, const char *name)
{
    const char *value = simba_url_option(url, name);
    return value != NULL ? strtoll(value, NULL, 10) : 0;
}

static int open_finds(struct simba_host *host, const struct simba_url *url, void **store, char *why,
                      size_t why_size)
{
    const char *said = simba_url_option(url, "text");
    snprintf(text, sizeof text, "%s", said != NULL ? said : "");
    finding = (struct simba_finding){
        .kind = (enum simba_finding_kind)number(url, "kind"),
        .level = (enum simba_level)number(url, "level"),
        .text = text,
        .lease_ms = number(url, "lease_ms"),
        .outage_ms = number(url, "outage_ms"),
    };
    delay_ms = number(url, "delay_ms");
    peak_ms = number(url, "peak_ms");
    return open_dir(host, url, store, why, why_size);
}

static void submit_late(void *store, struct simba_request *batch)
{
    static int count;
    int64_t ms = delay_ms + (++count % 7 == 0 ? peak_ms : 0);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    dir_module()->submit(store, batch);
}

static void examine(void *store, struct simba_request *q)
{
    struct simba_host *host = ((struct dir *)store)->host;
    host->say(host, q, &finding);
    host->answer(host, q, &(struct simba_answer){.age_ms = -1});
}

const struct simba_backend *simba_module(void);

const struct simba_backend *simba_module(void)
{
    static const char *const schemes[] = {"finds", NULL};
    static const char *const options[] = {"kind",      "level",    "text",    "lease_ms",
                                          "outage_ms", "delay_ms", "peak_ms", NULL};
    static struct simba_backend backend;
    backend = *dir_module();
    backend.schemes = schemes;
    backend.options = options;
    backend.open = open_finds;
    backend.submit = submit_late;
    backend.examine = examine;
    return &backend;
}
