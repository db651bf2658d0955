/* name.h: what the name of a mutex, the id of a contender and a note may be, on every store. */
#ifndef CORE_NAME_H
#define CORE_NAME_H

/* 0, or SIMBA_EINVAL with the broken rule in *why (a constant sentence without a final stop).
 * Rules: not NULL, not empty, not only white space, valid UTF-8 (no overlong forms, surrogates or
 * code points above 10FFFF), at most SIMBA_MUTEX_MAX or SIMBA_ID_MAX bytes. */
int name_check_mutex(const char *mutex, const char **why);
int name_check_id(const char *id, const char **why);
int name_check_note(const char *text, const char **why); /* may be empty */
#endif
