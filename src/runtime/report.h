/* report.h: what people are told of a handle: lines of the log, each with its fact for the trace,
 * and why a call failed. */
#ifndef RUNTIME_REPORT_H
#define RUNTIME_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct handle_update;
struct request;

/* Whoever has the baton. */
void report_news(struct actor *a, const struct handle_update *up, int64_t late);
void report_unpublished(struct actor *a, int code, const struct request *r);
void report_published_late(struct actor *a);
void report_answer(struct actor *a, const struct request *r);    /* if it is a new failure */
void report_works(struct actor *a, bool renewed, int64_t since); /* if it was told to fail */

/* Under the client's lock: for the caller of a locker. */
void report_say_owner(const struct actor *a, char *out, size_t size);
void report_say_why(const struct actor *a, int code, char *out, size_t size);
#endif
