/* `muster serve`: defaults, then the configuration file, then the command line; then the data
 * folder is locked and loaded, the doors opened, and one line on standard output says where they
 * are. */
#include "api/service.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/admin_token.h"
#include "cli/args.h"
#include "cli/brokers.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/kubeconfig.h"
#include "cli/running.h"
#include "cli/secret.h"
#include "net/address.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char serve_usage[] =
    "Usage: muster serve [OPTIONS]\n"
    "\n"
    "Runs Muster: game servers connect to the server port, chat servers to the manager port.\n"
    "When it serves it prints one line: ready http=A:P server=A:P manager=A:P client=A:P\n"
    "(\"-\" for a door that does not exist yet). SIGTERM finishes what is under way and exits;\n"
    "SIGHUP reads the configuration file again.\n"
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
    "  --log-format FORMAT logfmt (default) or json\n"
    "\n"
    "Exit: 0 stopped, 1 it could not start (why is said), 2 wrong usage.\n";

/* What the command line says; NULL or -1 where it says nothing. */
struct arguments {
    const char *data;
    const char *config;
    const char *bind;
    const char *http;
    const char *log_level;
    const char *log_format;
    int64_t server_port;
    int64_t manager_port;
    int64_t client_port;
    bool dev;
};

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};

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
    *ret = (struct arguments){
        .data = "data", .server_port = -1, .manager_port = -1, .client_port = -1};
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
        {.name = "--log-level", .kind = ARG_CHOICE, .into = &ret->log_level, .words = levels},
        {.name = "--log-format", .kind = ARG_CHOICE, .into = &ret->log_format, .words = formats},
        {0},
    };
    return args_parse(argc, argv, table) && check_bind(ret) && check_http(ret);
}

static void apply_http(const struct arguments *a, struct config *config)
{
    char ip[46] = "";
    if (a->dev)
        config->http_bind_ip[0] = '\0'; /* where the other ports are: on this machine */
    if (a->http && split_address(a->http, ip, &config->http_port) && ip[0])
        str_copy(config->http_bind_ip, sizeof(config->http_bind_ip), str_of(ip));
}

/* Which of the words it is; args_parse has seen that it is one. */
static int index_of(const char *const *words, const char *word)
{
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return i;
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
    if (a->log_level)
        config->log_level = (enum log_level)index_of(levels, a->log_level);
    if (a->log_format)
        config->log_format = (enum log_format)index_of(formats, a->log_format);
    config->core.any_token = a->dev;
    config->metrics_open |= a->dev;
}

static bool has_default_fleet(const struct core_config *core)
{
    for (size_t i = 0; i < core->n_fleets; i++) {
        if (strcmp(core->fleets[i].name, "default") == 0)
            return true;
    }
    return false;
}

/* For struct running. */
static int read_all(const void *arguments, struct config *ret, struct config_mistakes *mistakes)
{
    const struct arguments *a = arguments;
    mistakes->n = 0;
    config_default(ret);
    if (a->config && config_load(a->config, ret, mistakes) != 0)
        return ERR_INVALID_REQUEST;
    if (a->dev && !has_default_fleet(&ret->core)) {
        mistakes->n = 1;
        snprintf(mistakes->sentence[0], CONFIG_WHY_MAX,
                 "--dev puts every server into fleet \"default\", which %.200s does not have",
                 a->config);
        return ERR_INVALID_REQUEST;
    }
    apply(a, ret);
    return 0;
}

/* What an operator should know before he wonders. */
static void warn(const struct arguments *a, const struct config *config,
                 const struct service *service)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (a->client_port >= 0)
        log_line(LOG_WARN, "this door does not exist yet", "option=--client-port");
    if (a->dev)
        log_line(LOG_WARN,
                 "DEVELOPMENT MODE: every token is accepted, from this machine only; "
                 "do not put players on this",
                 "bind=%s", config->bind_ip);
    else if (config->core.n_enrolments == 0 && !service_has_tokens(service))
        log_line(LOG_WARN,
                 "there is no enrolment token, so nobody can connect; make one with 'muster token "
                 "enrol', list some in the file given with --config, or try things out with --dev",
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
static void log_started(const struct service *service, const char *folder, const char *digest)
{
    struct core_counts counts;
    char quoted[LOG_QUOTE_MAX + 8];
    service_count(service, &counts);
    log_line(LOG_INFO, "started", "version=%s data=%s digest=%s servers=%d matches=%d",
             MUSTER_VERSION, log_quote(quoted, str_of(folder)), digest, count_servers(&counts),
             counts.sessions_open);
}

static void log_stopped(const char *folder)
{
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_INFO, "stopped", "data=%s", log_quote(quoted, str_of(folder)));
}

