/* help.h: a store in a private folder and peers on it, for the tests of the sqlite: store. */
#ifndef CONTRACT_SQLITE_HELP_H
#define CONTRACT_SQLITE_HELP_H

#include "contract/peer.h"
#include "contract/suite.h"

/* The names of its files, in the folder. */
#define SQLITE_FILES 6
extern const char *const sqlite_files[SQLITE_FILES];

/* A new folder, or one in it. Whoever opens the store first makes it. */
void sqlite_begin(void);
void sqlite_begin_in(const char *folder);
const char *sqlite_url(void);

struct peer sqlite_peer(struct simba_handle_options like); /* started, on the mutex "m" */
void sqlite_contend(struct peer *p); /* and its tenures are written into the ledger */

/* Never two owners, and tokens rose; then the folder is removed. */
void sqlite_end(void);

#endif
