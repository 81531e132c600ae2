/* What the verbs say about themselves, made of the table of verbs and their tables of options. */
#pragma once

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

/* The second word of a verb of that family ("enrol" of "token enrol"), or NULL. */
const char *help_of_family(const struct command *c, const char *family);
