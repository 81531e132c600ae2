/* What the verbs say about themselves, made of the table of verbs and their tables of options. */
#pragma once

#include "cli/ask.h"
#include "cli/cli.h"

#include <stdio.h>

/* `muster --help`: every verb with its line, in groups. */
void help_all(FILE *to);

/* `muster VERB --help` */
void help_verb(FILE *to, const struct command *c);

/* `muster token --help`: the verbs of a family. */
void help_family(FILE *to, const char *family);

/* docs/cli.md */
void help_markdown(FILE *to);

/* How the groups of verbs are called. */
extern const char *const help_groups[COMMAND_GROUPS];

/* Every option a verb takes: the arguments of its operation, its own, those it shares with others,
 * and last those that say which Muster is asked. Closed by NULL. ask is filled when the verb has an
 * operation, and the tables point into it. */
enum { HELP_TABLES_MAX = 4 };
void help_tables(const struct command *c, struct ask *ask,
                 const struct arg *ret[HELP_TABLES_MAX + 1]);

/* What a verb does, in lines or as one long one; its newline is there. */
void help_about(FILE *to, const struct command *c);

/* What its exit codes mean. */
const char *help_exit(const struct command *c);

/* True when it asks a running Muster over HTTP. */
bool help_is_remote(const struct command *c);

/* The second word of a verb of that family ("enrol" of "token enrol"), or NULL. */
const char *help_of_family(const struct command *c, const char *family);
