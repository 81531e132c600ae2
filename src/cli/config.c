/* libcyaml reads the file into the `doc` structs below by way of schema tables, refuses keys it
 * does not know, and says where, which yaml_words.c puts into plain words; then each section is
 * judged and copied by one function.
 *
 * Numbers are read as text and parsed here: libcyaml takes "5s" for 5 and -1 for 2^64-1. Likewise
 * booleans, of which it takes every unknown word for true. It also quotes what it refuses, so the
 * schema puts no limit on tokens. */
#include "cli/config.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/yaml_words.h"
#include "net/address.h"

#include <assert.h>
#include <cyaml/cyaml.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUTS(X)                                                                                \
    X(ack_ms)                                                                                      \
    X(ready_ms)                                                                                    \
    X(ticket_ms)                                                                                   \
    X(heartbeat_ms)                                                                                \
    X(chat_ms)                                                                                     \
    X(challenge_ms)                                                                                \
    X(list_ms)                                                                                     \
    X(lost_ms)                                                                                     \
    X(session_ms)                                                                                  \
    X(token_ms)                                                                                    \
    X(keep_ms)                                                                                     \
    X(forget_ms)                                                                                   \
    X(cancel_repeat_ms)                                                                            \
    X(backoff_first_ms)                                                                            \
    X(backoff_max_ms)                                                                              \
    X(zero_report_ms)

#define LIMITS(X)                                                                                  \
    X(tickets_open)                                                                                \
    X(tickets_kept)                                                                                \
    X(servers)                                                                                     \
    X(chat_servers)                                                                                \
    X(enrolments)                                                                                  \
    X(audit_kept)

enum {
    TIMEOUT_MAX_MS = 7 * 24 * 3600 * 1000,
    LIMIT_MAX = 10 * 1000 * 1000,
    TOKEN_MAX = 512,
    CONNECTIONS_MAX = 1000 * 1000,
};

#define COUNT_ONE(name) +1
_Static_assert(sizeof(struct core_timeouts) == (0 TIMEOUTS(COUNT_ONE)) * sizeof(int64_t),
               "every timeout has a key");
_Static_assert(sizeof(struct core_limits) == (0 LIMITS(COUNT_ONE)) * sizeof(int32_t),
               "every limit has a key");

struct doc_region {
    const char *code;
    const char *name;
};

struct doc_fleet {
    const char *name;
    int ready_required;
};

struct doc_token {
    const char *token;
    int role;
    const char *fleet;
    const char **regions;
    uint32_t regions_count;
};

#define TEXT_MEMBER(name) const char *name;
struct doc_timeouts {
    TIMEOUTS(TEXT_MEMBER)
};
struct doc_limits {
    LIMITS(TEXT_MEMBER)
};

struct doc_listen {
    const char *bind;
    const char *server_port;
    const char *manager_port;
    const char *connections;
    const char *connections_per_address;
};

struct doc {
    struct doc_region *regions;
    uint32_t regions_count;
    struct doc_fleet *fleets;
    uint32_t fleets_count;
    struct doc_token *tokens;
    uint32_t tokens_count;
    struct doc_timeouts *timeouts;
    struct doc_limits *limits;
    struct doc_listen *listen;
};

#define REQUIRED CYAML_FLAG_POINTER
#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(structure_, name_, flags_)                                                            \
    CYAML_FIELD_STRING_PTR(#name_, flags_, struct structure_, name_, 0, CYAML_UNLIMITED)

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, const char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t region_fields[] = {
    TEXT(doc_region, code, REQUIRED), TEXT(doc_region, name, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t region_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_region, region_fields)};

static const cyaml_strval_t booleans[] = {{"false", 0}, {"no", 0}, {"true", 1}, {"yes", 1}};
static const cyaml_schema_field_t fleet_fields[] = {
    TEXT(doc_fleet, name, REQUIRED),
    CYAML_FIELD_ENUM("ready_required", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, struct doc_fleet,
                     ready_required, booleans, CYAML_ARRAY_LEN(booleans)),
    CYAML_FIELD_END};
static const cyaml_schema_value_t fleet_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_fleet, fleet_fields)};

