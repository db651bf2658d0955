/* completion.c: simba completion: what a shell needs to complete our command lines, made from
 * the same tables as the help and the parser. */
#include <stdio.h>
#include <string.h>

#include "base/schemes.h"
#include "cli/commands/commands.h"
#include "cli/messages.h"

/* ---- what is known ------------------------------------------------------------------------- */

/* Then CMD is the second operand. */
static bool has_cmd(const struct subcommand *m)
{
    return strstr(m->operands, "CMD") != NULL;
}

/* What a value or a word is, by the name that the help has for it. */
static const char *kind_of(const char *word)
{
    static const char *const kinds[][2] = {
        {"URL", "urls"},       {"SIG", "signals"}, {"G", "groups"},   {"HOW", "missed"},
        {"FORMAT", "formats"}, {"ZONE", "zones"},  {"NAME", "names"}, {"PREFIX", "names"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i][0]);
        const char *at = word != NULL ? strstr(word, kinds[i][0]) : NULL;
        if (at != NULL && (at == word || at[-1] == '[') && strchr("] \xe2", at[length]) != NULL)
            return kinds[i][1];
    }
    return NULL;
}

#define BEGINNING(name, kind, port, begins) begins
#define URLS SCHEMES(BEGINNING)
#define SIGNALS "HUP INT QUIT KILL USR1 USR2 TERM CONT WINCH"
#define MISSED "skip once all"
#define FORMATS "plain json"
#define LIST_ZONES "echo UTC; awk '/^[A-Z]/ { print $3 }' /usr/share/zoneinfo/zone.tab 2>/dev/null"
/* What the store lists, if it answers at once; names that need quoting are left out. */
#define LIST_NAMES                                            \
    "timeout 1 simba %s list -q --json 2>/dev/null | sed -n " \
    "'s/.*\"mutex\":\"\\([A-Za-z0-9._:/@+-]*\\)\".*/\\1/p'"

/* A text within single quotes, without the characters that mean something there. */
static void put_quoted(const char *text, const char *escape)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr(escape, *text) != NULL)
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* ---- bash ---------------------------------------------------------------------------------- */

static void put_bash_options(const struct option *o, bool with_value)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (with_value ? !option_takes_next(o) : o->help == NULL)
            continue;
        printf(" --%s", o->name);
        if (o->letter != 0)
            printf(" -%c", o->letter);
    }
}

static void put_names(void)
{
    for (const struct subcommand *const *m = commands; *m != NULL; m++)
        printf(" %s", (*m)->name);
    puts("' ;;");
}

/* Values and words that are URLs, signals, groups or names of mutexes. */
static void put_bash_kinds(void)
{
    puts("    case $value in\n"
         "    '')\n"
         "        [[ $cur != -* ]] && case $command in");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        const char *kind = kind_of((*m)->operands);
        if (kind != NULL)
            printf("        %s) ((before > 0 && words > 0)) || kind=%s ;;\n", (*m)->name, kind);
    }
    puts("        esac ;;\n"
         "    -u | --url) kind=urls ;;\n"
         "    --signal) kind=signals ;;\n"
         "    -g | --group) kind=groups ;;\n"
         "    --missed) kind=missed ;;\n"
         "    --log) kind=formats ;;\n"
         "    --zone) kind=zones ;;\n"
         "    *) return 0 ;;\n"
         "    esac\n"
         "    case $kind in\n"
         "    urls)\n"
         "        compopt -o nospace 2>/dev/null\n"
         "        COMPREPLY=($(compgen -W '" URLS "' -- \"$cur\")) ;;\n"
         "    signals) COMPREPLY=($(compgen -W '" SIGNALS "' -- \"$cur\")) ;;\n"
         "    groups) COMPREPLY=($(compgen -g -- \"$cur\")) ;;\n"
         "    missed) COMPREPLY=($(compgen -W '" MISSED "' -- \"$cur\")) ;;\n"
         "    formats) COMPREPLY=($(compgen -W '" FORMATS "' -- \"$cur\")) ;;\n"
         "    zones) COMPREPLY=($(compgen -W \"$(" LIST_ZONES ")\" -- \"$cur\")) ;;");
    printf("    names) COMPREPLY=($(compgen -W \"$(" LIST_NAMES ")\" -- \"$cur\")) ;;\n",
           "${url:+-u \"$url\"}");
    puts("    esac\n"
         "    if [[ -n $kind ]]; then\n"
         "        prefix=${cur%\"${cur##*:}\"} # what bash has cut off, it adds again\n"
         "        COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
         "        [[ -n ${COMPREPLY[0]-} ]] || COMPREPLY=()\n"
         "        return 0\n"
         "    fi");
}

