/* errno_text.h: what a failed call of the system means, for people. */
#ifndef BASE_ERRNO_TEXT_H
#define BASE_ERRNO_TEXT_H

#include <stdbool.h>

/* As strerror(), and what to do where file descriptors have run out. */
const char *errno_text(int error);

/* Memory or descriptors have run out: that is SIMBA_ELIMIT, whatever failed with it. */
bool errno_is_limit(int error);

/* Of an attempt to connect: somebody is there, or may be, and has not answered: as a rule there are
 * too many who want to. */
bool errno_is_late(int error);
#endif