static const cyaml_strval_t roles[] = {{"server", ROLE_SERVER}, {"chat", ROLE_CHAT}};
static const cyaml_schema_field_t token_fields[] = {
    TEXT(doc_token, token, REQUIRED),
    CYAML_FIELD_ENUM("role", CYAML_FLAG_STRICT, struct doc_token, role, roles,
                     CYAML_ARRAY_LEN(roles)),
    TEXT(doc_token, fleet, OPTIONAL),
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc_token, regions, &text_value, 1,
                         CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_value_t token_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_token, token_fields)};

#define TIMEOUT_FIELD(name) TEXT(doc_timeouts, name, OPTIONAL),
static const cyaml_schema_field_t timeouts_fields[] = {TIMEOUTS(TIMEOUT_FIELD) CYAML_FIELD_END};
#define LIMIT_FIELD(name) TEXT(doc_limits, name, OPTIONAL),
static const cyaml_schema_field_t limits_fields[] = {LIMITS(LIMIT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t listen_fields[] = {
    TEXT(doc_listen, bind, OPTIONAL),
    TEXT(doc_listen, server_port, OPTIONAL),
    TEXT(doc_listen, manager_port, OPTIONAL),
    TEXT(doc_listen, connections, OPTIONAL),
    TEXT(doc_listen, connections_per_address, OPTIONAL),
    CYAML_FIELD_END};

static const cyaml_schema_field_t doc_fields[] = {
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc, regions, &region_value, 1, REGION_CODES),
    CYAML_FIELD_SEQUENCE("fleets", OPTIONAL, struct doc, fleets, &fleet_value, 1, CORE_MAX_FLEETS),
    CYAML_FIELD_SEQUENCE("tokens", OPTIONAL, struct doc, tokens, &token_value, 0,
                         CORE_MAX_ENROLMENTS),
    CYAML_FIELD_MAPPING_PTR("timeouts", OPTIONAL, struct doc, timeouts, timeouts_fields),
    CYAML_FIELD_MAPPING_PTR("limits", OPTIONAL, struct doc, limits, limits_fields),
    CYAML_FIELD_MAPPING_PTR("listen", OPTIONAL, struct doc, listen, listen_fields),
    CYAML_FIELD_END};
static const cyaml_schema_value_t doc_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc, doc_fields)};

/* One reading: where we are and, after a mistake, the sentence. */
struct reading {
    const char *name; /* of the file */
    struct config *config;
    char *why;

    /* What libcyaml said: its first complaint, then where, innermost first. */
    char complaint[200];
    char place[200];
    char line[16];
};

static int refuse(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct reading *r, const char *format, ...)
{
    int n = snprintf(r->why, CONFIG_WHY_MAX, "%s: ", r->name);
    if (n < 0 || n >= CONFIG_WHY_MAX)
        return ERR_INVALID_REQUEST;
    va_list args;
    va_start(args, format);
    vsnprintf(r->why + n, CONFIG_WHY_MAX - (size_t)n, format, args);
    va_end(args);
    return ERR_INVALID_REQUEST;
}

/* One step of libcyaml's backtrace goes in front of the place: "tokens, entry 2, role". */
static void add_place(struct reading *r, const char *step)
{
    char inner[sizeof(r->place)];
    memcpy(inner, r->place, sizeof(inner));
    snprintf(r->place, sizeof(r->place), "%s%s%.*s", step, inner[0] ? ", " : "",
             (int)(sizeof(inner) - 80), inner);
}

static void on_libcyaml_log(cyaml_log_t level, void *user, const char *format, va_list args)
{
    (void)level;
    struct reading *r = user;
    char text[400], word[64], step[80], line[sizeof(r->line)] = "";
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';

    if (sscanf(text, " in mapping field '%63[^']' (line: %15[0-9]", word, line) == 2) {
        add_place(r, word);
    } else if (sscanf(text, " in sequence entry '%63[0-9]' (line: %15[0-9]", word, line) == 2) {
        snprintf(step, sizeof(step), "entry %s", word);
        add_place(r, step);
    } else if (sscanf(text, " in mapping (line: %15[0-9]", line) != 1 && !r->complaint[0] &&
               !strstr(text, "Backtrace")) {
        const char *said = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;
        snprintf(r->complaint, sizeof(r->complaint), "%.199s", said);
    }
    if (!r->line[0])
        memcpy(r->line, line, sizeof(line));
}

