#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *cli_program = "muster";

static const struct command commands[] = {
    {"serve", serve_run, "run Muster", serve_usage},
    {"dev", dev_run, "run Muster with demo game servers and a demo chat server", dev_usage},
    {"game-server", game_server_run, "be a game server, well-behaved or not", game_server_usage},
    {"allocate", allocate_run, "ask for a match, as a chat server would", allocate_usage},
    {"dump", dump_run, "print captured frames", dump_usage},
    {"sim", sim_run, "run the core in a simulated world and check its promises", sim_usage},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]), WORD_MAX = 32 };

static void print_help(FILE *to)
{
    fprintf(to, "Usage: muster VERB [OPTIONS]\n\n"
                "Muster gets players onto the right game server.\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n'muster VERB --help' says more about one of them.\n");
}

static int least(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* How many letters must be added, removed or changed to make b of a. One row of the usual table is
 * enough. */
static int edit_distance(const char *a, const char *b)
{
    int row[WORD_MAX + 1];
    int b_len = (int)strlen(b);
    for (int j = 0; j <= b_len; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= b_len; j++) {
            int changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, changed);
        }
    }
    return row[b_len];
}

/* NULL when nothing is near enough to be meant. */
static const char *nearest(const char *word)
{
    const char *best = NULL;
    int best_distance = 4;
    for (size_t i = 0; i < COMMANDS; i++) {
        int distance = edit_distance(word, commands[i].name);
        if (distance < best_distance && distance < (int)strlen(commands[i].name)) {
            best = commands[i].name;
            best_distance = distance;
        }
    }
    return best;
}

static int unknown_verb(const char *word)
{
    const char *meant = nearest(word);
    fprintf(stderr, "muster: there is no verb '%s'.", word);
    if (meant)
        fprintf(stderr, " Did you mean '%s'?", meant);
    fprintf(stderr, " 'muster --help' lists them.\n");
    return EXIT_USAGE;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

static int run(const struct command *c, int argc, char **argv)
{
    if (!wants_help(argc, argv))
        return c->run(argc, argv);
    fputs(c->usage, stdout);
    return EXIT_DONE;
}

int cli_main(int argc, char **argv)
{
    if (argc > 0)
        cli_program = argv[0];
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("muster %s\n", MUSTER_VERSION);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0)
            return run(&commands[i], argc - 1, argv + 1);
    }
    return unknown_verb(word);
}
