#include "base/suggest.h"
#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *cli_program = "muster";

static const struct command commands[] = {
    {.name = "serve",
     .group = GROUP_RUN,
     .run = serve_run,
     .summary = "run Muster",
     .usage = serve_usage},
    {.name = "dev",
     .group = GROUP_RUN,
     .run = dev_run,
     .summary = "run Muster with demo game servers and a demo chat server",
     .usage = dev_usage},
    {.name = "game-server",
     .group = GROUP_RUN,
     .run = game_server_run,
     .summary = "be a game server, well-behaved or not",
     .usage = game_server_usage},
    {.name = "allocate",
     .group = GROUP_CHANGE,
     .run = allocate_run,
     .summary = "ask for a match, as a chat server would",
     .usage = allocate_usage},
    {.name = "config check",
     .group = GROUP_TOOLS,
     .run = config_check_run,
     .summary = "say whether a configuration file is fine, or what is wrong with it",
     .synopsis = "FILE",
     .about = "Reads FILE and every file it names; each mistake is named with its line.\n",
     .options = config_check_options,
     .example = "muster config check /etc/muster.yaml\n"},
    {.name = "config show",
     .group = GROUP_TOOLS,
     .run = config_show_run,
     .summary = "print the effective configuration as YAML",
     .synopsis = "[--config FILE]",
     .about =
         "Defaults and what FILE says, with units and meanings, as a file that can be loaded.\n"
         "Tokens are shown as hashes.\n",
     .options = config_show_options,
     .example = "muster config show --config muster.yaml | muster config check -\n"},
    {.name = "config keys",
     .group = GROUP_TOOLS,
     .run = config_keys_run,
     .summary = "list every key of the configuration file",
     .synopsis = "",
     .about =
         "A Markdown table: key, default, values, whether a reload (SIGHUP) takes it, meaning.\n",
     .options = config_keys_options},
    {.name = "dump",
     .group = GROUP_TOOLS,
     .run = dump_run,
     .summary = "print captured frames",
     .usage = dump_usage},
    {.name = "cert dev",
     .group = GROUP_TOOLS,
     .run = cert_dev_run,
     .summary = "make certificates to try TLS with",
     .synopsis = "--out DIR [OPTIONS]",
     .about =
         "Makes an authority, and a server and a client certificate signed by it, valid for 90\n"
         "days, and prints how they are used. The authority's key is not kept. Not for\n"
         "production: there your own authority, or a public one, signs the certificate.\n",
     .options = cert_dev_options,
     .example = "muster cert dev --out certs --host muster.lan,10.0.0.5\n"},
    {.name = "sim",
     .group = GROUP_TOOLS,
     .run = sim_run,
     .summary = "run the core in a simulated world and check its promises",
     .usage = sim_usage},
    {.name = "bench allocate",
     .group = GROUP_TOOLS,
     .run = bench_allocate_run,
     .summary = "measure durable allocations per second beside two bare echo hops",
     .synopsis = "[OPTIONS]",
     .about =
         "Starts Muster, game servers that acknowledge at once and chat servers that always have\n"
         "requests under way; says how many are answered, how fast, and at what processor time.\n",
     .options = bench_allocate_options,
     .example = "muster bench allocate --json\n"},
    {.name = "bench single",
     .group = GROUP_TOOLS,
     .run = bench_single_run,
     .summary = "measure one allocation at a time beside its bare steps",
     .synopsis = "[OPTIONS]",
     .about =
         "How long an allocation takes when nothing else is under way, and what two writes to the\n"
         "disk and two round trips take without Muster.\n",
     .options = bench_single_options},
    {.name = "bench echo",
     .group = GROUP_TOOLS,
     .run = bench_echo_run,
     .summary = "measure two bare echo hops: what the network alone costs",
     .synopsis = "[OPTIONS]",
     .about = "Two processes that only pass frames of the sizes an allocation has.\n",
     .options = bench_echo_options},
    {.name = "bench connections",
     .group = GROUP_TOOLS,
     .run = bench_connections_run,
     .summary = "measure game servers that only heartbeat",
     .synopsis = "[OPTIONS]",
     .about =
         "What many connections cost in processor time and memory when nothing else happens.\n",
     .options = bench_connections_options},
    {.name = "bench core",
     .group = GROUP_TOOLS,
     .run = bench_core_run,
     .summary = "measure core alone, with few and with many servers",
     .synopsis = "[OPTIONS]",
     .about = "Core in this process, without sockets, threads and disk: an allocation with its "
              "end, and a\n"
              "heartbeat.\n",
     .options = bench_core_options},
    {.name = "bench store",
     .group = GROUP_TOOLS,
     .run = bench_store_run,
     .summary = "measure commits beside bare synced appends",
     .synopsis = "[OPTIONS]",
     .about = "The store on the disk of --data-root, with batches of 1, 100 and 1,000 changes.\n",
     .options = bench_store_options},
    {.name = "bench restart",
     .group = GROUP_TOOLS,
     .run = bench_restart_run,
     .summary = "measure how soon a killed Muster serves again",
     .synopsis = "[OPTIONS]",
     .about =
         "A folder with many servers, matches and seats; Muster is killed and started on it.\n",
     .options = bench_restart_options},
    {.name = "bench footprint",
     .group = GROUP_TOOLS,
     .run = bench_footprint_run,
     .summary = "measure size, start and idle memory",
     .synopsis = "[OPTIONS]",
     .about = "The stripped program, the time until the ready line, resident memory at rest.\n",
     .options = bench_footprint_options},
    {.name = "bench all",
     .group = GROUP_TOOLS,
     .run = bench_all_run,
     .summary = "run every benchmark and write the table of results",
     .synopsis = "[OPTIONS]",
     .about = "What 'make bench' runs; about four minutes. Writes RESULTS.md and results.svg.\n",
     .options = bench_all_options},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const char *const group_titles[COMMAND_GROUPS] = {
    [GROUP_RUN] = "Run",
    [GROUP_LOOK] = "Look",
    [GROUP_CHANGE] = "Change",
    [GROUP_TOOLS] = "Tools",
};

static void print_group(FILE *to, enum command_group group)
{
    bool titled = false;
    for (size_t i = 0; i < COMMANDS; i++) {
        if (commands[i].group != group)
            continue;
        if (!titled)
            fprintf(to, "\n%s\n", group_titles[group]);
        titled = true;
        fprintf(to, "  %-14s %s\n", commands[i].name, commands[i].summary);
    }
}

static void print_help(FILE *to)
{
    fprintf(to, "Usage: muster VERB [OPTIONS]\n\n"
                "Muster gets players onto the right game server.\n");
    for (int g = 0; g < COMMAND_GROUPS; g++)
        print_group(to, (enum command_group)g);
    fprintf(to, "\n'muster VERB --help' says more about one of them.\n");
}

/* The second word of a verb of the family `word` ("enrol" of "token enrol"), or NULL. */
static const char *of_family(const struct command *c, const char *word)
{
    size_t n = strlen(word);
    return strncmp(c->name, word, n) == 0 && c->name[n] == ' ' ? c->name + n + 1 : NULL;
}

static bool is_family(const char *word)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (of_family(&commands[i], word))
            return true;
    }
    return false;
}

