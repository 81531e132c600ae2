/* `muster serve`: defaults, then the configuration file, then the command line; then the data
 * folder is locked and loaded, the doors opened, and one line on standard output says where they
 * are. */
#include "api/service.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/admin_token.h"
#include "cli/advertise.h"
#include "cli/args.h"
#include "cli/brokers.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/console_link.h"
#include "cli/kubeconfig.h"
#include "cli/node.h"
#include "cli/running.h"
#include "cli/secret.h"
#include "net/address.h"
#include "store/cell.h"
#include "store/libpq.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the command line says; NULL or -1 where it says nothing. */
struct arguments {
    const char *data;
    const char *config;
    const char *bind;
    const char *http;
    const char *store;
    const char *cell;
    const char *node;
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

static bool check_cluster(const struct arguments *a)
{
    struct why why;
    if (a->store && strlen(a->store) >= sizeof(((struct config_cluster *)0)->store))
        return args_refuse("serve", "--store takes a URL of at most %zu bytes",
                           sizeof(((struct config_cluster *)0)->store) - 1);
    if (a->store && pg_check_url(a->store, &why) != 0)
        return args_refuse("serve", "%s", why.text);
    if (a->cell && !cell_name_is_good(a->cell))
        return args_refuse("serve",
                           "--cell takes a name of 1 to 32 characters of a-z, 0-9 and _, not '%s'",
                           a->cell);
    if (a->node && !advertise_is_name(a->node))
        return args_refuse(
            "serve", "--node takes 1 to 63 characters of A-Z a-z 0-9 . _ -, not '%s'", a->node);
    return true;
}

static struct arguments set = {
    .data = "data", .server_port = -1, .manager_port = -1, .client_port = -1};

const struct arg serve_options[] = {
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &set.data,
     .value = "DIR",
     .help = "where everything is kept (./data; made when absent)"},
    {.name = "--config",
     .kind = ARG_TEXT,
     .into = &set.config,
     .value = "FILE",
     .help = "regions, fleets, tokens, timeouts, limits in YAML"},
    {.name = "--dev",
     .kind = ARG_FLAG,
     .into = &set.dev,
     .help = "for trying things out: any enrolment token is accepted, fleet \"default\", and only "
             "this machine can connect"},
    {.name = "--bind",
     .kind = ARG_TEXT,
     .into = &set.bind,
     .value = "IP",
     .help = "the address to listen on (0.0.0.0; 127.0.0.1 with --dev)"},
    {.name = "--server-port",
     .kind = ARG_NUMBER,
     .into = &set.server_port,
     .min = 0,
     .max = UINT16_MAX,
     .value = "N",
     .help = "game servers' port (11032; 0 picks a free one)"},
    {.name = "--manager-port",
     .kind = ARG_NUMBER,
     .into = &set.manager_port,
     .min = 0,
     .max = UINT16_MAX,
     .value = "N",
     .help = "chat servers' port (11033; 0 picks a free one)"},
    {.name = "--client-port",
     .kind = ARG_NUMBER,
     .into = &set.client_port,
     .min = 0,
     .max = UINT16_MAX,
     .value = "N",
     .help = "players' port (11031; 0 picks a free one)"},
    {.name = "--http",
     .kind = ARG_TEXT,
     .into = &set.http,
     .value = "A:P",
     .help = "the HTTP port (9508 on the same address; port 0 picks a free one)"},
    {.name = "--store",
     .kind = ARG_TEXT,
     .into = &set.store,
     .value = "URL",
     .help = "PostgreSQL that keeps everything, as postgres://user@host/database; a password is "
             "better in the configuration, where others do not see it (the data folder)"},
    {.name = "--cell",
     .kind = ARG_TEXT,
     .into = &set.cell,
     .value = "NAME",
     .help = "the cell there; its nodes lead it in turn (default)"},
    {.name = "--node",
     .kind = ARG_TEXT,
     .into = &set.node,
     .value = "NAME",
     .help = "this node, for people (the host's name)"},
    {.name = "--log-level",
     .kind = ARG_CHOICE,
     .into = &set.log_level,
     .words = levels,
     .value = "LEVEL",
     .help = "which lines are written (info)"},
    {.name = "--log-format",
     .kind = ARG_CHOICE,
     .into = &set.log_format,
     .words = formats,
     .value = "FORMAT",
     .help = "of them (logfmt)"},
    {0},
};

static bool parse_arguments(int argc, char **argv)
{
    return args_parse(argc, argv, serve_options) && check_bind(&set) && check_http(&set) &&
           check_cluster(&set);
}

static void apply_http(const struct arguments *a, struct config *config)
{
    char ip[46] = "";
    if (a->dev)
        config->http_bind_ip[0] = '\0'; /* where the other ports are: on this machine */
    if (a->http && split_address(a->http, ip, &config->http_port) && ip[0])
        str_copy(config->http_bind_ip, sizeof(config->http_bind_ip), str_of(ip));
}

