/* `muster agent`: what runs on each host and starts game servers there. */
#include "agent/agent.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/beside.h"
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TOKEN_MAX = 8 * 1024,
    SCOPES_MAX = 512,
    HEARTBEAT_MS = 5000,
    FILES = 4096,
    PROCESSES = 512,
    FILE_MIB = 1024,
    LOG_MIB = 8,
    LOG_FILES = 4,
    MIB = 1024 * 1024,
    MIB_MAX = 64 * 1024 * 1024,
    UID_MIN = 1000, /* below it are the system's own */
    UID_MAX = INT32_MAX / 2,
    UIDS = 190000, /* far from people's, and from what containers are usually given */
    PORT_MIN = 1024,
    IP_MAX = 46,
    REGION_MAX = 16,
};

struct arguments {
    const char *control;
    const char *token;
    const char *token_file;
    const char *region;
    const char *ports;
    const char *listen;
    const char *address;
    const char *name;
    const char *data;
    const char *ca;
    const char *log_level;
    const char *log_format;
    const char *uids;
    const char *cgroup;
    int64_t slots;
    int64_t heartbeat_ms;
    int64_t memory_mib;
    int64_t files;
    int64_t processes;
    int64_t file_mib;
    int64_t log_mib;
    int64_t log_files;
    bool end_servers;
};

/* What the configuration points to. */
struct words {
    char token[TOKEN_MAX];
    char ip[IP_MAX];
    char name[AGENT_NAME_MAX];
    char shim[PATH_MAX];
};

static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const format_words[] = {"logfmt", "json", NULL};

static struct arguments set = {.ports = "38000-39999",
                               .listen = "127.0.0.1:9510",
                               .data = "agent-data",
                               .heartbeat_ms = HEARTBEAT_MS,
                               .files = FILES,
                               .processes = PROCESSES,
                               .file_mib = FILE_MIB,
                               .log_mib = LOG_MIB,
                               .log_files = LOG_FILES};

const struct arg agent_options[] = {
    {.name = "--control",
     .kind = ARG_TEXT,
     .into = &set.control,
     .value = "URL[,...]",
     .help = "where Muster is; of several nodes with commas between them: whoever leads is found"},
    {.name = "--token",
     .kind = ARG_TEXT,
     .into = &set.token,
     .value = "T",
     .help = "access token of scope game_host; others see it in ps, so better:"},
    {.name = "--token-file",
     .kind = ARG_TEXT,
     .into = &set.token_file,
     .value = "FILE",
     .help = "a file that holds it; or the environment variable MUSTER_TOKEN"},
    {.name = "--region",
     .kind = ARG_TEXT,
     .into = &set.region,
     .value = "R",
     .help = "where this host stands: a region's name, as EU"},
    {.name = "--ports",
     .kind = ARG_TEXT,
     .into = &set.ports,
     .value = "FIRST-LAST",
     .help = "ports for game servers (38000-39999)"},
    {.name = "--listen",
     .kind = ARG_TEXT,
     .into = &set.listen,
     .value = "A:P",
     .help =
         "where the control plane reaches this agent (127.0.0.1:9510; port 0 picks a free one)"},
    {.name = "--address",
     .kind = ARG_TEXT,
     .into = &set.address,
     .value = "HOST",
     .help = "what players and the control plane are told (that of --listen)"},
    {.name = "--name",
     .kind = ARG_TEXT,
     .into = &set.name,
     .value = "NAME",
     .help = "what this host is called (its host name); each has its own"},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &set.data,
     .value = "DIR",
     .help = "where logs, deployments and what is still to be told are kept (./agent-data; made "
             "when absent)"},
    {.name = "--slots",
     .kind = ARG_NUMBER,
     .into = &set.slots,
     .min = 1,
     .max = 4096,
     .value = "N",
     .help = "game servers at once (as many as there are ports)"},
    {.name = "--end-servers",
     .kind = ARG_FLAG,
     .into = &set.end_servers,
     .help = "SIGTERM ends the game servers, too: for trying things out"},
    {.name = "--ca",
     .kind = ARG_TEXT,
     .into = &set.ca,
     .value = "FILE",
     .help = "who signed the control plane's certificate (the system's)"},
    {.name = "--heartbeat-ms",
     .kind = ARG_NUMBER,
     .into = &set.heartbeat_ms,
     .min = 100,
     .max = 60000,
     .value = "N",
     .help = "between two heartbeats (5000)"},
    {.name = "--log-level",
     .kind = ARG_CHOICE,
     .into = &set.log_level,
     .words = level_words,
     .value = "LEVEL",
     .help = "which lines are written (info)"},
    {.name = "--log-format",
     .kind = ARG_CHOICE,
     .into = &set.log_format,
     .words = format_words,
     .value = "FORMAT",
     .help = "of them (logfmt)"},
    {.name = "What a game server may use", .kind = ARG_TITLE},
    {.name = "--uids",
     .kind = ARG_TEXT,
     .into = &set.uids,
     .value = "FIRST|none",
     .help = "as root: game servers run as the users FIRST, FIRST+1, ..., one for each of the "
             "--slots (190000); none: as root, like the agent"},
    {.name = "--cgroup",
     .kind = ARG_TEXT,
     .into = &set.cgroup,
     .value = "DIR",
     .help = "a cgroup v2 folder that is ours, for limits on memory; made when absent"},
    {.name = "--memory-mib",
     .kind = ARG_NUMBER,
     .into = &set.memory_mib,
     .min = 1,
     .max = MIB_MAX,
     .value = "N",
     .help = "memory, with --cgroup (no limit)"},
    {.name = "--files",
     .kind = ARG_NUMBER,
     .into = &set.files,
     .min = 16,
     .max = 1 << 20,
     .value = "N",
     .help = "open files (4096)"},
    {.name = "--processes",
     .kind = ARG_NUMBER,
     .into = &set.processes,
     .min = 1,
     .max = 1 << 20,
     .value = "N",
     .help = "processes and threads, with --uids or --cgroup (512)"},
    {.name = "--file-mib",
     .kind = ARG_NUMBER,
     .into = &set.file_mib,
     .min = 1,
     .max = MIB_MAX,
     .value = "N",
     .help = "the largest file it may write (1024)"},
    {.name = "--log-mib",
     .kind = ARG_NUMBER,
     .into = &set.log_mib,
     .min = 1,
     .max = 1 << 20,
     .value = "N",
     .help = "one file of its output (8); the rest is dropped, oldest first"},
    {.name = "--log-files",
     .kind = ARG_NUMBER,
     .into = &set.log_files,
     .min = 1,
     .max = 100,
     .value = "N",
     .help = "how many of them are kept (4)"},
    {0},
};

