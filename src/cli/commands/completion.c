/* completion.c: simba completion: what a shell needs to complete our command lines, made from the same
 * tables as the help and the parser. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/output.h"

/* ---- what is known ------------------------------------------------------------------------------- */

/* Then CMD is the second word. */
static bool has_cmd(const struct command *m)
{
    return strstr(m->words, "CMD") != NULL;
}

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

/* ---- bash ---------------------------------------------------------------------------------------- */

static void put_words(const struct option *o, bool with_value)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (with_value ? o->arg == NULL : o->help == NULL)
            continue;
        printf(" --%s", o->name);
        if (o->letter != 0)
            printf(" -%c", o->letter);
    }
}

static void put_names(void)
{
    for (const struct command *const *m = commands; *m != NULL; m++)
        printf(" %s", (*m)->name);
    puts("' ;;");
}

static void put_bash(void)
{
    puts("# bash completion of simba: eval \"$(simba completion bash)\"\n"
         "_simba() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} command= words=0 i word values options before=0\n"
         "    COMPREPLY=()");
    printf("    values=' ");
    put_words(common_options, true);
    puts(" '\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        word=${COMP_WORDS[i]}\n"
         "        if [[ $values == *\" $word \"* ]]; then\n"
         "            ((++i))\n"
         "            ((i < COMP_CWORD)) || return 0\n"
         "        elif [[ $word == -- ]]; then\n"
         "            before=0\n"
         "        elif [[ $word == -* ]]; then\n"
         "            continue\n"
         "        elif [[ -z $command ]]; then\n"
         "            command=$word\n"
         "            case $command in");
    for (const struct command *const *m = commands; *m != NULL; m++) {
        printf("            %s) before=%d values+='", (*m)->name, (int)has_cmd(*m));
        put_words((*m)->options, true);
        puts(" ' ;;");
    }
    puts("            esac\n"
         "        else\n"
         "            ((++words))\n"
         "            if ((before > 0 && words > before)); then # CMD: as if it stood alone\n"
         "                if declare -F _command_offset >/dev/null; then\n"
         "                    _command_offset \"$i\"\n"
         "                else\n"
         "                    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "                fi\n"
         "                return 0\n"
         "            fi\n"
         "        fi\n"
         "    done\n"
         "    if ((before > 0 && words == before)) && [[ $cur != -* ]]; then\n"
         "        COMPREPLY=($(compgen -c -- \"$cur\"))\n"
         "        return 0\n"
         "    fi");
    printf("    options='");
    put_words(common_options, false);
    puts(" '\n"
         "    case $command in");
    printf("    '') [[ $cur == -* ]] || options='help");
    put_names();
    for (const struct command *const *m = commands; *m != NULL; m++) {
        if (strcmp((*m)->name, "completion") == 0) {
            puts("    completion) [[ $cur == -* ]] || options='bash zsh fish' ;;");
            continue;
        }
        printf("    %s) [[ $cur == -* ]] || return 0; options+='", (*m)->name);
        put_words((*m)->options, false);
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

/* ---- zsh ----------------------------------------------------------------------------------------- */

/* NAME=[help]:ARG: as _arguments wants it. */
static void put_zsh_option(const struct option *o, bool with_letter, const char *end)
{
    if (with_letter)
        printf("        '-%c%s[", o->letter, o->arg != NULL ? "+" : "");
    else
        printf("        '--%s%s[", o->name, o->arg != NULL ? "=" : "");
    put_quoted(o->help, "[]:\\");
    if (o->arg != NULL)
        printf("]:%s:'%s\n", o->arg, end);
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
         "_simba() {\n"
         "    local curcontext=\"$curcontext\" state line\n"
         "    local -a common commands\n"
         "    common=(");
    put_zsh_options(common_options, "");
    puts("    )\n"
         "    commands=(");
    for (const struct command *const *m = commands; *m != NULL; m++) {
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
    for (const struct command *const *m = commands; *m != NULL; m++) {
        printf("    %s)\n        _arguments -S $common \\\n", (*m)->name);
        put_zsh_options((*m)->options, " \\");
        if (has_cmd(*m))
            puts("            '1:name:' '*:: :_normal'\n        ;;");
        else if (strcmp((*m)->name, "completion") == 0)
            puts("            '1:shell:(bash zsh fish)'\n        ;;");
        else
            puts("            '*:name:'\n        ;;");
    }
    puts("    help) _describe command commands ;;\n"
         "    esac\n"
         "}\n"
         "_simba \"$@\"");
}

/* ---- fish ---------------------------------------------------------------------------------------- */

static void put_fish_options(const struct option *o, const char *when)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (o->help == NULL)
            continue;
        printf("complete -c simba%s -l %s", when, o->name);
        if (o->letter != 0)
            printf(" -s %c", o->letter);
        printf("%s -d '", o->arg != NULL ? " -x" : "");
        put_quoted(o->help, "\\");
        puts("'");
    }
}

static void put_fish(void)
{
    char when[128];
    puts("# fish completion of simba\n"
         "complete -c simba -f");
    put_fish_options(common_options, "");
    for (const struct command *const *m = commands; *m != NULL; m++) {
        printf("complete -c simba -n __fish_use_subcommand -a %s -d '", (*m)->name);
        put_quoted((*m)->summary, "\\");
        puts("'");
        snprintf(when, sizeof when, " -n '__fish_seen_subcommand_from %s'", (*m)->name);
        put_fish_options((*m)->options, when);
        if (has_cmd(*m))
            printf("complete -c simba%s -a '(__fish_complete_subcommand)'\n", when);
        else if (strcmp((*m)->name, "completion") == 0)
            printf("complete -c simba%s -a 'bash zsh fish'\n", when);
    }
}

/* ---- the command --------------------------------------------------------------------------------- */

static int run(struct cli *c)
{
    int code = cli_take(c, NULL, cli_take_word, NULL);
    if (code >= 0)
        return code;
    if (c->word_count == 0)
        return usage(c, "missing SHELL: bash, zsh or fish");
    const char *shell = c->words[0];
    if (strcmp(shell, "bash") == 0)
        put_bash();
    else if (strcmp(shell, "zsh") == 0)
        put_zsh();
    else if (strcmp(shell, "fish") == 0)
        put_fish();
    else
        return usage(c, "unknown shell '%.40s': bash, zsh or fish", shell);
    return 0;
}

const struct command completion_command = {
    .name = "completion",
    .words = "SHELL",
    .one = "one shell at a time",
    .summary = "what your shell needs to complete simba's words",
    .help = "For bash, zsh or fish. Installed with simba where the shells look for it; else:\n"
            "  bash   eval \"$(simba completion bash)\" in ~/.bashrc\n"
            "  zsh    simba completion zsh >~/.zfunc/_simba, with that folder in fpath\n"
            "  fish   simba completion fish >~/.config/fish/completions/simba.fish\n",
    .run = run,
};
