/* main.c: runs the scenarios of this folder (scenario.h).
 *
 *   sim-scenarios [--print] [WORD...]
 *
 * WORDs choose the scenarios whose title has one of them. --print shows what happened, in the form
 * in which it is written, and compares nothing: for a new scenario write the lines with stars,
 * print, and read it well. */
#include <assert.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"
#include "world.h"

#define INDENT "    "

struct settings {
    bool print;
    char **patterns;
    int count;
};

struct result {
    unsigned passed, failed;
};

static bool is_chosen(const struct settings *s, const char *title)
{
    for (int i = 0; i < s->count; i++) {
        if (strcasestr(title, s->patterns[i]) != NULL)
            return true;
    }
    return s->count == 0;
}

static size_t first_difference(const struct transcript *a, const struct transcript *b)
{
    size_t i = 0;
    while (i < a->count && i < b->count && strcmp(a->line[i], b->line[i]) == 0)
        i++;
    return i;
}

static void show(const char *name, const struct transcript *t, size_t marked)
{
    printf("  %s:\n", name);
    for (size_t i = 0; i < t->count; i++)
        printf("  %s%s\n", i == marked ? "--> " : "    ", t->line[i]);
}

static void run(const struct settings *s, const struct scenario *scenario, struct result *result)
{
    static struct transcript happened;
    if (!is_chosen(s, scenario->title))
        return;
    const struct transcript *written = &scenario->written;
    scenario_run(written, &happened);
    if (s->print) {
        printf("## %s\n\n", scenario->title);
        for (size_t i = 0; i < happened.count; i++)
            printf(INDENT "%s\n", happened.line[i]);
        printf("\n");
        return;
    }
    size_t at = first_difference(written, &happened);
    bool same = at == written->count && at == happened.count && written->count > 0;
    printf("%s  %s\n", same ? "ok    " : "FAILED", scenario->title);
    if (!same) {
        show("written", written, at);
        show("happened", &happened, at);
    }
    result->passed += same;
    result->failed += !same;
}

static void strip_end(char *line)
{
    size_t length = strlen(line);
    while (length > 0 && strchr(" \r\n", line[length - 1]) != NULL)
        line[--length] = '\0';
}

static void keep_line(struct scenario *scenario, const char *line)
{
    struct transcript *t = &scenario->written;
    assert(t->count < LINES_MAX);
    snprintf(t->line[t->count++], LINE_SIZE, "%.*s", LINE_SIZE - 1, line);
}

static void run_file(const struct settings *s, const char *path, struct result *result)
{
    static struct scenario scenario;
    char line[512];
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        perror(path);
        result->failed++;
        return;
    }
    bool any = false;
    while (fgets(line, sizeof line, f) != NULL) {
        strip_end(line);
        if (strncmp(line, "## ", 3) == 0) {
            if (any)
                run(s, &scenario, result);
            any = true;
            snprintf(scenario.title, LINE_SIZE, "%.*s", LINE_SIZE - 1, line + 3);
            scenario.written.count = 0;
        } else if (any && strncmp(line, INDENT, strlen(INDENT)) == 0) {
            keep_line(&scenario, line + strlen(INDENT));
        }
    }
    if (any)
        run(s, &scenario, result);
    fclose(f);
}

int main(int argc, char **argv)
{
    struct settings s = {.print = false};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--print") == 0) {
            s.print = true;
        } else {
            fputs("usage: sim-scenarios [--print] [WORD...]\n", stderr);
            return 64;
        }
    }
    s.patterns = argv + i;
    s.count = argc - i;

    glob_t files;
    struct result result = {.passed = 0};
    if (glob(SCENARIOS "/*.md", 0, NULL, &files) != 0) {
        fputs("there are no scenarios in " SCENARIOS "\n", stderr);
        return 1;
    }
    for (size_t file = 0; file < files.gl_pathc; file++)
        run_file(&s, files.gl_pathv[file], &result);
    globfree(&files);
    if (s.print)
        return 0;
    printf("%u passed, %u failed\n", result.passed, result.failed);
    return result.passed == 0 || result.failed > 0;
}
