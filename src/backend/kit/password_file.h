/* password_file.h: a password from a file, so that it is in no URL. The file's first line is the
 * password; an empty one is a mistake, and so is a file of more than PASSWORD_FILE_MAX bytes. */
#ifndef BACKEND_KIT_PASSWORD_FILE_H
#define BACKEND_KIT_PASSWORD_FILE_H

#include "backend/kit/options.h"

#define PASSWORD_FILE_MAX 4096

/* The password that is given, or the one in the file that the option names, but not both: a
 * copy, to be freed by secrets_free(). given NULL, and no such option: *out is left alone. 0, or
 * a code, and then `why` is written. */
int password_file_read(const struct options *o, const char *given, const char *option, char **out);
#endif
