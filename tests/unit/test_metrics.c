/* test_metrics.c: every line for Prometheus is in its text format, whatever the locale and the
 * names are; and Prometheus' own parser agrees (check_page.py). */
#include <limits.h>
#include <locale.h>
#include <regex.h>
#include <setjmp.h>
#include <simba.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000
#define NAME "[a-zA-Z_:][a-zA-Z0-9_:]*"
#define LABEL "[a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\]|\\\\[\"\\n])*\""
#define HEAD "^# (HELP " NAME " .*|TYPE " NAME " (counter|gauge|histogram|summary))$"
#define SAMPLE "^" NAME "([{]" LABEL "(," LABEL ")*[}])? [0-9]+([.][0-9]+)?$"
#define ODD "new\nline \"quoted\" back\\slash \\n\xc3\xa4"
#define ODD_ESCAPED "new\\nline \\\"quoted\\\" back\\\\slash \\\\n\xc3\xa4"

/* ---- a locale with a decimal comma --------------------------------------------------------- */

static char folder[] = "/tmp/simba-locale.XXXXXX";

static void run(const char *const argv[])
{
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

static bool has_comma(const char *name)
{
    return setlocale(LC_ALL, name) != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* One that is installed, or else one of our own making. */
static bool use_comma(void)
{
    char made[PATH_MAX];
    if (has_comma("de_DE.UTF-8") || has_comma("fr_FR.UTF-8") || mkdtemp(folder) == NULL)
        return localeconv()->decimal_point[0] == ',';
    snprintf(made, sizeof made, "%s/de_DE.UTF-8", folder);
    run((const char *const[]){"localedef", "-i", "de_DE", "-f", "UTF-8", made, NULL});
    setenv("LOCPATH", folder, 1);
    bool found = has_comma("de_DE.UTF-8");
    run((const char *const[]){"rm", "-r", folder, NULL});
    return found;
}

/* ---- the text format ----------------------------------------------------------------------- */

static bool matches(const char *line, const char *pattern)
{
    regex_t r;
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool yes = regexec(&r, line, 0, NULL, 0) == 0;
    regfree(&r);
    return yes;
}

/* The type of a name is told once, before its first sample. */
static void check_type(const char *text, const char *line)
{
    char head[128];
    size_t length = strcspn(line, "{ ");
    static const char *const parts[] = {"_bucket", "_sum", "_count"};
    for (size_t i = 0; i < 3; i++) {
        size_t part = strlen(parts[i]);
        if (length > part && strncmp(line + length - part, parts[i], part) == 0)
            length -= part;
    }
    snprintf(head, sizeof head, "# TYPE %.*s ", (int)length, line);
    const char *first = strstr(text, head);
    if (first == NULL || strstr(first + 1, head) != NULL)
        fail_msg("not once: %s", head);
}

/* Buckets rise to the sum of all. */
static void check_bucket(const char *line, double *bound, unsigned long long *count)
{
    const char *le = strstr(line, "_bucket{le=\"");
    if (le == NULL)
        return;
    bool last = strncmp(le + 12, "+Inf", 4) == 0;
    unsigned long long now = strtoull(strrchr(line, ' '), NULL, 10);
    char number[32];
    snprintf(number, sizeof number, "%.*s", (int)strcspn(le + 12, "\""), le + 12);
    assert_true(last || matches(number, "^[0-9]+[.][0-9]+$"));
    number[strcspn(number, ".")] = localeconv()->decimal_point[0]; /* for strtod */
    double here = last ? 0 : strtod(number, NULL);
    assert_true(now >= *count);
    assert_true(last || here > *bound);
    *count = last ? 0 : now;
    *bound = here;
}

static void check_text(char *text)
{
    char *whole = strdup(text), *rest = text;
    double bound = 0;
    unsigned long long count = 0;
    assert_non_null(whole);
    assert_int_equal(text[strlen(text) - 1], '\n');
    text[strlen(text) - 1] = '\0';
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!matches(line, line[0] == '#' ? HEAD : SAMPLE))
            fail_msg("not in the format: %s", line);
        if (line[0] == '#')
            continue;
        check_type(whole, line);
        check_bucket(line, &bound, &count);
    }
    free(whole);
}

