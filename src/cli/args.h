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

/* What the next one is. */
struct arg {
    enum { ARG_OPTION, ARG_OPERAND, ARG_END, ARG_WRONG } kind;
    int id;      /* of an option */
    char *value; /* the option's, or the operand. It points into argv: it may be blanked there */
};

struct args {
    char **argv;
    int at;             /* the next argument; argv[at] is NULL at the end */
    char *bundle;       /* the rest of -abc */
    bool only_operands; /* after -- */
    bool is_stopped;    /* the operand that was taken ends the list: what follows is another's */
};

/* Is the value, if there is none with it, the next argument? */
bool option_takes_next(const struct option *o);

struct cli;

/* ARG_WRONG comes after saying what is wrong. */
struct arg args_next(struct cli *c);
#endif
