/* secrets.h: memory that held a password is wiped before it is given back. */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include <stdlib.h>
#include <string.h>

/* Wipes and frees a string; NULL: nothing. */
static inline void secrets_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
#endif
