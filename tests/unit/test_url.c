/* test_url.c: URLs as users write them and as nobody should; and that no password gets out. */
#include "core/url.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct simba_url url;
static char why[256];

/* The parts of the URL in one line, those that are not there left out. */
static const char *parts(void)
{
    static char line[256];
    struct text t;
    text_init(&t, line, sizeof(line));
    text_add(&t, simba_url_scheme(&url));
    const char *user = simba_url_user(&url);
    if (user != NULL) {
        text_add(&t, " user=");
        text_add(&t, user);
    }
    const char *password = simba_url_password(&url);
    if (password != NULL) {
        text_add(&t, " password=");
        text_add(&t, password);
    }
    const char *host;
    int port;
    for (size_t n = 0; simba_url_host(&url, n, &host, &port); n++) {
        text_add(&t, " host=");
        text_add(&t, host);
        text_add(&t, " ");
        text_add_int(&t, port);
    }
    text_add(&t, " path=");
    text_add(&t, simba_url_path(&url));
    return line;
}

static void parts_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text, *parts;
    } cases[] = {
        {"memory:", "memory path="},
        {"memory:a b", "memory path=a b"},
        {"sqlite:x.db", "sqlite path=x.db"},
        {"sqlite:./x,y.db", "sqlite path=./x,y.db"},
        {"sqlite:/a/b.db", "sqlite path=/a/b.db"},
        {"sqlite:///a/b.db", "sqlite path=/a/b.db"},
        {"sqlite:/home/me@corp/x:y", "sqlite path=/home/me@corp/x:y"},
        {"sqlite:///home/me@corp/x", "sqlite path=/home/me@corp/x"},
        {"sqlite:a%3Fb%23c%25%40", "sqlite path=a?b#c%@"},
        {"sqlite:caf\u00e9%FF", "sqlite path=caf\u00e9\xff"},
        {"redis+unix:///sock", "redis+unix path=/sock"},
        {"redis+unix://:pw@/sock", "redis+unix password=pw path=/sock"},
        {"mysql://u:p@/db", "mysql user=u password=p path=/db"},
        {"redis://", "redis path="},
        {"redis://h", "redis host=h -1 path="},
        {"redis://h/", "redis host=h -1 path=/"},
        {"redis://h:1/0", "redis host=h 1 path=/0"},
        {"r2d2://h:65535", "r2d2 host=h 65535 path="},
        {"redis://h:06379", "redis host=h 6379 path="},
        {"redis://u@h", "redis user=u host=h -1 path="},
        {"redis://@h", "redis host=h -1 path="},
        {"redis://:p@h", "redis password=p host=h -1 path="},
        {"redis://u:@h", "redis user=u password= host=h -1 path="},
        {"redis://u:p@ss@h", "redis user=u password=p@ss host=h -1 path="},
        {"redis://u:p:q@h:2", "redis user=u password=p:q host=h 2 path="},
        {"redis://u:[p,q]@h", "redis user=u password=[p,q] host=h -1 path="},
        {"redis://%75%3A:%2F%3f%40%0A@h", "redis user=u: password=/?@\n host=h -1 path="},
        {"redis://[::1]", "redis host=::1 -1 path="},
        {"redis://[fe80::1%25eth0]:7/1", "redis host=fe80::1%eth0 7 path=/1"},
        {"zookeeper://a:2181,b,[::2]:2183/chroot",
         "zookeeper host=a 2181 host=b -1 host=::2 2183 path=/chroot"},
        {"postgresql://%2Frun%2Fpg/db", "postgresql host=/run/pg -1 path=/db"},
        {"redis://h//x?a=b", "redis host=h -1 path=//x"},
        {"redis://h?a=b", "redis host=h -1 path="},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int rc = url_parse(&url, cases[i].text, why, sizeof(why));
        assert_string_equal(why, "");
        assert_int_equal(rc, 0);
        assert_string_equal(parts(), cases[i].parts);
    }
}

