/* id.h: ids of contenders, from numbers that the caller has found or drawn. */
#ifndef CORE_ID_H
#define CORE_ID_H

#include <stddef.h>
#include <stdint.h>

#define ID_HOST_MAX \
    40 /* bytes of a host's name in an id; an id has room for more numbers than it needs */

/* "COUNTER:PID@HOST/ADDRESS-RANDOM": the JVM's form plus the host's name, for people (without it and
 * its slash if it is ""), plus eight hex digits that are random per process, because pid and address
 * are the same in many containers. SIMBA_ELIMIT if it does not fit. */
int id_host(char *out, size_t size, uint64_t counter, int64_t pid, const char *host,
            const char *address, uint32_t random);

/* The name as an id has it: cut, or "" if it has other characters than letters, digits, '.', '-'. */
void id_host_name(char out[ID_HOST_MAX + 1], const char *name);

/* 32 hex digits of a version 4 UUID made from 16 random bytes. */
int id_uuid(char *out, size_t size, const uint8_t random[16]);
#endif
