/* secrets.c: see secrets.h. */
#include "base/secrets.h"

#include <stdlib.h>
#include <string.h>

void secrets_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