static void options_are_found(void **state)
{
    (void)state;
    assert_int_equal(
        url_parse(&url, "sqlite:x?t%74l=1%26s&e=&b=c=d?e/f:g&plus=a+b&x_9=%FF", why, sizeof(why)),
        0);
    assert_int_equal(url.options, 5);
    assert_string_equal(simba_url_path(&url), "x");
    assert_string_equal(simba_url_option(&url, "ttl"), "1&s");
    assert_string_equal(simba_url_option(&url, "e"), "");
    assert_string_equal(simba_url_option(&url, "b"), "c=d?e/f:g");
    assert_string_equal(simba_url_option(&url, "plus"), "a+b");
    assert_string_equal(simba_url_option(&url, "x_9"), "\xff");
    assert_null(simba_url_option(&url, "t"));
    assert_null(simba_url_option(&url, ""));
}

/* Each text is refused with a message that says `rule`, and leaves nothing behind. */
#define REFUSED(rule, ...) refused(rule, (const char *const[]){__VA_ARGS__, NULL})
static void refused(const char *rule, const char *const *texts)
{
    static const struct simba_url empty;
    for (; *texts != NULL; texts++) {
        memset(&url, 'x', sizeof(url));
        int rc = url_parse(&url, *texts, why, sizeof(why));
        if (rc == 0 || strstr(why, rule) == NULL)
            print_error("%s: \"%s\" does not say %s\n", *texts, why, rule);
        assert_int_equal(rc, SIMBA_EINVAL);
        assert_non_null(strstr(why, rule));
        assert_memory_equal(&url, &empty, sizeof(url));
    }
}

static void wrong_ones_are_refused_by_rule(void **state)
{
    (void)state;
    REFUSED("no scheme", "", "x.db", "/var/x.db", "/var/x:y.db", "./a?b:c", "redis//h:1",
            "localhost:6379/0", "db1:5432", "127.0.0.1:20645", "db1.example.com:1/0");
    REFUSED("here it may be redis://", "localhost:6379/0", "user:secret@db1:6379", "10.0.0.7:6379");
    REFUSED("here it may be sqlite:", "x.db", "/var/lib/locks", "./a");
    REFUSED("here it may be postgresql://", "db1:5432");
    REFUSED("before the host", "db1.example.com:5432x");
    REFUSED("@ out of place", "redis:u@h:6379");
    REFUSED("letter first", ":", "://h", "2x://h", "+x://h", "re-dis://h", "re%64is://h",
            "r\u00e9dis://h", " redis://h");
    REFUSED("lower case", "Redis://h", "redIS://h");
    REFUSED("%23", "redis://h#x");
    REFUSED("control character", "redis://h/a\nb", "redis://h\x7f");
    REFUSED("UTF-8", "redis://h/\xff");
    REFUSED("the name of a host holds a control character", "redis://%0A");
    REFUSED("the name of a host is not valid UTF-8", "redis://%ff");
    REFUSED("the name of a host has a %00", "redis://%00");
    REFUSED("the name of a host has a % without", "redis://h%");
    REFUSED("the user has a % without", "redis://%u:p@h");
    REFUSED("the user has a %00", "redis://u%00:p@h");
    REFUSED("the password has a % without", "redis://u:p%2@h");
    REFUSED("the password has a %00", "redis://u:p%00@h");
    REFUSED("the path has a % without", "redis://h/%4");
    REFUSED("the path has a %00", "sqlite:a%00");
    REFUSED("the name of an option has a % without", "redis://h?%x=1");
    REFUSED("the value of an option has a % without", "redis://h?a=%");
    REFUSED("the value of an option has a %00", "redis://h?a=%00");
    REFUSED("1 to 65535", "redis://h:", "redis://h:0", "redis://h:000", "redis://h:65536",
            "redis://h:4294967297", "redis://h:99999999999999999999999", "redis://h:-1",
            "redis://h:+1", "redis://h: 1", "redis://h:1x", "redis://h:x", "redis://h:%31",
            "redis://[::1]:", "redis://[::1]:0", "redis://a:1,b:0");
    REFUSED("brackets", "redis://::1", "redis://h:1:2", "redis://[::1", "redis://[]",
            "redis://[h]");
    REFUSED("followed by :", "redis://[::1]x", "redis://[::1]1");
    REFUSED("host is empty", "redis://:1", "redis://u:p@:1", "redis://,", "redis://a,,b",
            "redis://a,b,", "redis://,a");
    REFUSED("no name", "redis://h?", "redis://h?=1", "redis://h?a=1&", "redis://h?a=1&&b=2");
    REFUSED("no value", "redis://h?a", "redis://h?a&b=1");
    REFUSED("of a-z", "redis://h?TTL=1", "redis://h?a%20=1", "redis://h?\u00e9=1");
    REFUSED("option a is given twice", "redis://h?a=1&b=2&a=3", "redis://h?a=1&%61=1");
    REFUSED("%40", "redis://h/a@b", "redis://h?a=b@c", "redis://u:p@/a@b", "sqlite:/x?a=b@c",
            "sqlite:a@b", "sqlite:/a:b@c", "sqlite:///a:b@c");
}