static void use_log(const struct arguments *a)
{
    for (int i = 0; a->log_level && i < LOG_LEVELS; i++) {
        if (strcmp(a->log_level, level_words[i]) == 0)
            log_set_level((enum log_level)i);
    }
    if (a->log_format)
        log_set_format(strcmp(a->log_format, "json") == 0 ? LOG_JSON : LOG_LOGFMT);
}

/* ── each argument, checked ────────────────────────────────────────────────────────────────── */

static bool take_control(const struct arguments *a, struct control_config *ret)
{
    char why[NODES_WHY_MAX];
    bool has_path = false;
    if (!a->control)
        return args_refuse("agent", "--control is needed: Muster's URL, as http://10.0.0.1:9508");
    if (nodes_read_urls(&ret->nodes, a->control, why) != 0)
        return args_refuse("agent", "--control takes %s", why);
    for (size_t i = 0; i < ret->nodes.n; i++)
        has_path |= strchr(strstr(ret->nodes.list[i], "://") + 3, '/') != NULL;
    return !has_path ||
           args_refuse("agent", "--control takes URLs without a path, not '%s'", a->control);
}

static bool read_token(const char *path, char ret[TOKEN_MAX])
{
    FILE *file = fopen(path, "re");
    if (!file)
        return args_refuse("agent", "cannot read --token-file %s: %s", path, strerror(errno));
    size_t n = fread(ret, 1, TOKEN_MAX - 1, file);
    fclose(file);
    while (n > 0 && isspace((unsigned char)ret[n - 1]))
        n--;
    ret[n] = '\0';
    return true;
}

static bool take_token(const struct arguments *a, char ret[TOKEN_MAX])
{
    const char *variable = getenv("MUSTER_TOKEN");
    const char *token = a->token ? a->token : variable;
    if (a->token && a->token_file)
        return args_refuse("agent", "--token and --token-file are the same thing: give one");
    if (a->token_file && !read_token(a->token_file, ret))
        return false;
    if (!a->token_file && (!token || !*token))
        return args_refuse("agent",
                           "an access token of scope game_host is needed: --token-file FILE, "
                           "--token T or MUSTER_TOKEN");
    if (!a->token_file)
        snprintf(ret, TOKEN_MAX, "%s", token);
    for (const char *at = ret; *at; at++) {
        if (!isgraph((unsigned char)*at))
            return args_refuse("agent", "what was given as a token is none: a token has no blanks");
    }
    return *ret || args_refuse("agent", "--token-file %s is empty", a->token_file);
}

