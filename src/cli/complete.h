/* What a shell could complete a command line with, made of the table of verbs and their tables of
 * options; names of fleets, hosts and the like are asked for from a running Muster. */
#pragma once

#include <stdio.h>

/* words are those behind the program's name; the last is being typed and may be "". Prints a line
 * for each candidate: the word, and with a tab what it is. Only words that a shell takes as they
 * are come out. A line ":files" or ":folders" says that a path is wanted. A Muster that is away or
 * slow costs at most a second and is no failure. */
void complete_put(FILE *to, int n, char **words);
