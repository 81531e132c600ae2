/* `muster completion bash|zsh|fish`: the scripts. What could be meant they ask this program, by
 * `muster completion words -- WORD...` (complete.h), so they know no verb themselves. */
#include "cli/cli.h"
#include "cli/complete.h"

#include <stdio.h>
#include <string.h>

static const char *set_shell;

const struct arg completion_options[] = {
    {.name = "SHELL", .kind = ARG_WORD, .into = &set_shell},
    {0},
};

static const char BASH[] =
    "# bash completion for muster\n"
    "_muster() {\n"
    "    local program=${COMP_WORDS[0]/#\\~\\//$HOME/} word about\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        case $word in\n"
    "        :files) compopt -o default 2>/dev/null ;;\n"
    "        :folders) compopt -o dirnames 2>/dev/null ;;\n"
    "        *) COMPREPLY+=(\"$word\") ;;\n"
    "        esac\n"
    "    done < <(\"$program\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _muster muster\n";

static const char ZSH[] =
    "#compdef muster\n"
    "_muster() {\n"
    "    local word about program=${words[1]/#\\~\\//$HOME/}\n"
    "    local -a found\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        case $word in\n"
    "        :files) _files; return ;;\n"
    "        :folders) _files -/; return ;;\n"
    "        esac\n"
    "        found+=(\"${word//:/\\\\:}:$about\")\n"
    "    done < <(\"${(Q)program}\" completion words -- \"${(@Q)words[2,CURRENT-1]}\" \\\n"
    "        \"${(Q)PREFIX}\" 2>/dev/null)\n"
    "    _describe muster found\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _muster ]; then\n"
    "    _muster \"$@\"\n"
    "else\n"
    "    compdef _muster muster\n"
    "fi\n";

static const char FISH[] =
    "# fish completion for muster\n"
    "function __muster_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l program (string replace -r '^~/' \"$HOME/\" -- $words[1])\n"
    "    set -e words[1]\n"
    "    for line in ($program completion words -- $words \"$current\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                __fish_complete_path \"$current\"\n"
    "            case ':folders'\n"
    "                __fish_complete_directories \"$current\"\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c muster -f -a '(__muster_complete)'\n";

static const struct {
    const char *shell;
    const char *script;
} scripts[] = {{"bash", BASH}, {"zsh", ZSH}, {"fish", FISH}};

int completion_run(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "words") == 0 && strcmp(argv[2], "--") == 0) {
        complete_put(stdout, argc - 3, argv + 3);
        return EXIT_DONE;
    }
    if (!args_parse(argc, argv, completion_options))
        return EXIT_USAGE;
    for (size_t i = 0; set_shell && i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(set_shell, scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return EXIT_DONE;
        }
    }
    (void)args_refuse(argv[0], "SHELL is bash, zsh or fish, not '%s'", set_shell ? set_shell : "");
    return EXIT_USAGE;
}