/* The scopes that a token says it has, with commas between them; "" when it does not say so in a
 * way that we know. Whether they are true is the control plane's to judge. */
static void read_scopes(const char *token, char ret[SCOPES_MAX])
{
    char payload[TOKEN_MAX];
    char why[JSON_WHY_MAX];
    size_t len = 0;
    const char *from = strchr(token, '.');
    const char *to = from ? strchr(from + 1, '.') : NULL;
    ret[0] = '\0';
    if (!to ||
        sodium_base642bin((uint8_t *)payload, sizeof(payload), from + 1, (size_t)(to - from - 1),
                          NULL, &len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        return;
    struct json *claims = json_parse((struct str){payload, len}, why);
    if (!str_copy(ret, SCOPES_MAX, json_get_text(json_member(claims, "sco"))))
        ret[0] = '\0';
    json_free(claims);
}

/* Whoever takes over this host has the token, and what it can do. */
static void warn_of_power(const struct arguments *a, const char *token)
{
    char scopes[SCOPES_MAX];
    char quoted[LOG_QUOTE_MAX + 8];
    const char *from = a->token ? "--token" : a->token_file ? "--token-file" : "MUSTER_TOKEN";
    read_scopes(token, scopes);
    if (!scopes[0] || strcmp(scopes, "game_host") == 0)
        return;
    log_line(
        LOG_WARN,
        "this access token can do more than an agent needs; issue one with: muster token issue "
        "--account HOST --scopes game_host",
        "from=%s scopes=%s", from, log_quote(quoted, str_of(scopes)));
}

static bool take_ports(const struct arguments *a, struct agent_config *ret)
{
    char *end = NULL;
    long first = strtol(a->ports, &end, 10);
    long last = *end == '-' ? strtol(end + 1, &end, 10) : -1;
    if (*end || first < PORT_MIN || last < first || last > UINT16_MAX)
        return args_refuse(
            "agent", "--ports takes a range within 1024-65535, as 38000-39999, not '%s'", a->ports);
    ret->limits.port_first = (uint16_t)first;
    ret->limits.port_last = (uint16_t)last;
    return true;
}

static bool take_listen(const struct arguments *a, struct words *words, struct agent_config *ret)
{
    union address parsed;
    const char *colon = strrchr(a->listen, ':');
    struct str host = {a->listen, colon ? (size_t)(colon - a->listen) : 0};
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = (struct str){host.at + 1, host.len - 2};
    if (!colon || end == colon + 1 || *end || port < 0 || port > UINT16_MAX ||
        !str_copy(words->ip, sizeof(words->ip), host) || !address_parse(words->ip, 0, &parsed))
        return args_refuse("agent", "--listen takes ADDRESS:PORT, as 10.0.0.7:9510, not '%s'",
                           a->listen);
    bool everywhere = strcmp(words->ip, "0.0.0.0") == 0 || strcmp(words->ip, "::") == 0;
    if (everywhere && !a->address)
        return args_refuse("agent",
                           "--listen %s is every address of this host: say with --address which "
                           "one players are sent to",
                           a->listen);
    ret->listen_ip = words->ip;
    ret->listen_port = (uint16_t)port;
    ret->address = a->address ? a->address : words->ip;
    return true;
}

static bool take_name(const struct arguments *a, struct words *words)
{
    if (a->name)
        snprintf(words->name, sizeof(words->name), "%s", a->name);
    else if (gethostname(words->name, sizeof(words->name) - 1) != 0)
        words->name[0] = '\0';
    bool good = words->name[0] && (!a->name || strlen(a->name) < sizeof(words->name));
    for (const char *at = words->name; good && *at; at++)
        good = isgraph((unsigned char)*at);
    return good || args_refuse("agent", "--name takes a name of 1 to %d letters without blanks",
                               AGENT_NAME_MAX - 1);
}

/* Which regions there are the control plane's configuration says; here only that it can be one. */
static bool take_region(const struct arguments *a)
{
    if (!a->region)
        return args_refuse("agent", "--region is needed: where this host stands, as EU");
    size_t len = strlen(a->region);
    bool good = len > 0 && len < REGION_MAX;
    for (const char *at = a->region; good && *at; at++)
        good = isalnum((unsigned char)*at) || strchr("._-", *at);
    return good || args_refuse("agent",
                               "--region takes the name of a region, 1 to %d of A-Z a-z 0-9 . _ -, "
                               "not '%s'",
                               REGION_MAX - 1, a->region);
}

static bool find_shim(struct words *words)
{
    if (beside_find("muster-shim", words->shim))
        return true;
    fprintf(stderr, "muster agent: muster-shim is missing; it belongs beside muster, or into "
                    "../lib/muster from there\n");
    return false;
}

/* 0 = no users of their own. */
static bool take_uids(const struct arguments *a, uid_t *ret)
{
    bool root = geteuid() == 0;
    char *end = NULL;
    *ret = root ? UIDS : 0;
    if (!a->uids)
        return true;
    *ret = 0;
    if (strcmp(a->uids, "none") == 0)
        return true;
    long first = isdigit((unsigned char)a->uids[0]) ? strtol(a->uids, &end, 10) : -1;
    if (first < UID_MIN || first > UID_MAX || *end)
        return args_refuse("agent", "--uids takes a user id from %d to %d, or none, not '%s'",
                           UID_MIN, UID_MAX, a->uids);
    *ret = (uid_t)first;
    return root ||
           args_refuse("agent", "--uids is for root: others cannot give processes to a user");
}

static bool take_limits(const struct arguments *a, struct process_limits *ret)
{
    if (a->memory_mib && !a->cgroup)
        return args_refuse("agent", "--memory-mib needs --cgroup: nothing else can limit memory");
    ret->slots = (int)a->slots;
    ret->cgroup = a->cgroup;
    ret->memory_bytes = a->memory_mib * MIB;
    ret->files = a->files;
    ret->processes = a->processes;
    ret->file_bytes = a->file_mib * MIB;
    ret->log_files = (int)a->log_files;
    ret->log_bytes = a->log_mib * MIB;
    return take_uids(a, &ret->uid_first);
}

static bool check(const struct arguments *a, struct words *words, struct agent_config *ret)
{
    if (!take_control(a, &ret->control) || !take_region(a) || !take_ports(a, ret) ||
        !take_listen(a, words, ret) || !take_name(a, words) || !take_token(a, words->token) ||
        !take_limits(a, &ret->limits))
        return false;
    if (a->ca && access(a->ca, R_OK) != 0)
        return args_refuse("agent", "cannot read --ca %s: %s", a->ca, strerror(errno));
    ret->control.name = words->name;
    ret->control.token = words->token;
    ret->control.ca_file = a->ca;
    ret->control.heartbeat_ms = a->heartbeat_ms;
    ret->region = a->region;
    ret->data = a->data;
    ret->end_servers = a->end_servers;
    ret->shim = words->shim;
    return true;
}

static int run(const struct agent_config *config)
{
    char why[AGENT_WHY_MAX] = "";
    char address[ADDRESS_MAX];
    char quoted[LOG_QUOTE_MAX + 8];
    struct agent *agent = NULL;
    if (agent_start(config, &agent, why) != 0) {
        fprintf(stderr, "muster agent: %s\n", why);
        return EXIT_REFUSED;
    }
    log_line(LOG_INFO, "started", "version=%s name=%s region=%s servers=%zu data=%s",
             MUSTER_VERSION, config->control.name, config->region, agent_servers(agent),
             log_quote(quoted, str_of(config->data)));
    if (*agent_missing(agent))
        log_line(LOG_WARN, "the sandbox is not whole here", "missing=%s",
                 log_quote(quoted, str_of(agent_missing(agent))));
    printf("ready http=%s name=%s servers=%zu\n", agent_address(agent, address),
           config->control.name, agent_servers(agent));
    fflush(stdout);
    agent_run(agent);
    agent_free(agent);
    return EXIT_DONE;
}

int agent_verb_run(int argc, char **argv)
{
    struct words words = {0};
    struct agent_config config = {0};
    if (!args_parse(argc, argv, agent_options) || !check(&set, &words, &config))
        return EXIT_USAGE;
    use_log(&set);
    warn_of_power(&set, words.token);
    int code = find_shim(&words) ? run(&config) : EXIT_REFUSED;
    explicit_bzero(words.token, sizeof(words.token));
    return code;
}
