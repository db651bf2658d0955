/* fault.h: the words behind a negative result. */
#ifndef RUNTIME_FAULT_H
#define RUNTIME_FAULT_H

#include <stdint.h>

/* Remembers the sentence for simba_error_text() in this thread and returns code. */
__attribute__((format(printf, 2, 3))) int fault(int code, const char *format, ...);

/* A length of time for such a sentence, as "12s"; out is what it is written to. */
#define FAULT_DURATION 24
const char *fault_duration(int64_t ns, char out[FAULT_DURATION]);
#endif