static void only_the_secrets_are_blanked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"sqlite:/a%20b?ttl=5s&x=%26", "sqlite:/a%20b?ttl=5s&x=%26"},
        {"redis://u@h1:1,[::1]:2/0", "redis://u@h1:1,[::1]:2/0"},
        {"redis://u:secret@h:1/0?a=b", "redis://u:***@h:1/0?a=b"},
        {"redis://:secret@h", "redis://:***@h"},
        {"redis://u:@h", "redis://u:***@h"},
        {"redis://@h", "redis://@h"},
        {"redis://u:sec:ret@secret@h", "redis://u:***@h"},
        {"redis://u:s%65cret@h", "redis://u:***@h"},
        {"redis://h?password=secret&a=b", "redis://h?password=***&a=b"},
        {"redis://h?p%61ss=secret", "redis://h?p%61ss=***"},
        {"redis://h?token=secret&pwd=secret&client_secret=secret",
         "redis://h?token=***&pwd=***&client_secret=***"},
        {"redis://h?tls_key_password=s=ecret", "redis://h?tls_key_password=***"},
        {"redis://h?sentinel_password=secret", "redis://h?sentinel_password=***"},
        {"redis://h?password_file=/run/pw&x_file=y", "redis://h?password_file=/run/pw&x_file=y"},
        {"redis://h?passx_file=a&_file=b&file=c", "redis://h?passx_file=a&_file=b&file=c"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(url_parse(&url, cases[i].text, why, sizeof(why)), 0);
        assert_string_equal(simba_url_text(&url), cases[i].shown);
    }
}

/* Each text is refused, and the message does not hold its password, hunter2, in whole or half. */
#define KEPT(...) kept((const char *const[]){__VA_ARGS__, NULL})
static void kept(const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        int rc = url_parse(&url, *texts, why, sizeof(why));
        if (rc == 0)
            print_error("%s is taken\n", *texts);
        assert_int_equal(rc, SIMBA_EINVAL);
        assert_true(strlen(why) > 10);
        assert_null(strstr(why, "hun"));
        assert_null(strstr(why, "ter2"));
        assert_null(strstr(why, "TER2"));
    }
}

static void no_message_holds_a_secret(void **state)
{
    (void)state;
    KEPT("redis://u:hunter2@h:0", "redis://u:hunter2@h:hunter2", "redis://u:hun@ter2@h:0",
         "redis://u:hun/ter2@h", "redis://u:1/ter2@h", "redis://u:1?ter2@h", "redis://u:1?ter2=2@h",
         "redis://u:p@hun/ter2@h", "redis://u:p@hun?ter2=@h", "redis://u:hun#ter2@h",
         "redis://u:hun%ter2@h", "redis://u:hun\nter2@h", "redis://u:hun\xffter2@h",
         "redis://u:hunter2", "redis://u:hunter2/0", "redis://u:p:hunter2", "redis:u:hunter2@h",
         "redis:/u:hunter2@h", "redis:///u:hunter2@h", "redis:://u:hunter2@h", "redis//u:hunter2@h",
         "Redis://u:hunter2@h", "u:hunter2@h", "hunter2@h", "hunter2");
    KEPT("redis://[hunter2]", "redis://[::1]hunter2", "redis://u:hunter2@h?a=1&a=2",
         "redis://h?password=hun&ter2",
         "redis://h?password=hunter2&=", "redis://h?password=hun%ter2",
         "redis://h?password=hunter2%00", "redis://h?password=hunter2&password=hunter2",
         "redis://h?password=x&hunter2=1&hunter2=2", "redis://h?password=x&HUNTER2=1",
         "redis://u:hunter2@h?password=x&hunter2=1&hunter2=2", "redis://h?a=1&a=hunter2");
    assert_int_equal(url_parse(&url, "redis://h?pass=hun&ter2=1", why, sizeof(why)), 0);
    static const char *const known[] = {"pass", "ttl", NULL};
    assert_int_equal(url_check_options(&url, known, NULL, why, sizeof(why)), SIMBA_EINVAL);
    assert_string_equal(why, "unknown option number 2; known are: pass ttl");
}

