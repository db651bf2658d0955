/* options.c: takes options of older and of newer programs. Nothing is read beyond the size that the
 * program states: there its memory ends. */
#include "runtime/options.h"

#include <assert.h>
#include <simba/backend.h>
#include <stdint.h>
#include <string.h>

#include "runtime/error.h"

static const struct simba_options client_defaults = SIMBA_OPTIONS_INIT;
static const struct simba_handle_options handle_defaults = SIMBA_HANDLE_OPTIONS_INIT;
static const struct simba_schedule schedule_defaults = SIMBA_SCHEDULE_INIT;
static const struct simba_memory_faults faults_defaults = SIMBA_MEMORY_FAULTS_INIT;
static const struct simba_metrics metrics_defaults = SIMBA_METRICS_INIT;

/* last: the field that its first version, of 0.1.0, ended with. */
#define KIND(name, of, what_, init_, last)                                           \
    const struct options_kind options_of_##name = {                                  \
        .tag = #of,                                                                  \
        .what = what_,                                                               \
        .init = init_,                                                               \
        .defaults = &name##_defaults,                                                \
        .size_first = offsetof(struct of, last) + sizeof(((struct of *)NULL)->last), \
        .size_now = sizeof(struct of),                                               \
    }

KIND(client, simba_options, "client options", "SIMBA_OPTIONS_INIT", reserved32); /* was padding */
KIND(handle, simba_handle_options, "handle options", "SIMBA_HANDLE_OPTIONS_INIT", data);
KIND(schedule, simba_schedule, "a schedule", "SIMBA_SCHEDULE_INIT", initial_delay_ms);
KIND(faults, simba_memory_faults, "faults", "SIMBA_MEMORY_FAULTS_INIT", seed);
KIND(metrics, simba_metrics, "metrics", "SIMBA_METRICS_INIT", callback);

bool options_size_valid(const struct options_kind *kind, size_t size)
{
    return size >= kind->size_first && size <= OPTIONS_SIZE_MAX && size % sizeof(uintptr_t) == 0;
}

/* Pointers and flags are unset as zero, durations as SIMBA_DEFAULT, all bits set. */
static bool is_unset(const char *field, const char *end)
{
    for (; field < end; field += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, field, sizeof word);
        if (word != 0 && word != UINTPTR_MAX)
            return false;
    }
    return true;
}

int options_take(const struct options_kind *kind, const void *given, void *out)
{
    assert(kind->size_now >= kind->size_first);
    assert(options_size_valid(kind, kind->size_now));
    size_t size, known = kind->size_now;
    memcpy(out, kind->defaults, known);
    if (given == NULL)
        return 0;
    memcpy(&size, given, sizeof size);
    if (!options_size_valid(kind, size))
        return error_say(SIMBA_EINVAL, "%s must start as %s", kind->what, kind->init);
    if (size > known && !is_unset((const char *)given + known, (const char *)given + size))
        return error_say(
            SIMBA_EUNSUPPORTED,
            "struct %s sets a field that libsimba %s does not know: leave it unset, or "
            "install the libsimba that the program was built with",
            kind->tag, simba_version());
    memcpy(out, given, size < known ? size : known);
    memcpy(out, &known, sizeof known); /* it is of this library's size now */
    return 0;
}

void options_give(const struct options_kind *kind, const void *from, void *out)
{
    size_t size, known = kind->size_now;
    memcpy(&size, out, sizeof size);
    assert(options_size_valid(kind, size));
    if (size < known)
        known = size;
    memcpy(out, from, known);
    memset((char *)out + known, 0, size - known);
    memcpy(out, &size, sizeof size);
}