static simba_client *open_odd(const char *url, const char *labels)
{
    struct simba_options o = SIMBA_OPTIONS_INIT;
    simba_client *s = NULL;
    o.labels = labels;
    assert_int_equal(simba_open(url, &o, &s), 0);
    return s;
}

/* A contender that owns the mutex with the odd name. */
static void own_odd(simba_client *s)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_contender *c = NULL;
    o.id = ODD;
    assert_int_equal(simba_contender_create(s, ODD, &o, &c), 0);
    assert_int_equal(simba_contender_start(c), 0);
    assert_int_equal(simba_contender_wait(c, SIMBA_RUNNING, PATIENCE_MS), 0);
}

static void read_metrics(void)
{
    simba_client *s = open_odd("memory:odd%22%0A%5Cname", NULL);
    own_odd(s);
    static char text[1 << 16];
    assert_in_range(simba_metrics_prometheus(&s, 1, SIMBA_PER_HANDLE, text, sizeof text), 1000,
                    sizeof text - 1);
    assert_non_null(
        strstr(text, "\nsimba_mutex_owned{mutex=\"" ODD_ESCAPED "\",id=\"" ODD_ESCAPED "\"} 1\n"));
    check_text(text);
    assert_int_equal(simba_close(s, PATIENCE_MS), 0);
}

/* ---- Prometheus' parser -------------------------------------------------------------------- */

static void ignore(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data;
    (void)mutex;
    (void)state;
}

/* Several handles with one mutex and one id. */
static void add_observers(simba_client *s)
{
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_observer *w = NULL;
    o.on_changed = ignore;
    for (int i = 0; i < 3; i++)
        assert_int_equal(simba_observer_create(s, i > 0 ? ODD : NULL, &o, &w), 0);
}

static int run_parser(const char *page, size_t clients)
{
    char file[] = "/tmp/simba-page.XXXXXX", count[8];
    int fd = mkstemp(file), status = -1;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, page, strlen(page)), (ssize_t)strlen(page));
    close(fd);
    snprintf(count, sizeof count, "%zu", clients);
    pid_t child = fork();
    if (child == 0) {
        /* Debian's package belongs to Debian's Python. */
        execl("/usr/bin/python3", "/usr/bin/python3", CHECK_PAGE, file, count, ODD, (char *)NULL);
        execlp("python3", "python3", CHECK_PAGE, file, count, ODD, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    unlink(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void parse_pages(size_t count)
{
    static const char *const labels[] = {NULL, "app=\"" ODD_ESCAPED "\"", "app=\"x\",zone=\"y\""};
    static char page[1 << 18];
    simba_client *s[3];
    for (size_t i = 0; i < count; i++) {
        s[i] = open_odd("memory:odd%22%0A%5Cname", labels[i]);
        own_odd(s[i]);
        add_observers(s[i]);
    }
    assert_in_range(simba_metrics_prometheus(s, count, SIMBA_PER_HANDLE, page, sizeof page), 1000,
                    sizeof page - 1);
    int result = run_parser(page, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(simba_close(s[i], PATIENCE_MS), 0);
    if (result == 77 || result == 127) {
        fprintf(stderr, "skipped: Prometheus' parser for Python is missing (Debian: "
                        "python3-prometheus-client)\n");
        skip();
    }
    assert_int_equal(result, 0);
}

static void parsed_of_one_client(void **state)
{
    (void)state;
    parse_pages(1);
}

static void parsed_of_three_clients(void **state)
{
    (void)state;
    parse_pages(3);
}

/* ---- in C ---------------------------------------------------------------------------------- */

static void in_the_text_format(void **state)
{
    (void)state;
    setlocale(LC_ALL, "C");
    read_metrics();
}

static void where_numbers_have_a_comma(void **state)
{
    (void)state;
    char number[8];
    if (!use_comma()) {
        fprintf(stderr, "skipped: no locale with a decimal comma is installed, and localedef "
                        "cannot make one\n");
        skip();
    }
    snprintf(number, sizeof number, "%.1f", 0.5);
    assert_string_equal(number, "0,5");
    read_metrics();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsed_of_one_client),
        cmocka_unit_test(parsed_of_three_clients),
        cmocka_unit_test(in_the_text_format),
        cmocka_unit_test(where_numbers_have_a_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
