/* test_options.c: structs of every size, as programs older and newer than this library have them.
 * Each lies at the very end of its memory: whatever is read beyond its size ends the test. */
#include <setjmp.h>
#include <simba/backend.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/options.h"

#define WORD sizeof(uintptr_t)
#define SIZE_OF_PAGES 32768
#define URL "memory:options"
#define GIVEN 0x1234 /* in every field that a program sets */

static const struct options_kind *const kinds[] = {
    &options_of_client,
    &options_of_handle,
    &options_of_schedule,
    &options_of_faults,
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* ---- memory that ends ---------------------------------------------------------------------- */

static char *memory_end;

static int reserve(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, SIZE_OF_PAGES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        return -1;
    memory_end = p + SIZE_OF_PAGES;
    return mprotect(memory_end, page, PROT_NONE);
}

/* A struct of that size, all of its words set; the size itself is always there. */
static void *set_at_end(size_t size)
{
    char *p = memory_end - (size <= sizeof size ? sizeof size : (size + WORD - 1) / WORD * WORD);
    for (size_t at = 0; at + WORD <= size; at += WORD)
        memcpy(p + at, &(uintptr_t){GIVEN}, WORD);
    memcpy(p, &size, sizeof size);
    return p;
}

/* As an INIT macro leaves it in a header of that size: unknown fields are unset, in both ways. */
static void *init_at_end(const struct options_kind *kind, size_t size)
{
    char *p = set_at_end(size);
    memcpy(p, kind->defaults, size < kind->size_now ? size : kind->size_now);
    memcpy(p, &size, sizeof size);
    for (size_t at = kind->size_now; at + WORD <= size; at += WORD)
        memset(p + at, at / WORD % 2 == 0 ? 0xff : 0, WORD);
    return p;
}

/* ---- options_take -------------------------------------------------------------------------- */

static void every_size_is_taken_or_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const struct options_kind *kind = kinds[k];
        for (size_t size = 0; size <= 2 * kind->size_now; size++) {
            char out[1024], text[128];
            snprintf(text, sizeof text, "%s must start as %s", kind->what, kind->init);
            int rc = options_take(kind, init_at_end(kind, size), out);
            bool valid = size >= kind->size_first && size % WORD == 0;
            assert_int_equal(rc, valid ? 0 : SIMBA_EINVAL);
            assert_memory_equal(out, kind->defaults, kind->size_now);
            if (!valid)
                assert_string_equal(simba_error_text(), text);
        }
        assert_int_equal(options_take(kind, NULL, (char[1024]){0}), 0);
    }
}

static void what_an_older_program_set_is_kept(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const struct options_kind *kind = kinds[k];
        for (size_t size = kind->size_first; size <= kind->size_now; size += WORD) {
            char out[1024];
            char *given = set_at_end(size);
            assert_int_equal(options_take(kind, given, out), 0);
            assert_memory_equal(out, &kind->size_now, sizeof(size_t));
            assert_memory_equal(out + WORD, given + WORD, size - WORD);
            assert_memory_equal(out + size, (const char *)kind->defaults + size,
                                kind->size_now - size);
        }
    }
}

static void one_unknown_field_that_is_set_is_refused(void **state)
{
    (void)state;
    static const uintptr_t set[] = {1, UINTPTR_MAX - 1, UINTPTR_MAX >> 1, UINT32_MAX >> 1};
    char tag[64];
    for (size_t k = 0; k < KINDS; k++) {
        const struct options_kind *kind = kinds[k];
        size_t size = 2 * kind->size_now;
        snprintf(tag, sizeof tag, "struct %s sets a field that libsimba %s does not", kind->tag,
                 simba_version());
        for (size_t at = kind->size_now; at < size; at += WORD) {
            char out[1024];
            char *given = init_at_end(kind, size);
            memcpy(given + at, &set[at / WORD % 4], WORD);
            assert_int_equal(options_take(kind, given, out), SIMBA_EUNSUPPORTED);
            assert_non_null(strstr(simba_error_text(), tag));
            assert_non_null(strstr(simba_error_text(), "leave it unset, or install"));
        }
    }
}

static void absurd_sizes_are_refused_unread(void **state)
{
    (void)state;
    static const size_t absurd[] = {OPTIONS_SIZE_MAX + WORD, SIZE_MAX, SIZE_MAX - 7, SIZE_MAX / 2};
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
            char out[1024];
            size_t *given = set_at_end(sizeof(size_t));
            *given = absurd[i];
            assert_int_equal(options_take(kinds[k], given, out), SIMBA_EINVAL);
        }
    }
    struct options_kind large = options_of_client;
    assert_int_equal(options_take(&large, init_at_end(&large, OPTIONS_SIZE_MAX), (char[1024]){0}),
                     0);
}

/* ---- the public functions ------------------------------------------------------------------ */

static int no_work(void *data, const simba_run *run)
{
    (void)data;
    (void)run;
    return 0;
}

