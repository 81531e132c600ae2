#include "cli/help.h"

#include "cli/remote.h"

#include <stdlib.h>
#include <string.h>

static const char *const group_titles[COMMAND_GROUPS] = {
    [GROUP_RUN] = "Run",
    [GROUP_LOOK] = "Look",
    [GROUP_CHANGE] = "Change",
    [GROUP_TOOLS] = "Tools",
};

static void print_line(FILE *to, const struct command *c)
{
    fprintf(to, "  %-18s %s\n", c->name, c->summary);
}

void help_all(FILE *to)
{
    fprintf(to, "Usage: muster VERB [OPTIONS]\n\n"
                "Muster gets players onto the right game server.\n");
    for (int group = 0; group < COMMAND_GROUPS; group++) {
        fprintf(to, "\n%s\n", group_titles[group]);
        for (const struct command *c = commands; c->name; c++) {
            if ((int)c->group == group)
                print_line(to, c);
        }
    }
    fprintf(to, "\n'muster VERB --help' says more about one of them.\n");
}

const char *help_of_family(const struct command *c, const char *family)
{
    size_t n = strlen(family);
    return strncmp(c->name, family, n) == 0 && c->name[n] == ' ' ? c->name + n + 1 : NULL;
}

void help_family(FILE *to, const char *family)
{
    fprintf(to, "Usage: muster %s VERB [OPTIONS]\n\n", family);
    for (const struct command *c = commands; c->name; c++) {
        if (help_of_family(c, family))
            print_line(to, c);
    }
    fprintf(to, "\n'muster %s VERB --help' says more about one of them.\n", family);
}

/* An operation's arguments are options; the one in its path is in the synopsis. */
static void print_options(FILE *to, const struct command *c)
{
    struct ask ask;
    if (c->operation) {
        ask_init(&ask, c->operation, "ID");
        args_print_help(to, ask.table);
    }
    if (c->options)
        args_print_help(to, c->options);
    if (c->shared)
        args_print_help(to, c->shared);
    if (c->operation || c->remote) {
        fprintf(to, "\nWhich Muster is asked:\n");
        args_print_help(to, remote_options);
    }
}

static void print_about(FILE *to, const struct command *c)
{
    char text[512];
    const struct operation *o = c->operation ? operation_find(c->operation) : NULL;
    if (c->about || !o) {
        fputs(c->about, to);
        return;
    }
    snprintf(text, sizeof(text), "%s%s%s", o->summary, o->about ? " " : "",
             o->about ? o->about : "");
    args_print_wrapped(to, text, 0);
}

static void print_example(FILE *to, const char *lines)
{
    fprintf(to, "\nExample:\n");
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        fprintf(to, "  %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n' ? 1 : 0);
    }
}

void help_verb(FILE *to, const struct command *c)
{
    if (c->usage) {
        fputs(c->usage, to);
        return;
    }
    fprintf(to, "Usage: muster %s %s\n\n", c->name, c->synopsis);
    print_about(to, c);
    fputc('\n', to);
    print_options(to, c);
    if (c->example)
        print_example(to, c->example);
    fprintf(to, "\nExit: 0 done, 1 refused, 2 wrong usage%s.\n",
            c->operation || c->remote ? ", 3 Muster cannot be reached" : "");
}

/* ── docs/cli.md ───────────────────────────────────────────────────────────────────────────── */

static const char MARKDOWN_HEAD[] =
    "# The command line\n"
    "\n"
    "This page is what `muster help --markdown` prints; a test holds it against the binary.\n"
    "\n"
    "Verbs under *Look* and most under *Change* ask a running Muster over its HTTP API\n"
    "([http-api.md](http-api.md)); their options are the arguments that the API has.\n"
    "\n"
    "- Which Muster: `--url`, else `MUSTER_URL`, else `" CLIENT_URL "`.\n"
    "- With which access token: `--token`, else `MUSTER_TOKEN`, else `admin.token` in the data "
    "folder\n"
    "  (`--data`, else `./data`; without `--data` that one goes only to a Muster on this "
    "machine).\n"
    "- Exit codes: 0 done, 1 refused (the sentence says why), 2 wrong usage, 3 Muster cannot be "
    "reached.\n"
    "- Colours only on a terminal; `--no-color` or `NO_COLOR` turns them off there too.\n"
    "- `-o json` prints what the API answers; of lists all pages, as one array with an item per "
    "line.\n"
    "- `--watch` draws over a terminal every second, and prints block after block elsewhere.\n";

void help_markdown(FILE *to)
{
    fputs(MARKDOWN_HEAD, to);
    for (int group = 0; group < COMMAND_GROUPS; group++) {
        fprintf(to, "\n## %s\n", group_titles[group]);
        for (const struct command *c = commands; c->name; c++) {
            if ((int)c->group != group)
                continue;
            fprintf(to, "\n### muster %s\n\n```\n", c->name);
            help_verb(to, c);
            fprintf(to, "```\n");
        }
    }
}
