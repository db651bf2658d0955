/* args.h: options and operands, in the order in which they stand. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>

struct option {
    const char *name; /* --name; NULL at the end of the list */
    int letter, id;   /* -l; 0: none */
    const char *arg;  /* what its value is called in the help; NULL: it has none; [D]: it may have
                         one, and then by --name=D only */
    const char *help; /* NULL: accepted, but not shown */
};

enum { ARG_END = -1, ARG_OPERAND = -2, ARG_WRONG = -3 }; /* beside the ids of options */

struct args {
    char **argv;
    int at;             /* the next argument; argv[at] is NULL at the end */
    char *bundle;       /* the rest of -abc */
    bool only_operands; /* after -- */
};

/* Is the value, if there is none with it, the next argument? */
bool option_takes_next(const struct option *o);

struct cli;

/* The id of the next option, ARG_OPERAND, ARG_END, or ARG_WRONG after saying what is wrong.
 * value is the option's, or the operand. It points into argv: it may be blanked there. */
int args_next(struct cli *c, char **value);
#endif