static void fill(char *to, const char *begin, char c, size_t length, const char *end)
{
    size_t head = strlen(begin), tail = strlen(end);
    memcpy(to, begin, head);
    memset(to + head, c, length - head - tail);
    memcpy(to + length - tail, end, tail + 1);
}

static void length_is_limited(void **state)
{
    (void)state;
    static char text[65536 + 64];
    fill(text, "redis://u:", 'p', URL_BYTES_MAX - 1, "@h");
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), 0);
    assert_int_equal(strlen(simba_url_password(&url)), URL_BYTES_MAX - 1 - strlen("redis://u:@h"));
    assert_string_equal(simba_url_text(&url), "redis://u:***@h");

    static const size_t lengths[] = {URL_BYTES_MAX, URL_BYTES_MAX + 1, 65536 + 12};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        fill(text, "redis://u:", 'p', lengths[i], "@h");
        assert_int_equal(url_parse(&url, text, why, sizeof(why)), SIMBA_EINVAL);
        assert_string_equal(why, "the URL must be below 4096 bytes");
    }
}

/* *** is longer than a short password, so the longest URL may lose its end when shown. */
static void shown_is_cut_rather_than_overrun(void **state)
{
    (void)state;
    char text[URL_BYTES_MAX];
    fill(text, "redis://:@h/", 'x', URL_BYTES_MAX - 1, "?pass=&token=");
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), 0);
    assert_int_equal(strlen(simba_url_text(&url)), URL_BYTES_MAX - 1);
    assert_non_null(strstr(simba_url_text(&url), "redis://:***@h/xx"));
}

static void hosts_are_limited(void **state)
{
    (void)state;
    const char *text = "redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p";
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), 0);
    assert_int_equal(url.hosts, URL_HOSTS_MAX);
    REFUSED("more than 16 hosts", "redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q");
}

static void options_are_limited(void **state)
{
    (void)state;
    char text[512] = "redis://h?";
    size_t length = strlen(text);
    for (size_t i = 0; i < URL_OPTIONS_MAX + 1; i++) {
        const char option[] = {(char)('a' + i / 10), (char)('0' + i % 10), '=', 'v', '&', '\0'};
        memcpy(text + length, option, sizeof(option));
        length += strlen(option);
    }
    text[length - 1] = '\0';
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), SIMBA_EINVAL);
    assert_string_equal(why, "the URL has more than 32 options");
    text[length - 6] = '\0';
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), 0);
    assert_int_equal(url.options, URL_OPTIONS_MAX);

    fill(text, "redis://h?", 'n', strlen("redis://h?") + URL_NAME_MAX + 2, "=1");
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), 0);
    fill(text, "redis://h?", 'n', strlen("redis://h?") + URL_NAME_MAX + 3, "=1");
    assert_int_equal(url_parse(&url, text, why, sizeof(why)), SIMBA_EINVAL);
    assert_non_null(strstr(why, "at most 64 letters"));
}

