/* `muster serve`: defaults, then the configuration file, then the command line; then the data
 * folder is locked and loaded, the doors opened, and one line on standard output says where they
 * are. */
#include "api/service.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/admin_token.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/config_files.h"
#include "cli/door_tls.h"
#include "cli/secret.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char serve_usage[] =
    "Usage: muster serve [OPTIONS]\n"
    "\n"
    "Runs Muster: game servers connect to the server port, chat servers to the manager port.\n"
    "When it serves it prints one line: ready http=A:P server=A:P manager=A:P client=A:P\n"
    "(\"-\" for a door that does not exist yet). SIGTERM finishes what is under way and exits.\n"
    "\n"
    "  --data DIR          where everything is kept (default ./data; made when absent)\n"
    "  --config FILE       regions, fleets, tokens, timeouts, limits in YAML\n"
    "  --dev               for trying things out: any enrolment token is accepted, fleet\n"
    "                      \"default\", and only this machine can connect\n"
    "  --bind IP           the address to listen on (default 0.0.0.0; 127.0.0.1 with --dev)\n"
    "  --server-port N     game servers' port (default 11032; 0 picks a free one)\n"
    "  --manager-port N    chat servers' port (default 11033; 0 picks a free one)\n"
    "  --client-port N     does not exist yet\n"
    "  --http A:P          the HTTP port (default 9508 on the same address; port 0 picks a free "
    "one)\n"
    "  --log-level LEVEL   error, warn, info (default) or debug\n"
    "\n"
    "Exit: 0 stopped, 1 it could not start (why is said), 2 wrong usage.\n";

/* What the command line says; NULL or -1 where it says nothing. */
struct arguments {
    const char *data;
    const char *config;
    const char *bind;
    const char *http;
    const char *log_level;
    int64_t server_port;
    int64_t manager_port;
    int64_t client_port;
    bool dev;
};

static bool set_log_level(const char *text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            log_set_level((enum log_level)i);
            return true;
        }
    }
    return args_refuse("serve", "--log-level is error, warn, info or debug, not '%s'", text);
}

static bool check_bind(const struct arguments *a)
{
    union address bind;
    if (!a->bind)
        return true;
    if (!address_parse(a->bind, 0, &bind))
        return args_refuse("serve", "--bind takes an IP address, not '%s'", a->bind);
    if (a->dev && !address_is_loopback(&bind))
        return args_refuse("serve",
                           "--dev accepts any token, so it listens on this machine only "
                           "and --bind cannot be %s",
                           a->bind);
    return true;
}

/* "127.0.0.1:9508", ":9508" or "[::1]:9508", taken apart. */
static bool split_address(const char *text, char ip[46], uint16_t *ret_port)
{
    union address parsed;
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    struct str host = {text, (size_t)(colon - text)};
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = (struct str){host.at + 1, host.len - 2};
    if (port > UINT16_MAX || !str_copy(ip, 46, host))
        return false;
    *ret_port = (uint16_t)port;
    return host.len == 0 || address_parse(ip, 0, &parsed);
}

static bool check_http(const struct arguments *a)
{
    char ip[46];
    uint16_t port = 0;
    union address bind;
    if (!a->http)
        return true;
    if (!split_address(a->http, ip, &port))
        return args_refuse("serve", "--http takes ADDRESS:PORT, as 127.0.0.1:9508, not '%s'",
                           a->http);
    if (a->dev && ip[0] && address_parse(ip, port, &bind) && !address_is_loopback(&bind))
        return args_refuse("serve", "--dev listens on this machine only, so --http cannot be %s",
                           a->http);
    return true;
}

static bool parse_arguments(int argc, char **argv, struct arguments *ret)
{
    *ret = (struct arguments){.data = "data",
                              .log_level = "info",
                              .server_port = -1,
                              .manager_port = -1,
                              .client_port = -1};
    const struct arg table[] = {
        {.name = "--data", .kind = ARG_TEXT, .into = &ret->data},
        {.name = "--config", .kind = ARG_TEXT, .into = &ret->config},
        {.name = "--dev", .kind = ARG_FLAG, .into = &ret->dev},
        {.name = "--bind", .kind = ARG_TEXT, .into = &ret->bind},
        {.name = "--server-port",
         .kind = ARG_NUMBER,
         .into = &ret->server_port,
         .min = 0,
         .max = UINT16_MAX},
        {.name = "--manager-port",
         .kind = ARG_NUMBER,
         .into = &ret->manager_port,
         .min = 0,
         .max = UINT16_MAX},
        {.name = "--client-port",
         .kind = ARG_NUMBER,
         .into = &ret->client_port,
         .min = 0,
         .max = UINT16_MAX},
        {.name = "--http", .kind = ARG_TEXT, .into = &ret->http},
        {.name = "--log-level", .kind = ARG_TEXT, .into = &ret->log_level},
        {0},
    };
    return args_parse(argc, argv, table) && set_log_level(ret->log_level) && check_bind(ret) &&
           check_http(ret);
}

