/* record.c: simba watch --record: what watch tells goes to a recorder, too. */
#include "cli/commands/watch.h"
#include "serve/commands.h"
#include "serve/recorder.h"

static struct recorder *recorder;

static struct step open_file(const struct cli *c, const char *path, int64_t keep_ms)
{
    return recorder_open(c, path, keep_ms > 0 ? keep_ms : HISTORY_KEEP_MS, &recorder);
}

static struct step begin(struct follow *f, char *const *names, size_t count, int over)
{
    recorder_limit(recorder, names, count);
    recorder_tell(recorder, over);
    return recorder_begin(recorder, f);
}

static void add(struct seen_tenure *t)
{
    recorder_add(recorder, t);
}

static bool is_gone(void)
{
    return recorder_is_gone(recorder);
}

static void end(void)
{
    recorder_end(recorder);
}

int watch_and_record(struct cli *c)
{
    static const struct recording recording = {open_file, begin, add, is_gone, end};
    return watch(c, &recording);
}