static void apply_cluster(const struct arguments *a, struct config_cluster *c)
{
    if (a->store)
        (void)str_copy(c->store, sizeof(c->store), str_of(a->store));
    if (a->cell)
        (void)str_copy(c->cell, sizeof(c->cell), str_of(a->cell));
    if (a->node)
        (void)str_copy(c->node, sizeof(c->node), str_of(a->node));
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
    if (a->client_port >= 0)
        config->client_port = (uint16_t)a->client_port;
    apply_http(a, config);
    apply_cluster(a, &config->cluster);
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
    if ((a->cell || a->node) && !ret->cluster.store[0]) {
        mistakes->n = 1;
        snprintf(
            mistakes->sentence[0], CONFIG_WHY_MAX,
            "%s is for nodes of a cell, and there is none without a database: give --store, or "
            "set cluster.store in the configuration",
            a->cell ? "--cell" : "--node");
        return ERR_INVALID_REQUEST;
    }
    return 0;
}

/* What an operator should know before he wonders. */
static void warn(const struct arguments *a, const struct config *config,
                 const struct service *service)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (a->dev)
        log_line(LOG_WARN,
                 "DEVELOPMENT MODE: every enrolment token is accepted, from this machine only; "
                 "do not put players on this",
                 "bind=%s", config->bind_ip);
    else if (config->core.n_enrolments == 0 && !service_has_tokens(service))
        log_line(LOG_WARN,
                 "there is no enrolment token, so nobody can connect; make one with 'muster token "
                 "enrol', list some in the file given with --config, or try things out with --dev",
                 "config=%s", log_quote(quoted, str_of(a->config)));
}

/* A node whose store was forgotten would serve, and know nobody. */
static bool is_of_a_cell(const char *folder)
{
    char node[PATH_MAX], journal[PATH_MAX], state[PATH_MAX];
    (void)snprintf(node, sizeof(node), "%s/node", folder);
    (void)snprintf(journal, sizeof(journal), "%s/journal.db", folder);
    (void)snprintf(state, sizeof(state), "%s/state.db", folder);
    return access(node, F_OK) == 0 && access(journal, F_OK) != 0 && access(state, F_OK) != 0;
}

/* The folder is locked from here, so no other process makes a secret at the same time. */
static int open_data(const char *folder, struct store **ret, uint8_t secret[CORE_SECRET_SIZE])
{
    const char *reason = NULL;
    char why[SECRET_WHY_MAX];
    struct store_tip tip = {0};
    if (is_of_a_cell(folder)) {
        fprintf(stderr,
                "muster serve: %s is the folder of a node of a cell. Start it with --store and "
                "--cell, or give another folder with --data\n",
                folder);
        return EXIT_REFUSED;
    }
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
    struct service_ports at;
    service_ports(service, &at);
    printf("ready http=%s server=%s manager=%s client=%s\n", at.http, at.server, at.manager,
           at.client);
    fflush(stdout);
}