static void apply_http(const struct arguments *a, struct config *config)
{
    char ip[46];
    if (a->dev)
        config->http_bind_ip[0] = '\0'; /* where the other ports are: on this machine */
    if (!a->http)
        return;
    (void)split_address(a->http, ip, &config->http_port);
    if (ip[0])
        str_copy(config->http_bind_ip, sizeof(config->http_bind_ip), str_of(ip));
}

/* The command line on top of the file. */
static void apply(const struct arguments *a, struct config *config)
{
    if (a->server_port >= 0)
        config->server_port = (uint16_t)a->server_port;
    if (a->manager_port >= 0)
        config->manager_port = (uint16_t)a->manager_port;
    apply_http(a, config);
    if (a->bind || a->dev)
        str_copy(config->bind_ip, sizeof(config->bind_ip), str_of(a->bind ? a->bind : "127.0.0.1"));
    config->core.any_token = a->dev;
}

static bool has_default_fleet(const struct core_config *core)
{
    for (size_t i = 0; i < core->n_fleets; i++) {
        if (strcmp(core->fleets[i].name, "default") == 0)
            return true;
    }
    return false;
}

static int configure(const struct arguments *a, struct config *config)
{
    struct config_mistakes mistakes;
    config_default(config);
    if (a->config && config_load(a->config, config, &mistakes) != 0) {
        config_print_mistakes("serve", &mistakes);
        return EXIT_REFUSED;
    }
    if (a->dev && !has_default_fleet(&config->core)) {
        fprintf(stderr,
                "muster serve: --dev puts every server into fleet \"default\", which %s does "
                "not have\n",
                a->config);
        return EXIT_REFUSED;
    }
    apply(a, config);
    return 0;
}

/* What an operator should know before he wonders. */
static void warn(const struct arguments *a, const struct config *config)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (a->client_port >= 0)
        log_line(LOG_WARN, "this door does not exist yet", "option=--client-port");
    if (a->dev)
        log_line(LOG_WARN,
                 "DEVELOPMENT MODE: every token is accepted, from this machine only; "
                 "do not put players on this",
                 "bind=%s", config->bind_ip);
    else if (config->core.n_enrolments == 0)
        log_line(LOG_WARN,
                 "no token is configured, so nobody can connect; list tokens in the file given "
                 "with --config, or try things out with --dev",
                 "config=%s", log_quote(quoted, str_of(a->config)));
}

/* The folder is locked from here, so no other process makes a secret at the same time. */
static int open_data(const char *folder, struct store **ret, uint8_t secret[CORE_SECRET_SIZE])
{
    const char *reason = NULL;
    char why[SECRET_WHY_MAX];
    struct store_tip tip = {0};
    if (store_open_sqlite(folder, ret, &reason) != 0) {
        fprintf(stderr, "muster serve: %s\n", reason);
        return EXIT_REFUSED;
    }
    /* A tip that cannot be read is no sign of an empty folder. */
    bool empty = store_tip(*ret, &tip) == 0 && tip.seq == 0;
    if (secret_load(folder, empty, secret, why) != 0) {
        fprintf(stderr, "muster serve: %s\n", why);
        store_close(*ret);
        return EXIT_REFUSED;
    }
    return 0;
}

static void say_ready(const struct service *service)
{
    char http[ADDRESS_MAX], server[ADDRESS_MAX], manager[ADDRESS_MAX];
    printf("ready http=%s server=%s manager=%s client=-\n", service_http_address(service, http),
           service_server_address(service, server), service_manager_address(service, manager));
    fflush(stdout);
}