static void print_family(FILE *to, const char *word)
{
    fprintf(to, "Usage: muster %s VERB [OPTIONS]\n\n", word);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (of_family(&commands[i], word))
            fprintf(to, "  %-14s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(to, "\n'muster %s VERB --help' says more about one of them.\n", word);
}

/* Prints one verb's help as it is described by its row. */
static void print_usage(FILE *to, const struct command *c)
{
    if (c->usage) {
        fputs(c->usage, to);
        return;
    }
    fprintf(to, "Usage: muster %s %s\n\n%s\n", c->name, c->synopsis, c->about);
    args_print_help(to, c->options);
    if (c->example) {
        fprintf(to, "\nExample:\n");
        for (const char *at = c->example; *at;) {
            size_t n = strcspn(at, "\n");
            fprintf(to, "  %.*s\n", (int)n, at);
            at += n + (at[n] == '\n' ? 1 : 0);
        }
    }
    fprintf(to, "\nExit: 0 done, 1 refused, 2 wrong usage, 3 Muster cannot be reached.\n");
}

static int unknown_verb(const char *word)
{
    struct suggestion near = suggest_for(word);
    for (size_t i = 0; i < COMMANDS; i++)
        suggest_offer(&near, commands[i].name);
    fprintf(stderr, "muster: there is no verb '%s'.", word);
    if (near.best)
        fprintf(stderr, " Did you mean '%.*s'?", (int)strcspn(near.best, " "), near.best);
    fprintf(stderr, " 'muster --help' lists them.\n");
    return EXIT_USAGE;
}

static int unknown_in_family(const char *family, const char *word)
{
    struct suggestion near = suggest_for(word);
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *second = of_family(&commands[i], family);
        if (second)
            suggest_offer(&near, second);
    }
    fprintf(stderr, "muster: there is no verb '%s %s'.", family, word);
    if (near.best)
        fprintf(stderr, " Did you mean '%s %s'?", family, near.best);
    fprintf(stderr, " 'muster %s --help' lists them.\n", family);
    return EXIT_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i]))
            return true;
    }
    return false;
}

/* argv[0] is the last word of the verb. */
static int run(const struct command *c, int argc, char **argv)
{
    if (wants_help(argc, argv)) {
        print_usage(stdout, c);
        return EXIT_DONE;
    }
    argv[0] = (char *)c->name;
    return c->run(argc, argv);
}

/* argv[0] is the family. */
static int run_in_family(int argc, char **argv)
{
    if (argc < 2 || is_help(argv[1])) {
        print_family(argc < 2 ? stderr : stdout, argv[0]);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *second = of_family(&commands[i], argv[0]);
        if (second && strcmp(second, argv[1]) == 0)
            return run(&commands[i], argc - 1, argv + 1);
    }
    return unknown_in_family(argv[0], argv[1]);
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
    if (is_help(word) || strcmp(word, "help") == 0) {
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
    if (is_family(word))
        return run_in_family(argc - 1, argv + 1);
    return unknown_verb(word);
}