static void put_bash(void)
{
    puts("# bash completion of simba: eval \"$(simba completion bash)\"\n"
         "_simba() {\n"
         "    local cur command= words=0 i word values options before=0 value= url= prefix kind=\n"
         "    local -a w=() at=()\n"
         "    COMPREPLY=()\n"
         "    for ((i = 0; i <= COMP_CWORD; i++)); do # bash cuts words at colons\n"
         "        word=${COMP_WORDS[i]}\n"
         "        if ((i > 0)) && [[ $word == :* || ${w[-1]} == *: ]]; then\n"
         "            w[-1]+=$word\n"
         "        else\n"
         "            w+=(\"$word\") at+=(\"$i\")\n"
         "        fi\n"
         "    done\n"
         "    cur=${w[-1]}");
    printf("    values=' ");
    put_bash_options(common_options, true);
    puts(" '\n"
         "    for ((i = 1; i < ${#w[@]} - 1; i++)); do\n"
         "        word=${w[i]}\n"
         "        if [[ $values == *\" $word \"* ]]; then\n"
         "            ((++i))\n"
         "            [[ $word != -u && $word != --url ]] || url=${w[i]}\n"
         "            ((i < ${#w[@]} - 1)) || value=$word\n"
         "        elif [[ $word == -- ]]; then\n"
         "            before=0\n"
         "        elif [[ $word == -* ]]; then\n"
         "            continue\n"
         "        elif [[ -z $command ]]; then\n"
         "            command=$word\n"
         "            case $command in");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        printf("            %s) before=%d values+='", (*m)->name, (int)has_cmd(*m));
        put_bash_options((*m)->options, true);
        puts(" ' ;;");
    }
    puts("            esac\n"
         "        else\n"
         "            ((++words))\n"
         "            if ((before > 0 && words > before)); then # CMD: as if it stood alone\n"
         "                if declare -F _command_offset >/dev/null; then\n"
         "                    _command_offset \"${at[i]}\"\n"
         "                else\n"
         "                    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "                fi\n"
         "                return 0\n"
         "            fi\n"
         "        fi\n"
         "    done");
    put_bash_kinds();
    puts("    if ((before > 0 && words == before)) && [[ $cur != -* ]]; then\n"
         "        COMPREPLY=($(compgen -c -- \"$cur\"))\n"
         "        return 0\n"
         "    fi");
    printf("    options='");
    put_bash_options(common_options, false);
    puts(" '\n"
         "    case $command in");
    printf("    '') [[ $cur == -* ]] || options='help");
    put_names();
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        if (strcmp((*m)->name, "completion") == 0) {
            puts("    completion) [[ $cur == -* ]] || options='bash zsh fish' ;;");
            continue;
        }
        printf("    %s) [[ $cur == -* ]] || return 0; options+='", (*m)->name);
        put_bash_options((*m)->options, false);
        puts("' ;;");
    }
    printf("    help) options='");
    put_names();
    puts("    *) return 0 ;;\n"
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F _simba simba");
}

/* ---- zsh ----------------------------------------------------------------------------------- */

/* NAME=[help]:ARG: as _arguments wants it. */
static void put_zsh_option(const struct option *o, bool with_letter, const char *end)
{
    bool takes_next = option_takes_next(o);
    if (with_letter)
        printf("        '-%c%s[", o->letter, takes_next ? "+" : o->arg != NULL ? "-" : "");
    else
        printf("        '--%s%s[", o->name, takes_next ? "=" : o->arg != NULL ? "=-" : "");
    put_quoted(o->help, "[]:\\");
    const char *kind = kind_of(o->arg);
    if (o->arg != NULL)
        printf("]:%s%s:%s%s'%s\n", takes_next ? "" : ":", o->arg, kind != NULL ? "_simba_" : "",
               kind != NULL ? kind : "", end);
    else
        printf("]'%s\n", end);
}

static void put_zsh_options(const struct option *o, const char *end)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (o->help == NULL)
            continue;
        put_zsh_option(o, false, end);
        if (o->letter != 0)
            put_zsh_option(o, true, end);
    }
}

