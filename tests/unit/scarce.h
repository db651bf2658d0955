/* scarce.h: memory and threads that end, for the one test program that includes it. The linker
 * leads malloc and its relatives here (--wrap, in CMakeLists.txt); libraries of others are not
 * concerned. */
#ifndef UNIT_SCARCE_H
#define UNIT_SCARCE_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS_MAX 400
#define PATIENCE_MS 20000

/* ---- memory and threads that end ----------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t count);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t count);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

/* The call after so many fails. */
static atomic_int memory = INT_MAX, threads = INT_MAX;
static bool for_good; /* and so do all later ones */

static bool ends(atomic_int *supply)
{
    int left = atomic_fetch_sub(supply, 1);
    return left == 0 || (left < 0 && for_good);
}

void *__wrap_malloc(size_t size)
{
    return ends(&memory) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return ends(&memory) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return ends(&memory) ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return ends(&memory) ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t count)
{
    return ends(&memory) ? NULL : __real_strndup(text, count);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return ends(&threads) ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

/* ---- what must hold ------------------------------------------------------------------------ */

/* Also in a child, which must not go on with the tests. */
#define MUST(condition)                                                                     \
    ((condition)                                                                            \
         ? (void)0                                                                          \
         : (fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, simba_error_text()), \
            abort()))

/* Returns what it was given; a failure must have words. */
static int say(int code, const char *word)
{
    const char *text = simba_error_text();
    MUST(code == 0 || text[0] != '\0');
    MUST(code == 0 || strstr(text, word) != NULL);
    return code;
}

/* What cannot be made for want of something says so. */
static int make(int code, const char *word)
{
    MUST(code == 0 || code == SIMBA_ELIMIT);
    return say(code, word);
}

static void log_line(void *data, enum simba_level level, const char *line)
{
    (void)data;
    (void)level;
    (void)line;
}

/* live() is false if there was not enough to open its client. */
static void whatever_fails(atomic_int *supply, bool (*live)(const char *word), const char *word)
{
    bool opened = false, failed = true;
    for (int n = 0; failed && n < STEPS_MAX; n++) {
        atomic_store(supply, n);
        opened = live(word);
        failed = atomic_load(supply) < 0; /* there was an n-th call */
        atomic_store(supply, INT_MAX);
    }
    assert_true(opened);
    assert_false(failed);
}
#endif
