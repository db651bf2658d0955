/* secrets.h: memory that held a password is wiped before it is given back. */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

/* Wipes and frees a string; NULL: nothing. */
void secrets_free(char *secret);
#endif
