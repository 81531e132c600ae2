/* The commands of the `muster` binary: one file per verb group, one row per verb in commands.c. */
#pragma once

enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
    const char *summary;               /* one line for `muster --help` */
    const char *usage;                 /* what `muster VERB --help` prints */
};

/* Finds the verb, answers --help and --version, suggests the nearest verb for a wrong word. */
int cli_main(int argc, char **argv);

/* How this binary was called ("build/muster"), for commands that are to be typed. */
extern const char *cli_program;

int serve_run(int argc, char **argv);
int game_server_run(int argc, char **argv);
int allocate_run(int argc, char **argv);
int dump_run(int argc, char **argv);
int sim_run(int argc, char **argv);
int dev_run(int argc, char **argv);

/* Usage texts, beside the code that keeps them true. */
extern const char serve_usage[];
extern const char game_server_usage[];
extern const char allocate_usage[];
extern const char dump_usage[];
extern const char sim_usage[];
extern const char dev_usage[];
