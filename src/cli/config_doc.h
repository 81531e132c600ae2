/* The configuration file as libcyaml hands it over: every value is still text, NULL where the file
 * says nothing. Numbers and words are judged later (setting.c, config_take.c): libcyaml takes "5s"
 * for 5, -1 for 2^64-1 and every unknown word for true, and it quotes what it refuses, which must
 * not happen to a token.
 *
 * Owned by whoever loaded it with config_doc_schema; cyaml_free ends it. */
#pragma once

#include "cli/config_keys.h"

#include <cyaml/cyaml.h>
#include <stdint.h>

#define CONFIG_TEXT_MEMBER(structure, section, key, ...) const char *key;
#define CONFIG_FLEET_MEMBER(key, ...) const char *key;
#define CONFIG_DOC(structure, ROWS)                                                                \
    struct structure {                                                                             \
        ROWS                                                                                       \
    }
CONFIG_DOC(doc_listen, CONFIG_LISTEN(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_files, CONFIG_TLS(CONFIG_TEXT_MEMBER, http));
CONFIG_DOC(doc_log, CONFIG_LOG(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_timeouts, CONFIG_TIMEOUTS(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_geo, CONFIG_GEO(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_history, CONFIG_HISTORY(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_cluster, CONFIG_CLUSTER(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_limits, CONFIG_LIMITS(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_routes, CONFIG_ROUTES(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_kubernetes, CONFIG_KUBERNETES(CONFIG_TEXT_MEMBER));
CONFIG_DOC(doc_pubsub, CONFIG_PUBSUB(CONFIG_TEXT_MEMBER));

struct doc_region {
    const char *code;
    const char *name;
    const char *latitude;
    const char *longitude;
};

struct doc_env {
    const char *key;
    const char *value;
};

struct doc_discover {
    const char *name;
    const char *url;
};

struct doc_login {
    const char *account;
    const char *scopes;
};

struct doc_version {
    const char *name;
    const char *enabled;
    const char *server_settings;
};

struct doc_agones {
    const char *fleet;
    const char *namespace;
    const char *port;
    const char *list;
    const char *counter;
};

struct doc_fleet {
    const char *name;
    CONFIG_FLEET(CONFIG_FLEET_MEMBER)
    const char **regions;
    uint32_t regions_count;
    const char **arguments;
    uint32_t arguments_count;
    struct doc_env *env;
    uint32_t env_count;
    struct doc_login *access_token;
    struct doc_discover *discover;
    uint32_t discover_count;
    struct doc_version *versions;
    uint32_t versions_count;
    struct doc_agones *agones;
};

struct doc_rate {
    const char *count;
    const char *seconds;
};

struct doc_rates {
    struct doc_rate *create;
    uint32_t create_count;
    struct doc_rate *join;
    uint32_t join_count;
};

struct doc_http {
    CONFIG_HTTP(CONFIG_TEXT_MEMBER)
    const char **trusted_proxies;
    uint32_t trusted_proxies_count;
};

struct doc_nats {
    CONFIG_NATS(CONFIG_TEXT_MEMBER)
    const char **urls;
    uint32_t urls_count;
};

struct doc_token {
    const char *token;
    const char *hash;
    const char *role;
    const char *fleet;
    const char **regions;
    uint32_t regions_count;
};

struct doc_key {
    const char *name;
    const char *algorithm;
    const char *file;
};

struct doc_access {
    CONFIG_ACCESS(CONFIG_TEXT_MEMBER)
    struct doc_key *keys;
    uint32_t keys_count;
};

struct doc_tls {
    struct doc_files http;
    struct doc_files server;
    struct doc_files manager;
    struct doc_files client;
};

struct doc {
    struct doc_region *regions;
    uint32_t regions_count;
    struct doc_fleet *fleets;
    uint32_t fleets_count;
    struct doc_token *tokens;
    uint32_t tokens_count;
    const char *default_region;
    struct doc_rates rates;
    struct doc_geo geo;
    struct doc_history history;
    struct doc_cluster cluster;
    struct doc_timeouts timeouts;
    struct doc_limits limits;
    struct doc_listen listen;
    struct doc_http http;
    struct doc_tls tls;
    struct doc_log log;
    struct doc_access access;
    struct doc_nats nats;
    struct doc_pubsub pubsub;
    struct doc_routes routes;
    struct doc_kubernetes kubernetes;
};

extern const cyaml_schema_value_t config_doc_schema;

/* The keys that may stand at a place ("" = the whole file, "tokens, entry 2", "tls, http"), closed
 * by a row without a name; NULL when there are none. */
const cyaml_schema_field_t *config_doc_fields(const char *place);
