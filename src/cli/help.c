#include "cli/help.h"

#include "cli/remote.h"

#include <stdlib.h>
#include <string.h>

const char *const help_groups[COMMAND_GROUPS] = {
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
        fprintf(to, "\n%s\n", help_groups[group]);
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

bool help_is_remote(const struct command *c)
{
    return c->operation || c->remote;
}

/* An operation's arguments are options; the one in its path is in the synopsis. */
void help_tables(const struct command *c, struct ask *ask,
                 const struct arg *ret[HELP_TABLES_MAX + 1])
{
    size_t n = 0;
    if (c->operation) {
        ask_init(ask, c->operation, "ID");
        ret[n++] = ask->table;
    }
    if (c->options)
        ret[n++] = c->options;
    if (c->shared)
        ret[n++] = c->shared;
    if (help_is_remote(c))
        ret[n++] = remote_options;
    ret[n] = NULL;
}

static void print_options(FILE *to, const struct command *c)
{
    struct ask ask;
    const struct arg *tables[HELP_TABLES_MAX + 1];
    help_tables(c, &ask, tables);
    for (size_t i = 0; tables[i]; i++) {
        if (tables[i] == remote_options)
            fprintf(to, "\nWhich Muster is asked:\n");
        args_print_help(to, tables[i]);
    }
}

void help_about(FILE *to, const struct command *c)
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

const char *help_exit(const struct command *c)
{
    if (c->exit)
        return c->exit;
    return help_is_remote(c) ? "0 done, 1 refused, 2 wrong usage, 3 Muster cannot be reached."
                             : "0 done, 1 refused, 2 wrong usage.";
}

void help_verb(FILE *to, const struct command *c)
{
    fprintf(to, "Usage: muster %s %s\n\n", c->name, c->synopsis);
    help_about(to, c);
    fputc('\n', to);
    print_options(to, c);
    if (c->example)
        print_example(to, c->example);
    fprintf(to, "\nExit: ");
    args_print_wrapped(to, help_exit(c), 0);
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
    "- Which Muster: `--url`, else `MUSTER_URL`, else `" CLIENT_URL "`. Of several nodes, at most\n"
    "  eight URLs with commas between them: whoever leads is found, and looked for again while "
    "the\n"
    "  leader changes, for 15 s. A change that may have been heard is repeated with the same key,\n"
    "  so it is done once.\n"
    "- With which access token: `--token`, else `MUSTER_TOKEN`, else `admin.token` in the data "
    "folder\n"
    "  (`--data`, else `./data`, else `" CLIENT_SERVICE_DATA
    "`; without `--data` that one goes only "
    "to a\n"
    "  Muster on this machine).\n"
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
        fprintf(to, "\n## %s\n", help_groups[group]);
        for (const struct command *c = commands; c->name; c++) {
            if ((int)c->group != group)
                continue;
            fprintf(to, "\n### muster %s\n\n```\n", c->name);
            help_verb(to, c);
            fprintf(to, "```\n");
        }
    }
}
