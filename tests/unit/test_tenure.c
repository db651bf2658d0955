/* test_tenure.c: others' tenures, seen from outside. */
#include "core/tenure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/time.h"

static struct tenure seen(char *id, uint64_t token)
{
    return (struct tenure){
        .id = id, .token = token, .acquired_at = 100, .until = 1000, .seen_at = 200, .aged = true};
}

/* shows: observers */
static void tokens_tell_tenures_apart(void **state)
{
    (void)state;
    struct tenure nobody = {.id = NULL}, a = seen("a", 7), b = seen("b", 7), again = seen("a", 8);
    struct tenure renewed = seen("a", 7);
    renewed.until = 5000;
    renewed.acquired_at = 300; /* whatever the store says: tokens count */
    assert_true(tenure_is_same(&nobody, &nobody));
    assert_false(tenure_is_same(&nobody, &a));
    assert_false(tenure_is_same(&a, &nobody));
    assert_false(tenure_is_same(&a, &b));
    assert_false(tenure_is_same(&a, &again));
    assert_true(tenure_is_same(&a, &renewed));
}

/* A foreign client's: the store does not know its token. */
/* shows: observers */
static void without_tokens_the_beginning_tells(void **state)
{
    (void)state;
    struct tenure a = seen("a", 0), renewed = seen("a", 0), again = seen("a", 0);
    struct tenure unaged = seen("a", 0), known = seen("a", 7);
    renewed.acquired_at = 200; /* as late as the last sighting: it may be the same */
    again.acquired_at = 201;
    unaged.aged = false;
    unaged.acquired_at = 500;
    assert_true(tenure_is_same(&a, &renewed));
    assert_false(tenure_is_same(&a, &again));
    assert_true(tenure_is_same(&a, &unaged));
    assert_true(tenure_is_same(&a, &known));
    assert_true(tenure_is_same(&known, &a));
}

static struct tenure ended(int64_t asked_at, int64_t seen_at)
{
    return (struct tenure){.asked_at = asked_at, .seen_at = seen_at};
}

/* shows: observers */
static void old_news_are_known_by_their_tokens(void **state)
{
    (void)state;
    struct tenure none = {.id = NULL}, six = seen("a", 6), seven = seen("b", 7), free_at_six = none;
    struct tenure end = ended(300, 310), eight = seen("a", 8);
    free_at_six.token = 6;
    assert_false(tenure_is_old(&none, &none, &six));
    assert_true(tenure_is_old(&six, &seven, &six));
    assert_true(tenure_is_old(&six, &seven, &free_at_six));
    assert_false(tenure_is_old(&six, &seven, &seven));
    assert_false(tenure_is_old(&six, &seven, &eight));
    assert_false(tenure_is_old(&six, &seven, &none));
    assert_true(tenure_is_old(&seven, &end, &six));
    assert_true(tenure_is_old(&seven, &end, &seven));
    assert_false(tenure_is_old(&seven, &end, &eight));
    assert_false(tenure_is_old(&seven, &end, &end));
}

/* The JVM's clients before 4.0 leave the token of the tenure before them, or there is none. */
/* shows: observers */
static void foreign_owner_comes_back_with_the_same_token(void **state)
{
    (void)state;
    for (uint64_t token = 0; token <= 7; token += 7) {
        struct tenure ours = seen("a", 7), jvm = seen("jvm", token), end = ended(300, 310);
        assert_false(tenure_is_old(&ours, &end, &jvm));
        jvm.aged = false;
        struct tenure late = jvm, again = jvm;
        late.asked_at = 300; /* and answered after the end was seen */
        again.asked_at = 301;
        assert_true(tenure_is_old(&jvm, &end, &late));
        assert_false(tenure_is_old(&jvm, &end, &again));
        late.aged = again.aged = true; /* then its beginning counts */
        late.acquired_at = jvm.seen_at;
        again.acquired_at = jvm.seen_at + 1;
        assert_true(tenure_is_old(&jvm, &end, &late));
        assert_false(tenure_is_old(&jvm, &end, &again));
    }
}

static enum simba_reason gone_at(const struct tenure *was, int64_t now)
{
    return tenure_end(was, &(struct tenure){.id = NULL, .seen_at = now});
}

/* shows: observers */
static void ends_have_reasons(void **state)
{
    (void)state;
    struct tenure a = seen("a", 7);
    a.asked_at = 850;
    a.lease = 1000;
    assert_int_equal(gone_at(&a, 999), SIMBA_RELEASED);
    a.evicted = true;
    assert_int_equal(gone_at(&a, 999), SIMBA_EVICTED);
    assert_int_equal(gone_at(&a, 1000), SIMBA_EVICTED);
}

/* It has a lease of 2 s, of which the margin is a tenth at least, and was seen with so much left. */
static struct tenure seen_with(int64_t left_ms)
{
    struct tenure a = seen("a", 7);
    a.until = 10000 * NS_PER_MS;
    a.asked_at = a.until - left_ms * NS_PER_MS;
    a.lease = 2000 * NS_PER_MS;
    return a;
}

/* After it was last seen, its owner may have renewed it for a long time, and released it then. Only one
 * that had so little left that no owner renews any more has surely run out.
 * shows: observers */
static void end_that_nobody_saw_is_not_guessed(void **state)
{
    (void)state;
    struct tenure long_ago = seen_with(2000), early = seen_with(200), late = seen_with(199);
    assert_int_equal(gone_at(&long_ago, long_ago.until - 1), SIMBA_RELEASED);
    assert_int_equal(gone_at(&long_ago, long_ago.until), SIMBA_UNSEEN);
    assert_int_equal(gone_at(&long_ago, 3 * long_ago.until), SIMBA_UNSEEN);
    assert_int_equal(gone_at(&early, early.until), SIMBA_UNSEEN);
    assert_int_equal(gone_at(&late, late.until), SIMBA_EXPIRED);
    late.lease = 1000 * NS_PER_MS; /* of a shorter one that is too early */
    assert_int_equal(gone_at(&late, late.until), SIMBA_UNSEEN);
}

/* The next one may be seen late, but had begun in time.
 * shows: observers */
static void the_next_tells_when_it_was_over(void **state)
{
    (void)state;
    struct tenure a = seen_with(2000), b = seen("b", 8);
    b.asked_at = b.seen_at = a.until + 5000 * NS_PER_MS;
    b.acquired_at = a.until - 1;
    assert_int_equal(tenure_end(&a, &b), SIMBA_RELEASED);
    b.asked_at = b.seen_at - 2; /* the answer took so long that it may have begun later */
    assert_int_equal(tenure_end(&a, &b), SIMBA_UNSEEN);
    b.asked_at = b.seen_at;
    b.aged = false; /* an estimate */
    assert_int_equal(tenure_end(&a, &b), SIMBA_UNSEEN);
    b.aged = true;
    b.acquired_at = a.until;
    assert_int_equal(tenure_end(&a, &b), SIMBA_UNSEEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_tell_tenures_apart),
        cmocka_unit_test(without_tokens_the_beginning_tells),
        cmocka_unit_test(old_news_are_known_by_their_tokens),
        cmocka_unit_test(foreign_owner_comes_back_with_the_same_token),
        cmocka_unit_test(ends_have_reasons),
        cmocka_unit_test(end_that_nobody_saw_is_not_guessed),
        cmocka_unit_test(the_next_tells_when_it_was_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
