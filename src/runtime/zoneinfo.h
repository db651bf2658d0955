/* zoneinfo.h: time zones by name, from the files of the machine. */
#ifndef RUNTIME_ZONEINFO_H
#define RUNTIME_ZONEINFO_H

#include "core/zone.h"

/* name: "Europe/Berlin"; NULL and "UTC" need no file. A fault, if there is no such zone. */
int zoneinfo_read(const char *name, struct zone *out);
#endif
