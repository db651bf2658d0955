/* cli.h: what the subcommands share. A subcommand is one file with one struct command, and one line
 * in the table of main.c. Nothing here knows more of Simba than the public headers say.
 *
 * Data goes to stdout, everything else to stderr. */
#ifndef CLI_H
#define CLI_H

#include <limits.h>
#include <simba.h>
#include <stdbool.h>
#include <stdio.h>

#define URL_MAX 4096

/* How simba ends when it is not CMD's own status. */
enum exit_code {
    EXIT_USAGE = 64,
    EXIT_LOST = 123,     /* the lease was lost and CMD was stopped */
    EXIT_CONFLICT = 124, /* not acquired in time, or held by another */
    EXIT_TROUBLE = 125,  /* simba itself failed */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_NO_READER = 141 /* as if SIGPIPE had ended us: it does, unless it is ignored */
};

/* ---- args.c: options and words, in the order in which they stand ---------------------------- */

struct option {
    const char *name; /* --name; NULL at the end of a table */
    int letter, id;   /* -l; 0: none */
    const char *arg;  /* what its value is called in the help; NULL: it has none */
    const char *help; /* NULL: accepted, but not shown */
};

enum { ARG_END = -1, ARG_WORD = -2, ARG_WRONG = -3 }; /* beside the ids of options */

struct args {
    char **argv;
    int at;              /* next to look at; argv[at] is NULL at the end */
    const char *bundle;  /* the rest of -abc */
    bool only_words;     /* after -- */
    const char *command; /* of the subcommand, for messages; NULL: none yet */
    const struct option *common, *own;
};

/* The id of the next option, ARG_WORD, ARG_END, or ARG_WRONG after saying what is wrong. value is the
 * option's, or the word. It points into argv: it may be blanked there. */
int args_next(struct args *a, char **value);

/* ---- config.c: what is set where ------------------------------------------------------------ */

enum setting_id { SET_URL, SET_TTL, SET_TRANSITION, SET_ID, SET_INITIAL_DELAY, SETTINGS };

struct setting {
    const char *value;        /* NULL: not set */
    char where[URL_MAX + 64]; /* "--ttl", "SIMBA_TTL", "/etc/simba/simba.yaml:3", "default" */
    bool by_flag;
};

struct cli;

/* Environment, then files, for all that no flag has set; 0, or an exit code after saying why. */
int config_load(struct cli *c);

/* The duration that a setting says, or `otherwise`; 0, or an exit code after saying why. */
int config_duration(struct cli *c, enum setting_id id, int64_t otherwise, int64_t *ms);

/* yaml.c: calls found() for each scalar: its key with dots, its line. found returns NULL, or what
 * is wrong with it. 0; 1 after saying what is wrong; no file is no mistake. */
typedef const char *yaml_fn(void *data, const char *key, const char *value, long line);
int yaml_read(struct cli *c, const char *path, yaml_fn *found, void *data);

/* ---- the frame ------------------------------------------------------------------------------ */

struct cli {
    struct args args;
    const struct command *command;
    struct setting setting[SETTINGS];
    bool json, quiet, dry_run;
    int verbose;
    bool drops_lines;  /* a lease depends on us: we do not wait for whoever reads stderr */
    char url[URL_MAX]; /* of -u, since the one in argv is blanked */

    simba *client;  /* of cli_open() */
    bool is_driven; /* set before that: it gets no thread of its own, see driver.c */
    int64_t ttl_ms, transition_ms;
    char store[URL_MAX]; /* to show */
};

struct command {
    const char *name, *words, *summary;
    const char *help; /* paragraphs and examples, after the options */
    const struct option *options;
    int (*run)(struct cli *c); /* the exit code */
};

extern const struct command lock_command, elect_command, schedule_command, watch_command,
    status_command, list_command, release_command, init_command, doctor_command, tck_command,
    completion_command, version_command;

/* All of them, NULL at the end; and the options that they share. */
extern const struct command *const commands[];
extern const struct option common_options[];

/* A common option: true if it was one. *code: an exit code if it ends the program, else -1. */
bool cli_common(struct cli *c, int id, char *value, int *code);

/* Takes what stands on the command line, and leaves the common options to cli_common(): option gets
 * the others, word the words (NULL: there are none). They return -1, or an exit code after saying
 * why; word may return STOP_HERE: it has begun a CMD. -1: go on, else the exit code. */
enum { STOP_HERE = -2 };
typedef int take_fn(struct cli *c, void *data, int id, char *value);
int cli_take(struct cli *c, take_fn *option, take_fn *word, void *data);
/* For a word that is a URL: as that of -u, and hidden from the list of processes, too. */
int cli_take_url(struct cli *c, void *data, int id, char *value);

