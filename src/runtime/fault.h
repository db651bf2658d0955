/* fault.h: the words behind a negative result. */
#ifndef RUNTIME_FAULT_H
#define RUNTIME_FAULT_H

/* Remembers the sentence for simba_error_text() in this thread and returns code. */
__attribute__((format(printf, 2, 3))) int fault(int code, const char *format, ...);
#endif