static void ignore(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

/* All functions that take options, with a struct of the size; by malloc, for AddressSanitizer. */
static int try_all(simba_client *s, const struct options_kind *kind, char *given)
{
    simba_client *opened = NULL;
    simba_contender *c = NULL;
    simba_locker *l = NULL;
    simba_observer *w = NULL;
    simba_scheduler *x = NULL;
    struct simba_schedule schedule = SIMBA_SCHEDULE_INIT;
    schedule.period_ms = 1000;
    if (kind == &options_of_client) {
        int rc = simba_open(URL, (void *)given, &opened);
        simba_close(opened, SIMBA_FOREVER);
        return rc;
    }
    if (kind == &options_of_faults)
        return simba_memory_set_faults(URL, (void *)given);
    if (kind == &options_of_schedule) {
        int rc = simba_scheduler_create(s, "m", (void *)given, no_work, NULL, &x);
        simba_scheduler_destroy(x);
        return rc;
    }
    const struct simba_handle_options *options = (void *)given;
    char *on_changed = given + offsetof(struct simba_handle_options, on_changed);
    int rc = simba_contender_create(s, "m", options, &c);
    assert_int_equal(simba_locker_create(s, "m", options, &l), rc);
    assert_int_equal(simba_scheduler_create(s, "m", &schedule, no_work, options, &x), rc);
    memcpy(on_changed, &(simba_state_fn *){ignore}, sizeof(simba_state_fn *));
    assert_int_equal(simba_observer_create(s, "m", options, &w), rc);
    memset(on_changed, 0, sizeof(simba_state_fn *));
    simba_contender_destroy(c);
    simba_locker_destroy(l);
    simba_observer_destroy(w);
    simba_scheduler_destroy(x);
    return rc;
}

static void the_public_functions_take_them(void **state)
{
    (void)state;
    simba_client *s = NULL;
    assert_int_equal(simba_open(URL, NULL, &s), 0);
    for (size_t k = 0; k < KINDS; k++) {
        const struct options_kind *kind = kinds[k];
        const size_t sizes[] = {kind->size_first - WORD, kind->size_first, kind->size_now,
                                kind->size_now + WORD, 2 * kind->size_now};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *given = malloc(sizes[i]);
            assert_non_null(given);
            memcpy(given, init_at_end(kind, sizes[i]), sizes[i]);
            if (kind == &options_of_schedule)
                memcpy(given + offsetof(struct simba_schedule, period_ms), &(int64_t){1000}, 8);
            assert_int_equal(try_all(s, kind, given), i == 0 ? SIMBA_EINVAL : 0);
            given[sizes[i] - 1] ^= 1;
            if (i > 2)
                assert_int_equal(try_all(s, kind, given), SIMBA_EUNSUPPORTED);
            free(given);
        }
    }
    assert_int_equal(simba_close(s, SIMBA_FOREVER), 0);
}

static void metrics_of_every_size_are_filled(void **state)
{
    (void)state;
    const struct options_kind *kind = &options_of_metrics;
    struct simba_metrics all = SIMBA_METRICS_INIT;
    simba_client *s = NULL;
    simba_contender *c = NULL;
    assert_int_equal(simba_open(URL, NULL, &s), 0);
    assert_int_equal(simba_contender_create(s, "m", NULL, &c), 0);
    assert_int_equal(simba_metrics_read(s, &all), 0);
    assert_int_equal(all.handles, 1);
    for (size_t size = 0; size <= 2 * sizeof all; size++) {
        char *out = set_at_end(size), *end = out + (size < sizeof all ? size : sizeof all);
        bool valid = size >= kind->size_first && size % WORD == 0;
        assert_int_equal(simba_metrics_read(s, (void *)out), valid ? 0 : SIMBA_EINVAL);
        if (!valid)
            continue;
        assert_memory_equal(out, &size, sizeof size);
        assert_memory_equal(out + WORD, (char *)&all + WORD, (size_t)(end - out) - WORD);
        for (; end < memory_end; end++)
            assert_int_equal(*end, 0);
    }
    size_t *absurd = set_at_end(sizeof(size_t));
    *absurd = SIZE_MAX - 7;
    assert_int_equal(simba_metrics_read(s, (void *)absurd), SIMBA_EINVAL);
    assert_int_equal(simba_close(s, SIMBA_FOREVER), 0);
}

/* 0.1 had padding behind flags, in which anything may stand. */
static void padding_of_the_first_version_is_not_read(void **state)
{
    (void)state;
    simba_client *s = NULL;
    struct simba_options *o = init_at_end(&options_of_client, options_of_client.size_first);
    memset((char *)o + options_of_client.size_first - 4, 0xa5, 4);
    assert_int_equal(simba_open(URL, o, &s), 0);
    assert_int_equal(simba_close(s, SIMBA_FOREVER), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_taken_or_refused),
        cmocka_unit_test(what_an_older_program_set_is_kept),
        cmocka_unit_test(one_unknown_field_that_is_set_is_refused),
        cmocka_unit_test(absurd_sizes_are_refused_unread),
        cmocka_unit_test(the_public_functions_take_them),
        cmocka_unit_test(metrics_of_every_size_are_filled),
        cmocka_unit_test(padding_of_the_first_version_is_not_read),
    };
    return cmocka_run_group_tests(tests, reserve, NULL);
}
