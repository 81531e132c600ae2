/* The commands of the `muster` binary: one file per verb group, one row per verb in commands.c. */
#pragma once

#include "cli/args.h"

enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

/* How verbs are grouped in `muster --help`. */
enum command_group { GROUP_RUN, GROUP_LOOK, GROUP_CHANGE, GROUP_TOOLS, COMMAND_GROUPS };

struct command {
    const char *name; /* "drain"; two words for a verb of a family: "token enrol" */
    enum command_group group;
    bool remote; /* it asks a Muster, but not by the arguments of one operation */
    int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
    const char *summary;               /* one line for `muster --help` */

    /* What `muster VERB --help` prints is made of these. */
    const char *synopsis; /* what follows the verb: "SERVER [OPTIONS]" */
    const char *about;    /* lines, each with its newline; NULL = what the operation says */
    const struct arg *options;
    const struct arg *shared; /* more of them; NULL = none */
    const char *operation;    /* of the HTTP API: its arguments are options too; NULL = none */
    const char *example;      /* lines of commands, each with its newline, without the indent */
    const char *exit; /* what its exit codes mean, with its full stop; NULL = as everywhere */
};

/* Every verb, in the order of the help; closed by one without a name. */
extern const struct command commands[];

/* Finds the verb, answers --help and --version, suggests the nearest verb for a wrong word. */
int cli_main(int argc, char **argv);

/* How this binary was called ("build/muster"), for commands that are to be typed. */
extern const char *cli_program;

int serve_run(int argc, char **argv);
int agent_verb_run(int argc, char **argv);
int game_server_run(int argc, char **argv);
int player_client_run(int argc, char **argv);
int matchmaker_run(int argc, char **argv);
int allocate_run(int argc, char **argv);
int dump_run(int argc, char **argv);
int sim_run(int argc, char **argv);
int dev_run(int argc, char **argv);
int cert_dev_run(int argc, char **argv);
int openapi_run(int argc, char **argv);
int top_run(int argc, char **argv);
int console_run(int argc, char **argv);
int status_run(int argc, char **argv);
int list_run(int argc, char **argv);
int inspect_run(int argc, char **argv);
int why_run(int argc, char **argv);
int drain_run(int argc, char **argv);
int undrain_run(int argc, char **argv);
int end_run(int argc, char **argv);
int terminate_run(int argc, char **argv);
int stdin_run(int argc, char **argv);
int host_enable_run(int argc, char **argv);
int host_disable_run(int argc, char **argv);
int kick_run(int argc, char **argv);
int version_where_run(int argc, char **argv);
int version_enable_run(int argc, char **argv);
int version_disable_run(int argc, char **argv);
int logs_run(int argc, char **argv);
int room_create_run(int argc, char **argv);
int room_join_run(int argc, char **argv);
int bots_run(int argc, char **argv);
int player_run(int argc, char **argv);
int refusals_run(int argc, char **argv);
int ban_run(int argc, char **argv);
int queue_run(int argc, char **argv);
int queue_remove_run(int argc, char **argv);
int lobby_run(int argc, char **argv);
int lobby_create_run(int argc, char **argv);
int lobby_abort_run(int argc, char **argv);
int party_run(int argc, char **argv);
int allocate_player_run(int argc, char **argv);
int events_run(int argc, char **argv);
int token_run(int argc, char **argv);
int cluster_status_run(int argc, char **argv);
int step_down_run(int argc, char **argv);
int config_check_run(int argc, char **argv);
int config_show_run(int argc, char **argv);
int config_keys_run(int argc, char **argv);
int bench_allocate_run(int argc, char **argv);
int bench_single_run(int argc, char **argv);
int bench_echo_run(int argc, char **argv);
int bench_connections_run(int argc, char **argv);
int bench_core_run(int argc, char **argv);
int bench_friends_run(int argc, char **argv);
int bench_store_run(int argc, char **argv);
int bench_http_run(int argc, char **argv);
int bench_join_run(int argc, char **argv);
int bench_lobby_run(int argc, char **argv);
int bench_nats_run(int argc, char **argv);
int bench_postgres_run(int argc, char **argv);
int bench_agones_run(int argc, char **argv);
int bench_spawn_run(int argc, char **argv);
int deploy_run(int argc, char **argv);
int backup_run(int argc, char **argv);
int restore_verb_run(int argc, char **argv);
int migrate_run(int argc, char **argv);
int doctor_run(int argc, char **argv);
int bench_restart_run(int argc, char **argv);
int bench_footprint_run(int argc, char **argv);
int bench_all_run(int argc, char **argv);
int completion_run(int argc, char **argv);
int man_run(int argc, char **argv);

/* Options, beside the code that takes them. */
extern const struct arg config_check_options[];
extern const struct arg config_show_options[];
extern const struct arg config_keys_options[];
extern const struct arg sim_options[];
extern const struct arg dump_options[];
extern const struct arg allocate_options[];
extern const struct arg player_client_options[];
extern const struct arg game_server_options[];
extern const struct arg dev_options[];
extern const struct arg agent_options[];
extern const struct arg serve_options[];
extern const struct arg list_options[];
extern const struct arg top_options[];
extern const struct arg console_options[];
extern const struct arg why_options[];
extern const struct arg drain_options[];
extern const struct arg host_disable_options[];
extern const struct arg logs_options[];
extern const struct arg room_create_options[];
extern const struct arg room_join_options[];
extern const struct arg player_options[];
extern const struct arg allocate_player_options[];
extern const struct arg bots_options[];
extern const struct arg matchmaker_options[];
extern const struct arg events_options[];
extern const struct arg openapi_options[];
extern const struct arg cert_dev_options[];
extern const struct arg bench_allocate_options[];
extern const struct arg bench_single_options[];
extern const struct arg bench_echo_options[];
extern const struct arg bench_connections_options[];
extern const struct arg bench_core_options[];
extern const struct arg bench_friends_options[];
extern const struct arg bench_store_options[];
extern const struct arg bench_http_options[];
extern const struct arg bench_join_options[];
extern const struct arg bench_lobby_options[];
extern const struct arg bench_nats_options[];
extern const struct arg bench_postgres_options[];
extern const struct arg bench_agones_options[];
extern const struct arg bench_spawn_options[];
extern const struct arg deploy_options[];
extern const struct arg backup_options[];
extern const struct arg step_down_options[];
extern const struct arg restore_options[];
extern const struct arg migrate_options[];
extern const struct arg doctor_options[];
extern const struct arg bench_restart_options[];
extern const struct arg bench_footprint_options[];
extern const struct arg bench_all_options[];
extern const struct arg completion_options[];
extern const struct arg man_options[];