/* For who tries things out: one click, and he sees what runs. */
static void say_console(const struct service *service, const struct buf *token, bool tls)
{
    struct service_ports at;
    char url[ADDRESS_MAX + 16];
    struct buf link = {0};
    if (token->len == 0)
        return;
    service_ports(service, &at);
    snprintf(url, sizeof(url), "%s://%s", tls ? "https" : "http", at.http);
    console_link_put(&link, url, (struct str){(const char *)token->data, token->len});
    printf("console %.*s (" CONSOLE_LINK_WARNING ")\n", (int)link.len, (const char *)link.data);
    fflush(stdout);
    buf_done(&link);
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

/* Matches can be served without it, so that it cannot be written is no reason not to start. With
 * `console` one for a link to the console is made, too. */
static void keep_admin_token(const char *folder, const struct running *running,
                             const uint8_t secret[CORE_SECRET_SIZE], struct buf *console)
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
    if (console)
        access_issue_words(access, "admin", CONSOLE_SCOPES, clock_wall_ms(),
                           clock_wall_ms() + CONSOLE_LINK_S * (int64_t)1000, console);
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

/* What is served, and with what. */
struct serving {
    const struct arguments *a;
    struct running *running;
    const struct agones_config *cluster;
    struct notify *notify;
    char deployments[PATH_MAX];
    char history[PATH_MAX];
    uint8_t secret[CORE_SECRET_SIZE];
    struct brokers brokers;
    struct service_config wanted;
};

static void describe(struct serving *s)
{
    const struct config *config = s->running->config;
    (void)snprintf(s->deployments, sizeof(s->deployments), "%s/deployments", s->a->data);
    (void)snprintf(s->history, sizeof(s->history), "%s/history", s->a->data);
    s->wanted = (struct service_config){
        .core = &config->core,
        .secret = s->secret,
        .bind_ip = config->bind_ip,
        .server_port = config->server_port,
        .manager_port = config->manager_port,
        .client_port = config->client_port,
        .server_tls = s->running->tls.server,
        .manager_tls = s->running->tls.manager,
        .client_tls = s->running->tls.client,
        .limits = {.streams = (size_t)config->connections,
                   .streams_per_address = (size_t)config->connections_per_address},
        .client_limits = {.streams = (size_t)config->client_connections,
                          .streams_per_address = (size_t)config->client_connections_per_address},
        .http = {.ip = config_http_bind(config),
                 .port = config->http_port,
                 .connections = (size_t)config->http_connections,
                 .connections_per_address = (size_t)config->http_connections_per_address,
                 .tls = s->running->tls.http,
                 .metrics_open = config->metrics_open,
                 .deployments = s->deployments,
                 .data = s->a->data},
        .gamespace = config->gamespace,
        .keys = s->running->keys,
        .n_keys = config->n_keys,
        .login_url = config->login_url,
        .launches = config->launches,
        .n_launches = config->n_launches,
        .geo_file = config->geo_file,
        .proxies = config->proxies,
        .n_proxies = config->n_proxies,
        .nats = brokers_nats(&s->brokers, config),
        .pubsub = brokers_pubsub(&s->brokers, config),
        .history = {.folder = s->history,
                    .max_mb = config->history_max_mb,
                    .days = config->history_days},
        .quilkin_file = config->quilkin_file,
        .quilkin_filters = config->quilkin_filters,
        .agones = config->n_agones > 0 ? s->cluster : NULL,
        .config_digest = s->running->digest,
        .reload = running_reload,
        .reload_user = s->running,
        .notify = s->notify,
    };
}

static struct service_config *describe_again(void *user)
{
    struct serving *s = user;
    describe(s);
    return &s->wanted;
}

static void prepare(void *user)
{
    struct serving *s = user;
    keep_admin_token(s->a->data, s->running, s->secret, NULL);
}

/* The service stands; peers are served from the next turn of its loop on. */
static void begin_term(struct serving *s, struct service *service, const struct node_term *term)
{
    struct service_change change;
    if (term->changed) {
        running_change(s->running, &change);
        service_reconfigure(service, &change);
    }
    log_line(LOG_INFO, "leading", "cell=%s node=%s epoch=%" PRId64 " after_ms=%" PRId64, term->cell,
             term->node, term->epoch, clock_monotonic_ms() - term->since_ms);
}

/* Serves with this store until it is over; *ret_end says why. term: NULL = it is our own. */
static int run_service(struct serving *s, struct store *store, const struct node_term *term,
                       enum service_end *ret_end)
{
    char why[SERVICE_WHY_MAX];
    struct service *service = NULL;
    struct buf console = {0};
    keep_admin_token(s->a->data, s->running, s->secret, s->a->dev ? &console : NULL);
    if (service_start(&s->wanted, store, &service, why) != 0) {
        fprintf(stderr, "muster serve: %s\n", why);
        buf_done(&console);
        return EXIT_REFUSED;
    }
    if (term)
        begin_term(s, service, term);
    log_started(service, s->a->data, s->running->digest);
    warn(s->a, s->running->config, service);
    say_ready(service);
    say_console(service, &console, s->running->tls.http != NULL);
    buf_done(&console);
    *ret_end = service_run(service);
    service_free(service);
    return EXIT_DONE;
}

static int lead(void *user, struct store *store, const struct node_term *term,
                enum service_end *ret_end)
{
    return run_service(user, store, term, ret_end);
}

static int serve_as_node(struct serving *s)
{
    struct node_plan plan = {.data = s->a->data,
                             .running = s->running,
                             .secret = s->secret,
                             .describe = describe_again,
                             .lead = lead,
                             .prepare = prepare,
                             .user = s};
    return node_run(&plan);
}

static int serve_alone(struct serving *s)
{
    struct store *store = NULL;
    enum service_end end;
    int code = open_data(s->a->data, &store, s->secret);
    if (code != 0)
        return code;
    describe(s);
    return run_service(s, store, NULL, &end);
}

static int serve(struct serving *s)
{
    int code = s->running->config->cluster.store[0] ? serve_as_node(s) : serve_alone(s);
    if (code == EXIT_DONE)
        log_stopped(s->a->data);
    return code;
}

int serve_run(int argc, char **argv)
{
    if (!parse_arguments(argc, argv))
        return EXIT_USAGE;
    struct running running = {.read = read_all, .arguments = &set};
    if (set.config && strcmp(set.config, "-") != 0)
        running.path = set.config;
    struct agones_config cluster;
    struct kubeconfig *file = NULL;
    struct notify notify;
    int code = EXIT_REFUSED;
    notify_open(&notify); /* the store has threads of its own */
    struct serving *serving = xcalloc(1, sizeof(*serving));
    *serving =
        (struct serving){.a = &set, .running = &running, .cluster = &cluster, .notify = &notify};
    if (running_load(&running) && find_cluster(running.config, &cluster, &file))
        code = serve(serving);
    explicit_bzero(serving->secret, sizeof(serving->secret));
    free(serving);
    notify_close(&notify);
    kubeconfig_done(file);
    running_done(&running);
    return code;
}
