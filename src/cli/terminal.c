/* terminal.c: see terminal.h. */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define COLUMNS 80  /* of a terminal that does not say */
#define WIDEST 1000 /* far less than a line may have */

bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return (no == NULL || no[0] == '\0') && isatty(STDOUT_FILENO) != 0 &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

int terminal_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* In the last column the cursor might go on to the next line. */
int status_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return COLUMNS - 1;
    return size.ws_col < WIDEST ? size.ws_col - 1 : WIDEST;
}

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

int width_of(const char *text, size_t bytes)
{
    int width = 0;
    for (size_t i = 0; i < bytes; i++)
        width += begins_character(text[i]);
    return width;
}

void cut_to_width(char *text, int most)
{
    if (width_of(text, strlen(text)) <= most)
        return;
    for (; *text != '\0' && most > 1; most--) {
        do
            text++;
        while (!begins_character(*text));
    }
    memcpy(text, TEXT_ELLIPSIS, sizeof TEXT_ELLIPSIS);
}
