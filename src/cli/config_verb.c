/* `muster config check|show|keys`: what a configuration file says, without starting anything. */
#include "base/buf.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/config_files.h"
#include "cli/config_show.h"
#include "cli/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *check_file;
static const char *show_file;

const struct arg config_check_options[] = {
    {.name = "FILE",
     .kind = ARG_WORD,
     .into = &check_file,
     .help = "the file to read; '-' is standard input"},
    {0},
};

const struct arg config_keys_options[] = {{0}};

const struct arg config_show_options[] = {
    {.name = "--config",
     .kind = ARG_TEXT,
     .into = &show_file,
     .value = "FILE",
     .help = "the file to read; without it, the defaults are shown"},
    {0},
};

static int count_regions(const struct core_config *core)
{
    int n = 0;
    for (int code = 0; code < REGION_CODES; code++)
        n += core->regions[code].name[0] != '\0';
    return n;
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void say_fine(const char *name, const struct config *config)
{
    const struct core_config *core = &config->core;
    char digest[CONFIG_DIGEST_MAX];
    size_t regions = (size_t)count_regions(core);
    config_digest(config, digest);
    printf("%s is fine: %zu region%s, %zu fleet%s, %zu token%s, %zu access key%s; digest %s\n",
           name, regions, plural(regions), core->n_fleets, plural(core->n_fleets),
           core->n_enrolments, plural(core->n_enrolments), config->n_keys, plural(config->n_keys),
           digest);
}

/* What no file can say: whether the servers' program is there. */
static void config_say_binaries(const struct config *config)
{
    for (size_t i = 0; i < config->n_launches; i++) {
        const struct launch *l = &config->launches[i];
        if (l->binary[0] != '/')
            fprintf(stderr,
                    "note: fleet %s starts %s from a deployment; until there is one "
                    "('muster deploy %s VERSION ARCHIVE --switch'), its servers cannot start\n",
                    l->fleet, l->binary, l->fleet);
        else if (access(l->binary, X_OK) != 0)
            fprintf(stderr,
                    "note: fleet %s starts %s, which cannot be executed on this machine; each host "
                    "needs it\n",
                    l->fleet, l->binary);
    }
}

static int check(const char *path, struct config *config)
{
    struct config_mistakes mistakes;
    config_default(config);
    if (config_load(path, config, &mistakes) == 0)
        config_check_files(config, &mistakes);
    if (mistakes.n > 0) {
        config_print_mistakes("config check", &mistakes);
        return EXIT_REFUSED;
    }
    say_fine(strcmp(path, "-") == 0 ? "standard input" : path, config);
    config_say_binaries(config);
    return EXIT_DONE;
}

int config_check_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, config_check_options))
        return EXIT_USAGE;
    if (!check_file) {
        args_refuse("config check", "FILE is missing; '-' is standard input");
        return EXIT_USAGE;
    }
    struct config *config = xcalloc(1, sizeof(*config));
    int code = check(check_file, config);
    config_done(config);
    free(config);
    return code;
}

static int show(const char *path, struct config *config)
{
    struct config_mistakes mistakes;
    struct buf text = {0};
    char digest[CONFIG_DIGEST_MAX];
    config_default(config);
    if (path && config_load(path, config, &mistakes) != 0) {
        config_print_mistakes("config show", &mistakes);
        return EXIT_REFUSED;
    }
    config_digest(config, digest);
    term_printf(&text, "# muster %s: the effective configuration, digest %s\n", MUSTER_VERSION,
                digest);
    config_show(config, true, &text);
    (void)term_flush(&text, STDOUT_FILENO);
    buf_done(&text);
    return EXIT_DONE;
}

int config_show_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, config_show_options))
        return EXIT_USAGE;
    struct config *config = xcalloc(1, sizeof(*config));
    int code = show(show_file, config);
    config_done(config);
    free(config);
    return code;
}

int config_keys_run(int argc, char **argv)
{
    struct buf text = {0};
    if (!args_parse(argc, argv, config_keys_options))
        return EXIT_USAGE;
    config_show_keys(&text);
    (void)term_flush(&text, STDOUT_FILENO);
    buf_done(&text);
    return EXIT_DONE;
}
