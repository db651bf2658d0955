/* json_sample.c: json_sample N [once]: prints three lines of JSON as the command does; from the N-th allocation on
 * there is no memory for them, or for that one; 0: there is enough. Ends as a command would. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/data.h"

static long left = -1; /* -1: without end */
static bool is_once;

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);

void *__wrap_realloc(void *at, size_t size)
{
    if (left == 0) {
        left = is_once ? -1 : 0;
        return NULL;
    }
    if (left > 0)
        left--;
    return __real_realloc(at, size);
}

int main(int argc, char **argv)
{
    static struct cli c;
    long limit = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    is_once = argc > 2;
    if (limit > 0)
        left = limit - 1;
    for (int i = 0; i < 3; i++)
        print_json("{s:s, s:s, s:i}", "text", "a", "wrong", "b\xff", "number", i);
    return flush_stdout(&c).code;
}