/* Matches can be served without it, so that it cannot be written is no reason not to start. */
static void keep_admin_token(const char *folder, const struct running *running,
                             const uint8_t secret[CORE_SECRET_SIZE])
{
    char quoted[LOG_QUOTE_MAX + 8];
    char why[ADMIN_TOKEN_WHY_MAX];
    bool written = false;
    struct access *access = access_new(secret);
    access_configure(access, running->config->gamespace, running->keys, running->config->n_keys);
    if (admin_token_keep(folder, access, clock_wall_ms(), &written, why) != 0)
        log_line(LOG_WARN, "there is no access token for the administrator", "reason=%s",
                 log_quote(quoted, str_of(why)));
    else if (written)
        log_line(LOG_INFO, "the administrator's access token is in admin.token", "data=%s",
                 log_quote(quoted, str_of(folder)));
    access_free(access);
}

/* Where fleets of provider agones live; what it names is *ret_file's. False: it has been said. */
static bool find_cluster(const struct config *config, struct agones_config *ret,
                         struct kubeconfig **ret_file)
{
    char why[256];
    const struct config_kubernetes *k = &config->kubernetes;
    *ret = (struct agones_config){.url = k->url,
                                  .ca_file = k->ca_file,
                                  .token_file = k->token_file,
                                  .fleets = config->agones,
                                  .n_fleets = config->n_agones};
    if (config->n_agones == 0 || !k->kubeconfig[0])
        return true;
    if (kubeconfig_open(k->kubeconfig, ret, ret_file, why) == 0)
        return true;
    fprintf(stderr, "muster serve: %s\n", why);
    return false;
}

static int serve(const struct arguments *a, struct running *running,
                 const struct agones_config *cluster)
{
    const struct config *config = running->config;
    char deployments[PATH_MAX];
    (void)snprintf(deployments, sizeof(deployments), "%s/deployments", a->data);
    uint8_t secret[CORE_SECRET_SIZE];
    char why[SERVICE_WHY_MAX];
    struct store *store = NULL;
    struct service *service = NULL;
    int code = open_data(a->data, &store, secret);
    if (code != 0)
        return code;
    struct brokers brokers;
    struct service_config wanted = {
        .core = &config->core,
        .secret = secret,
        .bind_ip = config->bind_ip,
        .server_port = config->server_port,
        .manager_port = config->manager_port,
        .server_tls = running->tls.server,
        .manager_tls = running->tls.manager,
        .limits = {.streams = (size_t)config->connections,
                   .streams_per_address = (size_t)config->connections_per_address},
        .http = {.ip = config_http_bind(config),
                 .port = config->http_port,
                 .connections = (size_t)config->http_connections,
                 .connections_per_address = (size_t)config->http_connections_per_address,
                 .tls = running->tls.http,
                 .metrics_open = config->metrics_open,
                 .deployments = deployments},
        .gamespace = config->gamespace,
        .keys = running->keys,
        .n_keys = config->n_keys,
        .login_url = config->login_url,
        .launches = config->launches,
        .n_launches = config->n_launches,
        .geo_file = config->geo_file,
        .proxies = config->proxies,
        .n_proxies = config->n_proxies,
        .nats = brokers_nats(&brokers, config),
        .pubsub = brokers_pubsub(&brokers, config),
        .quilkin_file = config->quilkin_file,
        .quilkin_filters = config->quilkin_filters,
        .agones = config->n_agones > 0 ? cluster : NULL,
        .config_digest = running->digest,
        .reload = running_reload,
        .reload_user = running,
    };
    keep_admin_token(a->data, running, secret);
    int err = service_start(&wanted, store, &service, why);
    explicit_bzero(secret, sizeof(secret));
    if (err != 0) {
        fprintf(stderr, "muster serve: %s\n", why);
        return EXIT_REFUSED;
    }
    log_started(service, a->data, running->digest);
    warn(a, config, service);
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
    struct running running = {.read = read_all, .arguments = &a};
    if (a.config && strcmp(a.config, "-") != 0)
        running.path = a.config;
    struct agones_config cluster;
    struct kubeconfig *file = NULL;
    int code = EXIT_REFUSED;
    if (running_load(&running) && find_cluster(running.config, &cluster, &file))
        code = serve(&a, &running, &cluster);
    kubeconfig_done(file);
    running_done(&running);
    return code;
}
