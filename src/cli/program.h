/* program.h: commands that are programs of their own. simba finds them where they were installed, or built,
 * and gets out of their way. They take the same arguments; but a URL may have a password, and everybody on
 * the machine reads argv: it is blanked there, and handed over in the environment. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

struct cli;

struct program {
    const char *name;    /* of the file, in the folder of programs … */
    const char *built;   /* … or where it is in the folder of a build, beside simba */
    const char *what;    /* it is, in a sentence */
    const char *package; /* of Debian … */
    const char *option;  /* … and of CMake, that have it */
};

extern const struct program serve_program, bench_program, torture_program, tck_program;

/* Runs the command with the program that it names. 125 after saying why it cannot be; else it does not
 * return, but for wrong usage and --help. */
int program_run(struct cli *c);

/* The same for a command that has read its arguments; and with other arguments, and the URL in a variable of the environment. */
int program_exec_same(const struct cli *c, const struct program *p);
int program_exec(const struct cli *c, const struct program *p, char **argv, const char *variable);

/* In such a program, at the beginning: takes the URL that was handed over, if there is one. */
void program_take_url(struct cli *c);
#endif
