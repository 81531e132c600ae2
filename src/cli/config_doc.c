#include "cli/config_doc.h"

#include "cli/config.h"

#include <string.h>

#define REQUIRED CYAML_FLAG_POINTER
#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(structure_, name_, flags_)                                                            \
    CYAML_FIELD_STRING_PTR(#name_, flags_, struct structure_, name_, 0, CYAML_UNLIMITED)
#define TEXT_FIELD(structure, section, key, ...) TEXT(structure, key, OPTIONAL),

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, const char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t listen_fields[] = {CONFIG_LISTEN(TEXT_FIELD) CYAML_FIELD_END};
#define TEXTS(structure_, name_, max_)                                                             \
    CYAML_FIELD_SEQUENCE(#name_, OPTIONAL, struct structure_, name_, &text_value, 0, max_)
#define LIST(structure_, name_, value_, max_)                                                      \
    CYAML_FIELD_SEQUENCE(#name_, OPTIONAL, struct structure_, name_, &value_, 0, max_)
static const cyaml_schema_field_t http_fields[] = {
    CONFIG_HTTP(TEXT_FIELD) TEXTS(doc_http, trusted_proxies, CONFIG_MAX_PROXIES), CYAML_FIELD_END};
static const cyaml_schema_field_t geo_fields[] = {CONFIG_GEO(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t history_fields[] = {CONFIG_HISTORY(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t cluster_fields[] = {CONFIG_CLUSTER(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t files_fields[] = {CONFIG_TLS(TEXT_FIELD, http) CYAML_FIELD_END};
static const cyaml_schema_field_t log_fields[] = {CONFIG_LOG(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t timeouts_fields[] = {CONFIG_TIMEOUTS(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t limits_fields[] = {CONFIG_LIMITS(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t nats_fields[] = {
    CONFIG_NATS(TEXT_FIELD) TEXTS(doc_nats, urls, NATS_URLS_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t pubsub_fields[] = {CONFIG_PUBSUB(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t routes_fields[] = {CONFIG_ROUTES(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t kubernetes_fields[] = {CONFIG_KUBERNETES(TEXT_FIELD)
                                                             CYAML_FIELD_END};

static const cyaml_schema_field_t region_fields[] = {
    TEXT(doc_region, code, REQUIRED), TEXT(doc_region, name, REQUIRED),
    TEXT(doc_region, latitude, OPTIONAL), TEXT(doc_region, longitude, OPTIONAL), CYAML_FIELD_END};
static const cyaml_schema_value_t region_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_region, region_fields)};

static const cyaml_schema_field_t env_fields[] = {TEXT(doc_env, key, REQUIRED),
                                                  TEXT(doc_env, value, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t env_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_env, env_fields)};
static const cyaml_schema_field_t discover_fields[] = {
    TEXT(doc_discover, name, REQUIRED), TEXT(doc_discover, url, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t discover_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_discover, discover_fields)};
static const cyaml_schema_field_t version_fields[] = {
    TEXT(doc_version, name, REQUIRED), TEXT(doc_version, enabled, OPTIONAL),
    TEXT(doc_version, server_settings, OPTIONAL), CYAML_FIELD_END};
static const cyaml_schema_value_t version_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_version, version_fields)};
static const cyaml_schema_field_t login_fields[] = {
    TEXT(doc_login, account, REQUIRED), TEXT(doc_login, scopes, REQUIRED), CYAML_FIELD_END};

static const cyaml_schema_field_t agones_fields[] = {
    TEXT(doc_agones, fleet, OPTIONAL),   TEXT(doc_agones, namespace, OPTIONAL),
    TEXT(doc_agones, port, OPTIONAL),    TEXT(doc_agones, list, OPTIONAL),
    TEXT(doc_agones, counter, OPTIONAL), CYAML_FIELD_END};

#define FLEET_FIELD(key, ...) TEXT(doc_fleet, key, OPTIONAL),
static const cyaml_schema_field_t fleet_fields[] = {
    TEXT(doc_fleet, name, REQUIRED),
    CONFIG_FLEET(FLEET_FIELD) CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc_fleet, regions,
                                                   &text_value, 1, CYAML_UNLIMITED),
    TEXTS(doc_fleet, arguments, LAUNCH_ARGUMENTS_MAX),
    LIST(doc_fleet, env, env_value, LAUNCH_ENV_MAX),
    CYAML_FIELD_MAPPING_PTR("access_token", OPTIONAL, struct doc_fleet, access_token, login_fields),
    LIST(doc_fleet, discover, discover_value, LAUNCH_DISCOVER_MAX),
    LIST(doc_fleet, versions, version_value, FLEET_VERSIONS_MAX),
    CYAML_FIELD_MAPPING_PTR("agones", OPTIONAL, struct doc_fleet, agones, agones_fields),
    CYAML_FIELD_END};
static const cyaml_schema_value_t fleet_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_fleet, fleet_fields)};

static const cyaml_schema_field_t token_fields[] = {
    TEXT(doc_token, token, OPTIONAL),
    TEXT(doc_token, hash, OPTIONAL),
    TEXT(doc_token, role, REQUIRED),
    TEXT(doc_token, fleet, OPTIONAL),
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc_token, regions, &text_value, 1,
                         CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_value_t token_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_token, token_fields)};

static const cyaml_schema_field_t rate_fields[] = {
    TEXT(doc_rate, count, REQUIRED), TEXT(doc_rate, seconds, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t rate_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_rate, rate_fields)};
static const cyaml_schema_field_t rates_fields[] = {
    CYAML_FIELD_SEQUENCE("create", OPTIONAL, struct doc_rates, create, &rate_value, 1,
                         RATE_LIMITS_MAX),
    CYAML_FIELD_SEQUENCE("join", OPTIONAL, struct doc_rates, join, &rate_value, 1, RATE_LIMITS_MAX),
    CYAML_FIELD_END};

static const cyaml_schema_field_t key_fields[] = {TEXT(doc_key, name, REQUIRED),
                                                  TEXT(doc_key, algorithm, REQUIRED),
                                                  TEXT(doc_key, file, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t key_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_key, key_fields)};
static const cyaml_schema_field_t access_fields[] = {
    CONFIG_ACCESS(TEXT_FIELD) CYAML_FIELD_SEQUENCE("keys", OPTIONAL, struct doc_access, keys,
                                                   &key_value, 0, CONFIG_MAX_KEYS),
    CYAML_FIELD_END};

#define SECTION(structure, name, fields)                                                           \
    CYAML_FIELD_MAPPING(#name, CYAML_FLAG_OPTIONAL, struct structure, name, fields)

static const cyaml_schema_field_t tls_fields[] = {
    SECTION(doc_tls, http, files_fields), SECTION(doc_tls, server, files_fields),
    SECTION(doc_tls, manager, files_fields), SECTION(doc_tls, client, files_fields),
    CYAML_FIELD_END};

static const cyaml_schema_field_t doc_fields[] = {
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc, regions, &region_value, 1, REGION_CODES),
    CYAML_FIELD_SEQUENCE("fleets", OPTIONAL, struct doc, fleets, &fleet_value, 1, CORE_MAX_FLEETS),
    CYAML_FIELD_SEQUENCE("tokens", OPTIONAL, struct doc, tokens, &token_value, 0,
                         CORE_MAX_ENROLMENTS),
    TEXT(doc, default_region, OPTIONAL),
    SECTION(doc, rates, rates_fields),
    SECTION(doc, geo, geo_fields),
    SECTION(doc, history, history_fields),
    SECTION(doc, cluster, cluster_fields),
    SECTION(doc, timeouts, timeouts_fields),
    SECTION(doc, limits, limits_fields),
    SECTION(doc, listen, listen_fields),
    SECTION(doc, http, http_fields),
    SECTION(doc, tls, tls_fields),
    SECTION(doc, log, log_fields),
    SECTION(doc, access, access_fields),
    SECTION(doc, nats, nats_fields),
    SECTION(doc, pubsub, pubsub_fields),
    SECTION(doc, routes, routes_fields),
    SECTION(doc, kubernetes, kubernetes_fields),
    CYAML_FIELD_END};

const cyaml_schema_value_t config_doc_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc, doc_fields)};

static const cyaml_schema_value_t *find(const cyaml_schema_field_t *fields, const char *key,
                                        size_t len)
{
    for (; fields->key; fields++) {
        if (strlen(fields->key) == len && memcmp(fields->key, key, len) == 0)
            return &fields->value;
    }
    return NULL;
}

const cyaml_schema_field_t *config_doc_fields(const char *place)
{
    const cyaml_schema_value_t *at = &config_doc_schema;
    while (at && *place) {
        size_t len = strcspn(place, ",");
        if (at->type == CYAML_SEQUENCE)
            at = at->sequence.entry;
        else
            at = at->type == CYAML_MAPPING ? find(at->mapping.fields, place, len) : NULL;
        place += len;
        place += strspn(place, ", ");
    }
    return at && at->type == CYAML_MAPPING ? at->mapping.fields : NULL;
}
