/* test_torture_record.c: what was written is read again, also after a process was killed. */
#include "lab/torture/record.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_torture.XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/record", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int remove_record(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static struct entry entry(uint64_t token)
{
    return (struct entry){.kind = ENTRY_YES, .token = token, .before = 1, .after = 2, .worker = 3};
}

static void entries_come_back_in_order(void **state)
{
    size_t count, dropped;
    (void)state;
    struct worker_record *r = record_create(path, 10);
    assert_non_null(r);
    for (uint64_t i = 1; i <= 3; i++)
        record_add(r, &(struct entry){.kind = ENTRY_YES, .token = i});
    record_close(r);
    struct entry *all = record_read(path, &count, &dropped);
    assert_non_null(all);
    assert_int_equal(count, 3);
    assert_int_equal(dropped, 0);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(all[i].token, i + 1);
    free(all);
}

/* The file ends with a page: one entry more would be a SIGBUS. */
static void what_has_no_room_is_counted(void **state)
{
    size_t count, dropped;
    (void)state;
    struct worker_record *r = record_create(path, 255);
    struct entry e = entry(1);
    for (int i = 0; i < 258; i++)
        record_add(r, &e);
    record_close(r);
    struct entry *all = record_read(path, &count, &dropped);
    assert_int_equal(count, 255);
    assert_int_equal(dropped, 3);
    free(all);
}

/* Nobody has closed the file, and it ends with an entry whose kind was never set. */
static void a_killed_writer_leaves_what_it_wrote(void **state)
{
    size_t count, dropped;
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct worker_record *r = record_create(path, 100);
        struct entry e = entry(7), half = entry(8);
        half.kind = ENTRY_NONE;
        record_add(r, &e);
        record_add(r, &half);
        record_add(r, &e);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    struct entry *all = record_read(path, &count, &dropped);
    assert_int_equal(count, 2);
    assert_int_equal(all[0].token, 7);
    assert_int_equal(all[1].token, 7);
    free(all);
}

static void other_files_are_refused(void **state)
{
    static const char text[] =
        "this is no record, though it is as long as the head of one would be";
    size_t count, dropped;
    (void)state;
    assert_null(record_read(path, &count, &dropped));
    assert_int_equal(errno, ENOENT);
    for (size_t length = 0; length < sizeof text; length += sizeof text - 1) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, text, length), length);
        close(fd);
        assert_null(record_read(path, &count, &dropped));
        assert_int_equal(errno, EINVAL);
    }
    assert_null(record_create(path, 1)); /* nothing is overwritten */
    assert_int_equal(errno, EEXIST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(entries_come_back_in_order, remove_record),
        cmocka_unit_test_teardown(what_has_no_room_is_counted, remove_record),
        cmocka_unit_test_teardown(a_killed_writer_leaves_what_it_wrote, remove_record),
        cmocka_unit_test_teardown(other_files_are_refused, remove_record),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