static int32_t count_servers(const struct core_counts *counts)
{
    int32_t n = 0;
    for (size_t i = 0; i < sizeof(counts->servers) / sizeof(counts->servers[0]); i++)
        n += counts->servers[i];
    return n;
}

/* Which program with which data: the first thing to know about a log. */
static void log_started(const struct service *service, const char *folder)
{
    struct core_counts counts;
    char quoted[LOG_QUOTE_MAX + 8];
    service_count(service, &counts);
    log_line(LOG_INFO, "started", "version=%s data=%s servers=%d matches=%d", MUSTER_VERSION,
             log_quote(quoted, str_of(folder)), count_servers(&counts), counts.sessions_open);
}

static void log_stopped(const char *folder)
{
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_INFO, "stopped", "data=%s", log_quote(quoted, str_of(folder)));
}

/* What the configuration keeps in files of their own. */
struct files {
    struct door_tls tls;
    struct access_key *keys; /* config->n_keys of them */
};

static int load_files(const struct config *config, struct files *ret)
{
    char why[CONFIG_WHY_MAX];
    ret->keys = xcalloc(CONFIG_MAX_KEYS, sizeof(*ret->keys));
    if (door_tls_load(&ret->tls, config, why) == 0 && config_load_keys(config, ret->keys, why) == 0)
        return 0;
    fprintf(stderr, "muster serve: %s\n", why);
    return EXIT_REFUSED;
}

/* Matches can be served without it, so that it cannot be written is no reason not to start. */
static void keep_admin_token(const char *folder, const struct config *config,
                             const struct files *files, const uint8_t secret[CORE_SECRET_SIZE])
{
    char quoted[LOG_QUOTE_MAX + 8];
    char why[ADMIN_TOKEN_WHY_MAX];
    bool written = false;
    struct access *access = access_new(secret);
    access_configure(access, config->gamespace, files->keys, config->n_keys);
    if (admin_token_keep(folder, access, clock_wall_ms(), &written, why) != 0)
        log_line(LOG_WARN, "there is no access token for the administrator", "reason=%s",
                 log_quote(quoted, str_of(why)));
    else if (written)
        log_line(LOG_INFO, "the administrator's access token is in admin.token", "data=%s",
                 log_quote(quoted, str_of(folder)));
    access_free(access);
}

static int serve(const struct arguments *a, const struct config *config, const struct files *files)
{
    uint8_t secret[CORE_SECRET_SIZE];
    char why[SERVICE_WHY_MAX];
    struct store *store = NULL;
    struct service *service = NULL;
    int code = open_data(a->data, &store, secret);
    if (code != 0)
        return code;
    struct service_config wanted = {
        .core = &config->core,
        .secret = secret,
        .bind_ip = config->bind_ip,
        .server_port = config->server_port,
        .manager_port = config->manager_port,
        .server_tls = files->tls.server,
        .manager_tls = files->tls.manager,
        .limits = {.streams = (size_t)config->connections,
                   .streams_per_address = (size_t)config->connections_per_address},
        .http = {.ip = config_http_bind(config),
                 .port = config->http_port,
                 .connections = (size_t)config->http_connections,
                 .connections_per_address = (size_t)config->http_connections_per_address,
                 .tls = files->tls.http,
                 .metrics_open = config->metrics_open || a->dev},
        .gamespace = config->gamespace,
        .keys = files->keys,
        .n_keys = config->n_keys,
    };
    keep_admin_token(a->data, config, files, secret);
    int err = service_start(&wanted, store, &service, why);
    explicit_bzero(secret, sizeof(secret));
    if (err != 0) {
        fprintf(stderr, "muster serve: %s\n", why);
        return EXIT_REFUSED;
    }
    log_started(service, a->data);
    warn(a, config);
    say_ready(service);
    service_run(service);
    service_free(service);
    log_stopped(a->data);
    return EXIT_DONE;
}

int serve_run(int argc, char **argv)
{
    struct arguments a;
    if (!parse_arguments(argc, argv, &a))
        return EXIT_USAGE;
    struct config *config = xcalloc(1, sizeof(*config));
    struct files files = {0};
    int code = configure(&a, config);
    if (code == 0)
        code = load_files(config, &files);
    if (code == 0)
        code = serve(&a, config, &files);
    door_tls_done(&files.tls);
    free(files.keys);
    free(config);
    return code;
}
