/* cli.h: what the subcommands share. A subcommand is one file in commands/ with one struct
 * command, and one line in the table of main.c. Some are run by another program (program.h): then the file
 * has what people may write, and the other program what it does. Nothing here knows more of Simba than the public
 * headers say, but for the arithmetic of a lease (core/period.h), and what is in base.
 *
 * Data goes to stdout, everything else to stderr. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <simba.h>
#include <stdbool.h>

#include "cli/args.h"
#include "cli/config.h"
#include "cli/messages.h"

/* How simba ends when it is not CMD's own status; the words are those of simba help --json. */
#define EXIT_CODES(X)                                                                          \
    X(USAGE, 64, "wrong usage")                                                                \
    X(LOST, 123, "the lease was lost, and CMD was stopped")                                    \
    X(CONFLICT, 124, "another has the mutex: at once (-n), or all the time (-w, --wait)")      \
    X(TROUBLE, 125, "simba itself failed, or the store did not answer, or grants nothing yet") \
    X(CANNOT_RUN, 126, "CMD cannot be run")                                                    \
    X(NOT_FOUND, 127, "CMD is not found")                                                      \
    /* As if SIGPIPE had ended us: it does, unless it is ignored. */                           \
    X(NO_READER, 141, "nobody reads its lines")

#define X(name, code, text) EXIT_##name = code,
enum exit_code { EXIT_CODES(X) };
#undef X

struct cli {
    char **argv;      /* as it was given, but for what is blanked */
    struct args args; /* of a copy */
    const struct subcommand *command;
    struct setting setting[SETTINGS];
    bool json, quiet, dry_run;
    enum log_format log;    /* how lines on stderr look, and what they are about: */
    const char *mutex;      /* NULL: none in particular */
    _Atomic uint64_t token; /* of the tenure, while there is one */
    bool says_errors;       /* of the library, which nobody else says: of ticks */
    int verbose;
    struct outage *outage; /* of whoever holds a lease; NULL: nobody does */
    bool drops_lines;      /* a lease depends on us: we do not wait for whoever reads stderr */
    char **operands;       /* of cli_take_operand(), in argv */
    size_t operand_count;
    char url[URL_MAX];       /* of -u, since the one in argv is blanked */
    char given_url[URL_MAX]; /* the same, of the program that started us; "": none */

    simba_client *client; /* of cli_open() */
    bool is_driven;       /* set before that: it gets no thread of its own, see run/poll_thread.h */
    int64_t ttl_ms, transition_ms; /* set before cli_configure(): the defaults */
    char store[URL_MAX];           /* to show */
};

struct subcommand {
    const char *name, *operands, *summary;
    const char
        *one; /* what to say of a second operand, to cli_take_operand(); NULL: there may be more */
    const char *help; /* paragraphs and examples, after the options */
    const struct option *options;
    const struct program *program; /* that runs it; NULL: this one does, by … */
    int (*run)(struct cli *c);     /* … this: the exit code */
};

extern const struct option common_options[];

/* Takes what stands on the command line, and the common options: option gets the others, operand
 * the operands (NULL: there are none). An operand with which a CMD begins sets c->args.is_stopped. */
typedef struct step take_fn(struct cli *c, void *data, int id, char *value);
struct step cli_take(struct cli *c, take_fn *option, take_fn *operand, void *data);
struct step cli_take_operand(struct cli *c, void *data, int id,
                             char *value); /* any, or as command->one says */
/* For an operand that is a URL: as that of -u, and hidden from the list of processes, too. */
struct step cli_take_url(struct cli *c, void *data, int id, char *value);

/* What a flag sets. The value is kept, not copied. */
void cli_set(struct cli *c, enum setting_id id, const char *value, const char *flag);

/* A value of an option. */
struct step cli_take_duration(const struct cli *c, const char *option, const char *value,
                              int64_t *ms);
struct step cli_take_keep(const struct cli *c, const char *value,
                          int64_t *ms); /* --keep of a history */

/* Reads the configuration and finds ttl and transition; with --dry-run shows all of it, and ends. */
struct step cli_configure(struct cli *c);

/* Opens the client of the configured store. */
struct step cli_open(struct cli *c);

/* When it is open, or for a process that will not open it: overwrites the URL, which may have a
 * password. */
void cli_forget_url(struct cli *c);

/* As cli_open(), for a command that only reads: a file that is not there is not made. */
struct step cli_open_existing(struct cli *c);

#define KEEP_LEAST_MS 60000 /* of a history */

#define ANSWER_MS \
    5500 /* the store has so long to answer: longer than to connect, so that it can say why */
int cli_ask(const struct cli *c,
            const char *prefix);               /* does it? 0, or an error, as of simba_list() */
void cli_close(const struct cli *c, int code); /* code: how the command ends */

/* Of an error of the library: time does not mend it, since the store refuses or lacks something; or it
 * may, since the store did not answer this time: it is busy, or restarted. What says how things are, such as
 * that another has the lock or that it is lost, is neither. */
bool cli_error_is_final(int rc);
bool cli_error_is_passing(int rc);
int cli_fail(const struct cli *c, int rc); /* says what went wrong; the exit code */
#endif