static void put_zsh(void)
{
    puts("#compdef simba\n"
         "# zsh completion of simba\n"
         "_simba_urls() { compadd -S '' -- " URLS " }\n"
         "_simba_signals() { compadd -- " SIGNALS " }\n"
         "_simba_groups() { _groups }\n"
         "_simba_missed() { compadd -- " MISSED " }\n"
         "_simba_formats() { compadd -- " FORMATS " }\n"
         "_simba_zones() { compadd -- ${(f)\"$(" LIST_ZONES ")\"} }\n"
         "_simba_names() {\n"
         "    local -a names url\n"
         "    local i=${words[(I)(-u|--url)]}\n"
         "    ((i == 0)) || url=(-u ${words[i+1]})");
    printf("    names=(${(f)\"$(" LIST_NAMES ")\"})\n", "$url");
    puts("    compadd -a names\n"
         "}\n"
         "_simba() {\n"
         "    local curcontext=\"$curcontext\" state line\n"
         "    local -a common commands\n"
         "    common=(");
    put_zsh_options(common_options, "");
    puts("    )\n"
         "    commands=(");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        printf("        '%s:", (*m)->name);
        put_quoted((*m)->summary, ":\\");
        puts("'");
    }
    puts("        'help:what a command does'\n"
         "    )\n"
         "    _arguments -C -S $common '1: :->command' '*:: :->rest' && return 0\n"
         "    if [[ $state == command ]]; then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    case $words[1] in");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        printf("    %s)\n        _arguments -S $common \\\n", (*m)->name);
        put_zsh_options((*m)->options, " \\");
        if (has_cmd(*m))
            puts("            '1:name:_simba_names' '*:: :_normal'\n        ;;");
        else if (strcmp((*m)->name, "completion") == 0)
            puts("            '1:shell:(bash zsh fish)'\n        ;;");
        else
            printf("            '*:name:%s%s'\n        ;;\n",
                   kind_of((*m)->operands) != NULL ? "_simba_" : "",
                   kind_of((*m)->operands) != NULL ? kind_of((*m)->operands) : "");
    }
    puts("    help) _describe command commands ;;\n"
         "    esac\n"
         "}\n"
         "_simba \"$@\"");
}

/* ---- fish ---------------------------------------------------------------------------------- */

static void put_fish_options(const struct option *o, const char *when)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (o->help == NULL)
            continue;
        printf("complete -c simba%s -l %s", when, o->name);
        if (o->letter != 0)
            printf(" -s %c", o->letter);
        const char *kind = kind_of(o->arg);
        if (kind != NULL)
            printf(" -x -a '(__simba_%s)' -d '", kind);
        else
            printf("%s -d '", option_takes_next(o) ? " -x" : "");
        put_quoted(o->help, "\\");
        puts("'");
    }
}

static void put_fish(void)
{
    char when[128];
    puts("# fish completion of simba\n"
         "function __simba_urls; string split ' ' '" URLS "'; end\n"
         "function __simba_signals; string split ' ' '" SIGNALS "'; end\n"
         "function __simba_groups; __fish_complete_groups; end\n"
         "function __simba_missed; string split ' ' '" MISSED "'; end\n"
         "function __simba_formats; string split ' ' '" FORMATS "'; end\n"
         "function __simba_zones; " LIST_ZONES "; end\n"
         "function __simba_names\n"
         "    set -l words (commandline -opc)\n"
         "    set -l url\n"
         "    for i in (seq (count $words))\n"
         "        contains -- $words[$i] -u --url; and set url -u $words[(math $i + 1)]\n"
         "    end");
    printf("    " LIST_NAMES "\n"
           "end\n"
           "complete -c simba -f\n",
           "$url");
    put_fish_options(common_options, "");
    for (const struct subcommand *const *m = commands; *m != NULL; m++) {
        printf("complete -c simba -n __fish_use_subcommand -a %s -d '", (*m)->name);
        put_quoted((*m)->summary, "\\");
        puts("'");
        snprintf(when, sizeof when, " -n '__fish_seen_subcommand_from %s'", (*m)->name);
        put_fish_options((*m)->options, when);
        const char *kind = kind_of((*m)->operands);
        if (kind != NULL)
            printf("complete -c simba%s -a '(__simba_%s)'\n", when, kind);
        if (has_cmd(*m))
            printf("complete -c simba%s -a '(__fish_complete_subcommand)'\n", when);
        else if (strcmp((*m)->name, "completion") == 0)
            printf("complete -c simba%s -a 'bash zsh fish'\n", when);
    }
}

/* ---- the command --------------------------------------------------------------------------- */

static int run(struct cli *c)
{
    struct step step = cli_take(c, NULL, cli_take_operand, NULL);
    if (step.ends)
        return step.code;
    if (c->operand_count == 0)
        return usage(c, "missing SHELL: bash, zsh or fish").code;
    const char *shell = c->operands[0];
    if (strcmp(shell, "bash") == 0)
        put_bash();
    else if (strcmp(shell, "zsh") == 0)
        put_zsh();
    else if (strcmp(shell, "fish") == 0)
        put_fish();
    else
        return usage(c, "unknown shell '%.40s': bash, zsh or fish", shell).code;
    return 0;
}

const struct subcommand completion_command = {
    .name = "completion",
    .operands = "SHELL",
    .one = "one shell at a time",
    .summary = "what your shell needs to complete command lines",
    .help =
        "For bash, zsh or fish. Completes commands, options, URL schemes, signals, time zones, and "
        "the names of mutexes that the store lists within a second. Installed with simba where the "
        "shells "
        "look for it; else:\n"
        "  bash   eval \"$(simba completion bash)\" in ~/.bashrc\n"
        "  zsh    simba completion zsh >~/.zfunc/_simba, with that folder in fpath\n"
        "  fish   simba completion fish >~/.config/fish/completions/simba.fish\n",
    .run = run,
};
