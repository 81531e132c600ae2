/* The configuration of `muster serve`: defaults, then what a YAML file says. The command line is
 * put on top by serve.c. Owned by whoever declares it, who ends it with config_done; it is large,
 * so on the heap.
 *
 *   text ─libyaml, libcyaml─▶ struct doc (config_doc.h) ─config_take─▶ struct config
 * Keys with one value are rows of config_keys.h; config_show.h prints, config_change.h compares. */
#pragma once

#include "api/agones.h"
#include "api/launch.h"
#include "api/nats.h"
#include "api/pubsub.h"
#include "base/log.h"
#include "core/core.h"
#include "net/address.h"
#include "store/cell.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONFIG_WHY_MAX = 640,
    CONFIG_FILE_MAX = 1024 * 1024,
    CONFIG_PATH_MAX = 256, /* with its NUL */
    CONFIG_MAX_KEYS = 16,
    CONFIG_MAX_PROXIES = 64,
    CONFIG_NAME_MAX = 201, /* of the file, in sentences */
};

/* Paths of PEM files, as they can be opened from where the process stands; "" = not given. Without
 * a certificate the port is plain. */
struct config_tls {
    char certificate[CONFIG_PATH_MAX];
    char key[CONFIG_PATH_MAX];
    char client_ca[CONFIG_PATH_MAX]; /* clients must be signed by it */

    /* Where the file says so; 0 = nowhere. */
    size_t certificate_line;
    size_t key_line;
    size_t client_ca_line;
};

/* A public key that access tokens may be signed with. */
struct config_key {
    char name[64];
    char algorithm[8]; /* "RS256" or "ES256" */
    char file[CONFIG_PATH_MAX];
    size_t line; /* on which the file names it; 0 = nowhere */
};

/* Where the API server of PROVIDER_AGONES is; "" = not said. */
struct config_kubernetes {
    char url[CONFIG_PATH_MAX];
    char ca_file[CONFIG_PATH_MAX];
    char token_file[CONFIG_PATH_MAX];
    char kubeconfig[CONFIG_PATH_MAX];
};

/* The buses; "" = not given. struct nats_config and struct pubsub_config say what is what. */
struct config_nats {
    char urls[NATS_URLS_MAX][CONFIG_PATH_MAX];
    size_t n_urls; /* 0 = no NATS */
    char credentials_file[CONFIG_PATH_MAX];
    char user[NATS_SUBJECT_MAX];
    char password[NATS_SUBJECT_MAX];
    char token[CONFIG_PATH_MAX];
    char ca_file[CONFIG_PATH_MAX];
    char request_subject[NATS_SUBJECT_MAX];
    char result_subject[NATS_SUBJECT_MAX];
    char dead_subject[NATS_SUBJECT_MAX];
    char stream[NATS_SUBJECT_MAX];
    char durable[NATS_SUBJECT_MAX];
    int32_t max_deliver;
    int64_t ack_wait_ms;
};

struct config_pubsub {
    char project[CONFIG_PATH_MAX]; /* "" = no Pub/Sub */
    char subscription[CONFIG_PATH_MAX];
    char topic[CONFIG_PATH_MAX];
    char dead_topic[CONFIG_PATH_MAX];
    char credentials_file[CONFIG_PATH_MAX];
    char endpoint[CONFIG_PATH_MAX];
    char push_audience[CONFIG_PATH_MAX];
    char push_account[CONFIG_PATH_MAX];
    char push_keys[CONFIG_PATH_MAX];
    int32_t pull_messages;
    int32_t pulls;
};

/* With others: the cell's database and how we are reached; "" = not said. */
struct config_cluster {
    char store[1024]; /* "" = everything is in the data folder */
    char cell[CELL_NAME_MAX];
    char node[64];
    int64_t lease_ms;
    char http[CONFIG_PATH_MAX];
    char server[64];
    char manager[64];
    char client[64];
    char ca_file[CONFIG_PATH_MAX];
};

struct config {
    char name[CONFIG_NAME_MAX]; /* of the file it was read from; "" = none */
    struct core_config core;
    char bind_ip[46];
    uint16_t server_port;
    uint16_t manager_port;
    uint16_t client_port;
    int64_t connections; /* at most so many, of servers and chat servers */
    int64_t connections_per_address;
    int64_t client_connections; /* … of players */
    int64_t client_connections_per_address;

    char http_bind_ip[46]; /* "" = bind_ip; ask config_http_bind */
    uint16_t http_port;
    int64_t http_connections;
    int64_t http_connections_per_address;
    bool metrics_open;    /* /metrics needs no access token */
    bool quilkin_filters; /* quilkin_file has the filters that route by token */
    struct address_range proxies[CONFIG_MAX_PROXIES]; /* whose X-Forwarded-For is believed */
    size_t n_proxies;

    struct launch *launches; /* one for each fleet of PROVIDER_AGENT, in their order; owned */
    size_t n_launches;
    char geo_file[CONFIG_PATH_MAX]; /* "" = none */
    int64_t history_max_mb;         /* 0 = none is kept, as with the next */
    int64_t history_days;
    struct config_cluster cluster;
    size_t geo_line; /* on which the file names it; 0 = nowhere */

    struct agones_fleet agones[AGONES_FLEETS_MAX]; /* one for each fleet of PROVIDER_AGONES */
    size_t n_agones;
    struct config_kubernetes kubernetes;
    struct config_nats nats;
    struct config_pubsub pubsub;
    char quilkin_file[CONFIG_PATH_MAX]; /* "" = none */

    struct config_tls tls_http;
    struct config_tls tls_server;
    struct config_tls tls_manager;
    struct config_tls tls_client;

    enum log_level log_level;
    enum log_format log_format;

    char gamespace[65];              /* what access tokens must be for */
    char login_url[CONFIG_PATH_MAX]; /* of the login service; "" = none */
    struct config_key keys[CONFIG_MAX_KEYS];
    size_t n_keys;
};

/* Overwrites *ret. */
void config_default(struct config *ret);

/* Frees what it owns; a zeroed one owns nothing. It may be used again after config_default. */
void config_done(struct config *config);

/* The address the HTTP port is bound to. */
const char *config_http_bind(const struct config *config);

/* The region of players of whom nothing is known: the one said, or the first there is. */
const char *config_default_region(const struct config *config);

/* What is wrong with a file: sentences naming file, line, place and what was expected, never a
 * token. Those beyond the first CONFIG_MISTAKES_MAX are only counted. */
enum { CONFIG_MISTAKES_MAX = 10 };
struct config_mistakes {
    size_t n;
    char sentence[CONFIG_MISTAKES_MAX][CONFIG_WHY_MAX];
};

/* Puts the file's settings on top of *ret; "-" is standard input. Relative paths in it begin at the
 * file's folder. On failure returns ERR_IO or ERR_INVALID_REQUEST with at least one mistake, and
 * *ret may only be ended. */
int config_load(const char *path, struct config *ret, struct config_mistakes *mistakes);

/* The same for text already in memory; name stands for the file in sentences and says the folder.
 */
int config_parse(const char *name, const char *text, size_t len, struct config *ret,
                 struct config_mistakes *mistakes);

/* One line per mistake on standard error: "muster VERB: …". */
void config_print_mistakes(const char *verb, const struct config_mistakes *mistakes);
