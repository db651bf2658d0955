/* harden.h: files of SQLite that others may write to, or put in our way: those of the store, and the history
 * files of the command. */
#ifndef BACKEND_SQLITE_HARDEN_H
#define BACKEND_SQLITE_HARDEN_H

#include <sqlite3.h>
#include <stddef.h>

/* Nothing in the database is run that others put there: no triggers, no views, no functions. */
void harden_database(sqlite3 *db);

/* 0, or SIMBA_EINVAL, SIMBA_EDENIED, SIMBA_EUNSUPPORTED with the reason in why. */
int harden_check_folder(const char *folder, char *why, size_t why_size);

#endif