static int refuse_yaml(struct reading *r, cyaml_err_t err)
{
    char words[YAML_WORDS_MAX];
    yaml_words(r->place, r->complaint[0] ? r->complaint : cyaml_strerror(err), words);
    return refuse(r, "%s%s%s%s", r->line[0] ? "line " : "", r->line, r->line[0] ? ": " : "", words);
}

/* Digits only: no sign, unit, fraction or other base. */
static bool read_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    size_t len = strlen(text);
    if (len == 0 || len > 18 || strspn(text, "0123456789") != len)
        return false;
    int64_t v = strtoll(text, NULL, 10);
    if (v < min || v > max)
        return false;
    *ret = v;
    return true;
}

/* Absent keeps what *ret holds. */
static int take_number(struct reading *r, const char *section, const char *key, const char *text,
                       int64_t min, int64_t max, int64_t *ret)
{
    if (!text || read_number(text, min, max, ret))
        return 0;
    return refuse(r, "%s, %s: must be a whole number from %" PRId64 " to %" PRId64 ", not '%.40s'",
                  section, key, min, max, text);
}

static bool is_name(const char *text, size_t max)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(text);
    return len > 0 && len <= max && strspn(text, allowed) == len;
}

/* The code of a configured region, or -1. */
static int find_region(const struct core_config *core, const char *name)
{
    for (int code = 0; code < REGION_CODES; code++) {
        if (core->regions[code].name[0] && strcmp(core->regions[code].name, name) == 0)
            return code;
    }
    return -1;
}

static bool has_fleet(const struct core_config *core, const char *name)
{
    for (size_t i = 0; i < core->n_fleets; i++) {
        if (strcmp(core->fleets[i].name, name) == 0)
            return true;
    }
    return false;
}

static int take_region(struct reading *r, const struct doc_region *d, uint32_t number)
{
    struct core_config *core = &r->config->core;
    int64_t code = 0;
    if (!read_number(d->code, 0, REGION_CODES - 1, &code) || code == REGION_AUTO)
        return refuse(r,
                      "regions, entry %u: the code must be 0 to %d without %d (which means any), "
                      "not '%.40s'",
                      number, REGION_CODES - 1, REGION_AUTO, d->code);
    struct region_config *region = &core->regions[code];
    if (!is_name(d->name, sizeof(region->name) - 1))
        return refuse(r, "regions, entry %u: the name must be 1 to %zu of A-Z a-z 0-9 . _ -",
                      number, sizeof(region->name) - 1);
    if (region->name[0])
        return refuse(r, "regions, entry %u: code %" PRId64 " is already %s", number, code,
                      region->name);
    if (find_region(core, d->name) >= 0)
        return refuse(r, "regions, entry %u: %s is there twice", number, d->name);
    str_copy(region->name, sizeof(region->name), str_of(d->name));
    return 0;
}

static int take_regions(struct reading *r, const struct doc *d)
{
    if (!d->regions)
        return 0;
    memset(r->config->core.regions, 0, sizeof(r->config->core.regions));
    for (uint32_t i = 0; i < d->regions_count; i++) {
        int err = take_region(r, &d->regions[i], i + 1);
        if (err != 0)
            return err;
    }
    return 0;
}

static int take_fleets(struct reading *r, const struct doc *d)
{
    struct core_config *core = &r->config->core;
    if (!d->fleets)
        return 0;
    core->n_fleets = 0;
    for (uint32_t i = 0; i < d->fleets_count; i++) {
        struct fleet_config *fleet = &core->fleets[core->n_fleets];
        const char *name = d->fleets[i].name;
        if (!is_name(name, sizeof(fleet->name) - 1))
            return refuse(r, "fleets, entry %u: the name must be 1 to %zu of A-Z a-z 0-9 . _ -",
                          i + 1, sizeof(fleet->name) - 1);
        if (has_fleet(core, name))
            return refuse(r, "fleets, entry %u: %s is there twice", i + 1, name);
        *fleet = (struct fleet_config){.ready_required = d->fleets[i].ready_required};
        str_copy(fleet->name, sizeof(fleet->name), str_of(name));
        core->n_fleets++;
    }
    return 0;
}

