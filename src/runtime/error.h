/* error.h: the words behind a negative result. */
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include <stdint.h>

/* Remembers the sentence for simba_error_text() in this thread and returns code. */
__attribute__((format(printf, 2, 3))) int error_say(int code, const char *format, ...);

/* Of a mutex: the sentence begins with it, and with the store unless that is NULL. What follows,
 * the cause, is for simba_error_cause(), too. */
__attribute__((format(printf, 4, 5))) int error_on(int code, const char *mutex, const char *store,
                                                   const char *format, ...);
/* The same; what: something else than a mutex that the store was asked for. */
__attribute__((format(printf, 4, 5))) int error_at(int code, const char *what, const char *store,
                                                   const char *format, ...);

/* A length of time for such a sentence, as "12s"; out is what it is written to. */
#define ERROR_DURATION 24
const char *error_duration(int64_t ns, char out[ERROR_DURATION]);
#endif