static void unknown_options_get_a_suggestion(void **state)
{
    (void)state;
    static const char *const common[] = {"ttl", "transition", "connect_timeout", "command_timeout",
                                         NULL};
    static const char *const own[] = {"master", "tls_ca", "tls_cert", NULL};
    static const struct {
        const char *text, *why; /* NULL: all known */
    } cases[] = {
        {"redis://h", NULL},
        {"redis://h?ttl=1&master=m&tls_cert=c&command_timeout=1", NULL},
        {"redis://h?ttl=1&tttl=2", "unknown option tttl; did you mean ttl"},
        {"redis://h?tl=1", "unknown option tl; did you mean ttl"},
        {"redis://h?tlt=1", "unknown option tlt; did you mean ttl"},
        {"redis://h?mastre=1", "unknown option mastre; did you mean master"},
        {"redis://h?tls_cer=1", "unknown option tls_cer; did you mean tls_cert"},
        {"redis://h?tls_c=1", "unknown option tls_c; did you mean tls_ca"},
        {"redis://h?connect=1", "unknown option connect; did you mean connect_timeout"},
        {"redis://h?com=1", "unknown option com; did you mean command_timeout"},
        {"redis://h?timeout=1", "unknown option timeout; known are: ttl transition connect_timeout "
                                "command_timeout master tls_ca tls_cert"},
        {"redis://h?masterpiece=1", "unknown option masterpiece; known are: ttl transition "
                                    "connect_timeout command_timeout master tls_ca tls_cert"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(url_parse(&url, cases[i].text, why, sizeof(why)), 0);
        int rc = url_check_options(&url, common, own, why, sizeof(why));
        assert_int_equal(rc, cases[i].why == NULL ? 0 : SIMBA_EINVAL);
        assert_string_equal(why, cases[i].why == NULL ? "" : cases[i].why);
    }

    assert_int_equal(url_parse(&url, "redis://h?master=m", why, sizeof(why)), 0);
    assert_int_equal(url_check_options(&url, common, NULL, why, sizeof(why)), SIMBA_EINVAL);
}

static void messages_fit_where_they_go(void **state)
{
    (void)state;
    char small[10] = "#########";
    assert_int_equal(url_parse(&url, "redis://h:0", small, 8), SIMBA_EINVAL);
    assert_string_equal(small, "the por");
    assert_int_equal(small[8], '#');
    assert_int_equal(url_parse(&url, "redis://h:0", small, 1), SIMBA_EINVAL);
    assert_string_equal(small, "");
}

/* Bytes at random, mostly those that mean something: nothing breaks, and what is taken can be
 * shown. The sanitizers watch. */
static void noise_is_harmless(void **state)
{
    (void)state;
    static const char alphabet[] = "redis:///:@@,[]?&=%%0aF#+ \x01\xc3\xa9\xff";
    uint64_t random = 1;
    for (size_t round = 0; round < 20000; round++) {
        char text[48] = "r://";
        size_t length = round % 2 == 0 ? 0 : 4;
        for (; length < 8 + round % 37; length++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[length] = alphabet[(random >> 33) % (sizeof(alphabet) - 1)];
        }
        text[length] = '\0';
        char *copy = strdup(text); /* of its exact size */
        assert_non_null(copy);
        int rc = url_parse(&url, copy, why, sizeof(why));
        free(copy);
        assert_true(rc == 0 || rc == SIMBA_EINVAL);
        assert_int_equal(rc == 0, why[0] == '\0');
        if (rc == 0)
            assert_int_equal(strncmp(url.shown, url.scheme, strlen(url.scheme)), 0);
    }
}

/* Wherever it was put. */
static void a_wiped_url_holds_no_password(void **state)
{
    (void)state;
    static struct simba_url u;
    char text[64];
    assert_int_equal(
        url_parse(&u, "mysql://me:ge%68eim@h/d?sslpassword=geheim", text, sizeof(text)), 0);
    assert_string_equal(u.password, "geheim");
    assert_non_null(memmem(&u, sizeof(u), "geheim", 6));
    url_wipe(&u);
    assert_null(memmem(&u, sizeof(u), "geheim", 6));
    assert_null(u.password);
}

static void null_is_no_url(void **state)
{
    (void)state;
    const char *host;
    int port;
    struct simba_url u;
    assert_int_equal(url_parse(&u, "redis://h", why, sizeof why), 0);
    assert_null(simba_url_scheme(NULL));
    assert_null(simba_url_user(NULL));
    assert_null(simba_url_password(NULL));
    assert_string_equal(simba_url_path(NULL), "");
    assert_string_equal(simba_url_text(NULL), "");
    assert_null(simba_url_option(NULL, "ttl"));
    assert_null(simba_url_option(&u, NULL));
    assert_false(simba_url_host(NULL, 0, &host, &port));
    assert_false(simba_url_host(&u, 0, NULL, &port));
    assert_false(simba_url_host(&u, 0, &host, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_no_url),
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(options_are_found),
        cmocka_unit_test(wrong_ones_are_refused_by_rule),
        cmocka_unit_test(only_the_secrets_are_blanked),
        cmocka_unit_test(no_message_holds_a_secret),
        cmocka_unit_test(length_is_limited),
        cmocka_unit_test(shown_is_cut_rather_than_overrun),
        cmocka_unit_test(hosts_are_limited),
        cmocka_unit_test(options_are_limited),
        cmocka_unit_test(unknown_options_get_a_suggestion),
        cmocka_unit_test(messages_fit_where_they_go),
        cmocka_unit_test(noise_is_harmless),
        cmocka_unit_test(a_wiped_url_holds_no_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
