/* statements.c: see statements.h. */
#include "backend/sql/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENT_FIRST 1024
#define STATEMENT_MAX (8u << 20) /* half of what a MariaDB server takes by default */

static bool reserve(struct statement *t, size_t more)
{
    size_t size = t->size > 0 ? t->size : STATEMENT_FIRST;
    if (t->failed)
        return false;
    while (size < t->length + more + 1)
        size *= 2;
    if (size == t->size)
        return true;
    char *bytes = size <= STATEMENT_MAX ? realloc(t->bytes, size) : NULL;
    t->failed = bytes == NULL;
    if (t->failed)
        return false;
    t->bytes = bytes;
    t->size = size;
    return true;
}

static void put_bytes(struct statement *t, const char *bytes, size_t n)
{
    if (!reserve(t, n))
        return;
    memcpy(t->bytes + t->length, bytes, n);
    t->length += n;
    t->bytes[t->length] = '\0';
}

void sql_statement_reset(struct statement *t)
{
    t->length = 0;
    t->failed = false;
    put_bytes(t, "", 0);
}

void sql_statement_free(struct statement *t)
{
    free(t->bytes);
    *t = (struct statement){.bytes = NULL};
}

void sql_statement_put(struct statement *t, const char *part)
{
    put_bytes(t, part, strlen(part));
}

void sql_statement_end(struct statement *t)
{
    put_bytes(t, "", 1);
}

void sql_statement_number(struct statement *t, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    sql_statement_put(t, digits);
}

void sql_statement_hex(struct statement *t, const char *value)
{
    static const char digit[] = "0123456789abcdef";
    size_t n = strlen(value);
    if (!reserve(t, 2 * n))
        return;
    for (size_t i = 0; i < n; i++) {
        t->bytes[t->length++] = digit[(unsigned char)value[i] >> 4];
        t->bytes[t->length++] = digit[(unsigned char)value[i] & 15];
    }
    t->bytes[t->length] = '\0';
}
