/* terminal.h: how wide terminals and texts are, and whether there are colours. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Colours, and the width: 0 unless stdout is a terminal and wants such. */
bool wants_colour(void);
int terminal_width(void);

int status_width(void); /* of a line on stderr that the next one overwrites */

int width_of(const char *text, size_t bytes); /* columns: a character may have several bytes */

/* Cuts it to so many columns; what was cut ends with an ellipsis. */
void cut_to_width(char *text, int most);
#endif
