/* default_store.h: where locks are kept when nobody says where. */
#ifndef RUNTIME_DEFAULT_STORE_H
#define RUNTIME_DEFAULT_STORE_H

#include <stddef.h>

/* As simba_default_url(), and makes the folder if it is missing: mode 0700. */
int default_store_make(char *out, size_t size);
#endif