/* Absent means all there are. An empty list, which the schema refuses, would seem to mean none. */
static int take_token_regions(struct reading *r, const struct doc_token *d, uint32_t number,
                              uint64_t *ret)
{
    const struct core_config *core = &r->config->core;
    uint64_t regions = 0;
    for (uint32_t i = 0; i < d->regions_count; i++) {
        int code = find_region(core, d->regions[i]);
        if (code < 0)
            return refuse(r, "tokens, entry %u: there is no region %.40s", number, d->regions[i]);
        regions |= UINT64_C(1) << code;
    }
    for (int code = 0; d->regions_count == 0 && code < REGION_CODES; code++) {
        if (core->regions[code].name[0])
            regions |= UINT64_C(1) << code;
    }
    *ret = regions;
    return 0;
}

static int take_token(struct reading *r, const struct doc_token *d, uint32_t number)
{
    struct core_config *core = &r->config->core;
    struct enrolment *e = &core->enrolments[core->n_enrolments];
    const char *fleet = d->fleet ? d->fleet : "default";
    size_t len = strlen(d->token);
    *e = (struct enrolment){.role = (enum enrolment_role)d->role};
    if (len == 0 || len > TOKEN_MAX || !str_is_utf8(str_of(d->token)))
        return refuse(r, "tokens, entry %u: the token must be 1 to %d bytes", number, TOKEN_MAX);
    if (!has_fleet(core, fleet))
        return refuse(r, "tokens, entry %u: there is no fleet %.64s", number, fleet);
    str_copy(e->fleet, sizeof(e->fleet), str_of(fleet));
    int err = take_token_regions(r, d, number, &e->regions);
    if (err != 0)
        return err;
    core_hash_token(str_of(d->token), e->hash);
    for (size_t i = 0; i < core->n_enrolments; i++) {
        if (memcmp(core->enrolments[i].hash, e->hash, CORE_HASH_SIZE) == 0)
            return refuse(r, "tokens, entry %u: the same token as entry %zu", number, i + 1);
    }
    core->n_enrolments++;
    return 0;
}

static int take_tokens(struct reading *r, const struct doc *d)
{
    r->config->core.n_enrolments = 0;
    for (uint32_t i = 0; i < d->tokens_count; i++) {
        int err = take_token(r, &d->tokens[i], i + 1);
        if (err != 0)
            return err;
    }
    return 0;
}

static int take_timeouts(struct reading *r, const struct doc_timeouts *d)
{
    struct core_timeouts *t = &r->config->core.timeouts;
    const struct {
        const char *key;
        const char *text;
        int64_t *to;
    } rows[] = {
#define TIMEOUT_ROW(name_) {#name_, d->name_, &t->name_},
        TIMEOUTS(TIMEOUT_ROW)};
    for (size_t i = 0; i < CYAML_ARRAY_LEN(rows); i++) {
        int err =
            take_number(r, "timeouts", rows[i].key, rows[i].text, 1, TIMEOUT_MAX_MS, rows[i].to);
        if (err != 0)
            return err;
    }
    if (t->backoff_first_ms > t->backoff_max_ms)
        return refuse(r, "timeouts: backoff_first_ms is above backoff_max_ms");
    return 0;
}

static int take_limits(struct reading *r, const struct doc_limits *d)
{
    struct core_limits *l = &r->config->core.limits;
    const struct {
        const char *key;
        const char *text;
        int32_t *to;
    } rows[] = {
#define LIMIT_ROW(name_) {#name_, d->name_, &l->name_},
        LIMITS(LIMIT_ROW)};
    for (size_t i = 0; i < CYAML_ARRAY_LEN(rows); i++) {
        int64_t v = *rows[i].to;
        int err = take_number(r, "limits", rows[i].key, rows[i].text, 1, LIMIT_MAX, &v);
        if (err != 0)
            return err;
        *rows[i].to = (int32_t)v;
    }
    return 0;
}

static int take_port(struct reading *r, const char *key, const char *text, uint16_t *ret)
{
    int64_t v = *ret;
    int err = take_number(r, "listen", key, text, 0, UINT16_MAX, &v);
    *ret = (uint16_t)v;
    return err;
}

