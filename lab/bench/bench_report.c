/* bench_report.c: see bench_report.h. */
#include "lab/bench/bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schemes.h"
#include "cli/cli.h"
#include "cli/data.h"
#include "cli/shown.h"

#define FIGURE_MAX 32

/* Half of what a connection can do stays free, for all else that is asked of the store. */
#define SHARE 0.5

static const int64_t ttls_ms[] = {2000, 10000, 60000};
#define TTLS (sizeof ttls_ms / sizeof *ttls_ms)

/* ---- samples ------------------------------------------------------------------------------- */

static bool samples_init(struct samples *s)
{
    s->us = malloc(SAMPLES_MAX * sizeof *s->us); /* the kernel gives pages when they are written */
    return s->us != NULL;
}

bool bench_report_init(struct bench_report *r)
{
    return samples_init(&r->pairs) && samples_init(&r->handovers) && samples_init(&r->renewals);
}

void bench_report_free(struct bench_report *r)
{
    free(r->pairs.us);
    free(r->handovers.us);
    free(r->renewals.us);
}

bool samples_full(const struct samples *s)
{
    return s->count == SAMPLES_MAX;
}

void samples_add(struct samples *s, int64_t us)
{
    if (samples_full(s))
        return;
    s->us[s->count++] = us > 0 ? us : 0;
    s->is_sorted = false;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t samples_quantile(struct samples *s, double q)
{
    if (s->count == 0)
        return 0;
    if (!s->is_sorted)
        qsort(s->us, s->count, sizeof *s->us, by_size);
    s->is_sorted = true;
    size_t at = (size_t)(q * (double)s->count);
    return s->us[at < s->count ? at : s->count - 1];
}

/* ---- the estimate -------------------------------------------------------------------------- */

void bench_report_renewed(struct bench_report *r, int64_t began_us, int64_t ended_us)
{
    if (samples_full(&r->renewals))
        return;
    if (began_us < r->busy_until)
        began_us = r->busy_until;
    if (ended_us <= began_us)
        return;
    r->busy_us += ended_us - began_us;
    r->busy_until = ended_us;
}

double bench_report_renewals_per_s(const struct bench_report *r)
{
    return r->busy_us > 0 ? (double)r->renewals.count * 1e6 / (double)r->busy_us : 0;
}

/* Two digits are as much as it can be believed. */
static int64_t round_down(double value)
{
    int64_t whole = (int64_t)value, unit = 1;
    while (whole / unit >= 100)
        unit *= 10;
    return whole - whole % unit;
}

/* Each is renewed every ttl / 2. */
int64_t bench_report_mutexes(const struct bench_report *r, int64_t ttl_ms)
{
    return round_down(SHARE * bench_report_renewals_per_s(r) * (double)ttl_ms / 2000);
}

/* In ZooKeeper a session keeps all its mutexes: most renewals ask no server. */
static bool is_session(const struct cli *c)
{
    return scheme_kind(c->store) == STORE_ZOOKEEPER;
}

/* ---- for people ---------------------------------------------------------------------------- */

/* "850 us", "1.23 ms", "2.05 s" */
static const char *show_us(int64_t us, char out[FIGURE_MAX])
{
    if (us < 1000)
        snprintf(out, FIGURE_MAX, "%lld us", (long long)us);
    else if (us < 1000000)
        snprintf(out, FIGURE_MAX, "%.2f ms", (double)us / 1e3);
    else
        snprintf(out, FIGURE_MAX, "%.2f s", (double)us / 1e6);
    return out;
}

/* "1,234,567" */
static const char *show_count(int64_t count, char out[FIGURE_MAX])
{
    char digits[FIGURE_MAX];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)count), to = 0;
    for (size_t i = 0; i < n && to < FIGURE_MAX - 2; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

static void print_row(const char *what, struct samples *s)
{
    char p50[FIGURE_MAX], p99[FIGURE_MAX], most[FIGURE_MAX], count[FIGURE_MAX];
    if (s->count == 0) {
        printf("%-20s %10s %10s %10s %10s\n", what, "-", "-", "-", "0");
        return;
    }
    printf("%-20s %10s %10s %10s %10s\n", what, show_us(samples_quantile(s, 0.5), p50),
           show_us(samples_quantile(s, 0.99), p99), show_us(samples_quantile(s, 1), most),
           show_count((int64_t)s->count, count));
}

static void print_estimate(const struct cli *c, struct bench_report *r)
{
    char shown[FIGURE_MAX], ttl[24];
    if (is_session(c)) {
        printf("\nA session keeps all mutexes of a client: their number costs no renewals, and is "
               "not estimated.\n");
        return;
    }
    double rate = bench_report_renewals_per_s(r);
    if (rate <= 0)
        return;
    printf("\n%-20s %10s\n", "ttl", "mutexes");
    for (size_t i = 0; i < TTLS; i++)
        printf("%-20s %10s\n", show_duration(ttls_ms[i], ttl),
               show_count(bench_report_mutexes(r, ttls_ms[i]), shown));
    printf("This is an estimate, and a low one: one connection was answered %s renewals per second "
           "while\nany was under way, each mutex is renewed every ttl / 2, and half of the time is "
           "left for all else.\nThe more mutexes, the more renewals share one exchange.\n",
           show_count(round_down(rate), shown));
}

/* Only of what was measured. */
static void print_sentence(const struct cli *c, struct bench_report *r)
{
    char pair[FIGURE_MAX], handover[FIGURE_MAX], kept[FIGURE_MAX], ttl[24];
    int64_t mutexes = is_session(c) ? 0 : bench_report_mutexes(r, c->ttl_ms);
    if (r->pairs.count == 0) {
        printf("\nNothing was measured.\n");
        return;
    }
    printf("\nFrom here, acquire and release take %s",
           show_us(samples_quantile(&r->pairs, 0.5), pair));
    if (r->handovers.count > 0)
        printf("%s a hand-over takes %s", mutexes > 0 ? "," : " and",
               show_us(samples_quantile(&r->handovers, 0.5), handover));
    if (mutexes > 0)
        printf(", and the store could keep some %s mutexes at a ttl of %s",
               show_count(mutexes, kept), show_duration(c->ttl_ms, ttl));
    printf(".\n");
}

/* ---- for programs -------------------------------------------------------------------------- */

static struct json_buffer samples_json(struct samples *s)
{
    struct json_buffer t = {.is_line = true};
    json_buffer_object(&t, "{s:I, s:I, s:I, s:I}", "count", (long long)s->count, "p50_us",
                       (long long)samples_quantile(s, 0.5), "p99_us",
                       (long long)samples_quantile(s, 0.99), "max_us",
                       (long long)samples_quantile(s, 1));
    return t;
}

static struct json_buffer mutexes_json(const struct cli *c, const struct bench_report *r)
{
    struct json_buffer t = {.is_line = true};
    json_buffer_add(&t, "[");
    for (size_t i = 0; !is_session(c) && i < TTLS; i++) {
        json_buffer_add(&t, i > 0 ? "," : "");
        json_buffer_object(&t, "{s:I, s:I}", "ttl_ms", (long long)ttls_ms[i], "count",
                           (long long)bench_report_mutexes(r, ttls_ms[i]));
    }
    json_buffer_add(&t, "]");
    return t;
}

static void print_object(const struct cli *c, struct bench_report *r, bool is_interrupted)
{
    struct json_buffer pairs = samples_json(&r->pairs), handovers = samples_json(&r->handovers),
                       renewals = samples_json(&r->renewals), mutexes = mutexes_json(c, r);
    print_json("{s:s, s:I, s:I, s:b, s:j, s:j, s:j, s:I, s:j}", "store", c->store, "measured_ms",
               (long long)r->ms, "rate", (long long)r->rate, "interrupted", (int)is_interrupted,
               "pairs", &pairs, "handovers", &handovers, "renewals", &renewals, "renewals_per_s",
               (long long)(is_session(c) ? 0 : bench_report_renewals_per_s(r)), "mutexes",
               &mutexes);
}

void bench_report_print(const struct cli *c, struct bench_report *r, bool is_interrupted)
{
    char shown[FIGURE_MAX], took[24], store[URL_MAX];
    if (c->json) {
        print_object(c, r, is_interrupted);
        return;
    }
    printf("%s: measured for %s%s", show_name(c->store, store, sizeof store),
           show_duration(r->ms, took), is_interrupted ? ", then interrupted" : "");
    if (r->rate > 0)
        printf("; at most %s operations per second\n\n", show_count(r->rate, shown));
    else
        printf("; as fast as the store answers\n\n");
    printf("%-20s %10s %10s %10s %10s\n", "", "p50", "p99", "max", "samples");
    print_row("acquire + release", &r->pairs);
    print_row("hand-over", &r->handovers);
    print_row("renewal", &r->renewals);
    print_estimate(c, r);
    print_sentence(c, r);
}