/* A value of an option: -1, or an exit code after saying what is wrong with it. */
int take_duration(const struct cli *c, const char *option, const char *value, int64_t *ms);

/* Reads the configuration and finds ttl and transition; with --dry-run shows all of it. -1: go on,
 * else the exit code. */
int cli_configure(struct cli *c);

/* Opens the client of the configured store. 0, or an exit code after saying why. */
int cli_open(struct cli *c);

/* When it is open, or for a process that will not open it: overwrites the URL, which may have a password. */
void cli_forget_url(struct cli *c);

/* The same for a command that only looks: a file that is not there is not made. */
int cli_open_to_look(struct cli *c);

/* What a question to the store has come to: says what went wrong, and is the exit code. */
#define ANSWER_MS 5000 /* it has so long to answer */
int cli_fail(const struct cli *c, int rc);

/* ---- place.c: where a database of sqlite: is --------------------------------------------------- */

struct place {
    char folder[PATH_MAX], file[NAME_MAX + 1];
};

/* From sqlite:PATH, decoded as the library does it; NULL, or what is wrong with it. */
const char *place_of(const char *url, struct place *out);

/* ---- schema.c: -------------------------------------------------------------------------------- */

/* What makes the tables of a store, on stdout; false: it has none that somebody else could make. */
bool schema_print(const char *url);

/* ---- driver.c: for a client that is driven -------------------------------------------------- */

/* From now on a thread drives it, if it has none; false after saying why: there is none. */
bool driver_start(struct cli *c);
void driver_stop(struct cli *c); /* the caller drives it by waiting; before simba_close() */

/* ---- say.c: words on stderr, data on stdout -------------------------------------------------- */

/* A line on stderr: "simba lock: …". say() unless -q; complain() always. */
__attribute__((format(printf, 2, 3))) void say(const struct cli *c, const char *format, ...);
__attribute__((format(printf, 2, 3))) void complain(const struct cli *c, const char *format, ...);

/* complain(), and how to find out more; returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int usage(const struct cli *c, const char *format, ...);

/* An object as one line of JSON on stdout: pairs of names and values, as jansson's json_pack has
 * them in its format. */
void print_json(const char *format, ...);

/* Any text as it can be shown to people, whoever wrote it: characters that move the cursor, begin a line or
 * turn the direction of text are question marks, and so is what is not UTF-8. The result is not longer. */
#define SHOWN_MAX (SIMBA_ID_MAX + 16) /* for a name or an id */
const char *show_name(const char *name, char *out, size_t size);

/* A value of jansson's as a line on stdout, in which such characters are \u escapes; it is given up. */
struct json_t;
void print_json_value(struct json_t *value);

/* Writes what stdout has gathered. If nobody reads it any more, that is the quiet end. */
void flush_stdout(const struct cli *c);

/* Colours, a terminal's width: 0 unless stdout is a terminal and wants such. */
bool wants_colour(void);
int terminal_width(void);

int width_of(const char *text, size_t bytes); /* columns: a character may have several bytes */

/* ---- table.c: owners, as aligned columns or as JSON lines ------------------------------------ */

struct row {
    char mutex[SIMBA_MUTEX_MAX + 1];
    struct simba_owner owner; /* all zero: nobody */
    int64_t waiters;          /* -1: unknown */
};

struct rows {
    struct row *row;
    size_t count, room;
    bool failed; /* out of memory */
};

void rows_add(struct rows *r, const char *mutex, const struct simba_owner *owner, int64_t waiters);
void rows_print(const struct cli *c, const struct rows *r); /* as --json says */

/* A change as a line of JSON: the event, the tenure that it is about, and why. */
void print_event(const struct cli *c, const char *event, const char *mutex,
                 const struct simba_owner *owner, enum simba_reason reason);

/* The same for people; at a terminal in colour. */
void print_event_line(const struct cli *c, const char *event, const char *mutex,
                      const struct simba_owner *owner, enum simba_reason reason);

const char *reason_name(enum simba_reason reason); /* "expired" …; NULL: none */
bool reason_is_loss(enum simba_reason reason);     /* expired or evicted: not by its owner */

/* "1.5s", "12s", "3m07s", "2h05m"; out holds at least 24 bytes. */
const char *show_duration(int64_t ms, char *out);

/* The nearest of some words, to suggest; NULL: none is near. */
const char *nearest(const char *word, const char *const *words, size_t count);

/* notify.c: tells systemd, if it asked to be told; after notify_through() by another process of ours,
 * because systemd listens to the one that it started. */
void notify_service_manager(const char *state);
void notify_through(int fd);
#endif