static int take_listen(struct reading *r, const struct doc_listen *d)
{
    struct config *config = r->config;
    union address ignored;
    if (d->bind && !address_parse(d->bind, 0, &ignored))
        return refuse(r, "listen, bind: '%.60s' is not an IP address", d->bind);
    if (d->bind)
        str_copy(config->bind_ip, sizeof(config->bind_ip), str_of(d->bind));
    int err = take_port(r, "server_port", d->server_port, &config->server_port);
    if (err == 0)
        err = take_port(r, "manager_port", d->manager_port, &config->manager_port);
    if (err == 0)
        err = take_number(r, "listen", "connections", d->connections, 1, CONNECTIONS_MAX,
                          &config->connections);
    if (err == 0)
        err = take_number(r, "listen", "connections_per_address", d->connections_per_address, 1,
                          CONNECTIONS_MAX, &config->connections_per_address);
    return err;
}

/* Regions and fleets first: tokens name them. */
static int take_doc(struct reading *r, const struct doc *d)
{
    int err = take_regions(r, d);
    if (err == 0)
        err = take_fleets(r, d);
    if (err == 0)
        err = take_tokens(r, d);
    if (err == 0 && d->timeouts)
        err = take_timeouts(r, d->timeouts);
    if (err == 0 && d->limits)
        err = take_limits(r, d->limits);
    if (err == 0 && d->listen)
        err = take_listen(r, d->listen);
    return err;
}

int config_parse(const char *name, const char *text, size_t len, struct config *ret,
                 char why[CONFIG_WHY_MAX])
{
    struct reading r = {.name = name, .config = ret};
    r.why = why;
    cyaml_config_t cyaml = {
        .log_fn = on_libcyaml_log,
        .log_ctx = &r,
        .mem_fn = cyaml_mem,
        .log_level = CYAML_LOG_WARNING,
        .flags = CYAML_CFG_NO_ALIAS,
    };
    struct doc *doc = NULL;
    char words[YAML_WORDS_MAX];
    if (len == 0)
        return 0;
    if (!yaml_is_one_document(text, len, words))
        return refuse(&r, "%s", words);
    cyaml_err_t err = cyaml_load_data((const uint8_t *)text, len, &cyaml, &doc_schema,
                                      (cyaml_data_t **)&doc, NULL);
    if (err != CYAML_OK)
        return refuse_yaml(&r, err);
    int result = doc ? take_doc(&r, doc) : 0;
    cyaml_free(&cyaml, &doc_schema, doc, 0);
    return result;
}

int config_load(const char *path, struct config *ret, char why[CONFIG_WHY_MAX])
{
    FILE *f = fopen(path, "re");
    if (!f) {
        snprintf(why, CONFIG_WHY_MAX, "Cannot read %s: %s", path, strerror(errno));
        return ERR_IO;
    }
    char *text = xmalloc(CONFIG_FILE_MAX + 1);
    size_t len = fread(text, 1, CONFIG_FILE_MAX + 1, f);
    int err = 0;
    if (ferror(f)) {
        snprintf(why, CONFIG_WHY_MAX, "Cannot read %s: %s", path, strerror(errno));
        err = ERR_IO;
    } else if (len > CONFIG_FILE_MAX) {
        snprintf(why, CONFIG_WHY_MAX, "%s: longer than %d bytes", path, CONFIG_FILE_MAX);
        err = ERR_INVALID_REQUEST;
    } else {
        err = config_parse(path, text, len, ret, why);
    }
    fclose(f);
    free(text);
    return err;
}

void config_default(struct config *ret)
{
    *ret = (struct config){
        .bind_ip = "0.0.0.0",
        .server_port = 11032,
        .manager_port = 11033,
        .connections = 20000,
        .connections_per_address = 4096,
        .http_port = 9508,
        .http_connections = 2000,
        .http_connections_per_address = 512,
        .log_level = LOG_INFO,
        .log_format = LOG_LOGFMT,
        .gamespace = "1",
    };
    core_config_default(&ret->core);
}

const char *config_http_bind(const struct config *config)
{
    return config->http_bind_ip[0] ? config->http_bind_ip : config->bind_ip;
}
