/* Launches: how the servers of a fleet are started, as the configuration says. Core decides when
 * and where; this is what the spawn request carries. Constant while in use; owned by whoever
 * configures the service. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAUNCH_TEXT_MAX = 256,
    LAUNCH_ARGUMENTS_MAX = 32,
    LAUNCH_ENV_MAX = 32,
    LAUNCH_DISCOVER_MAX = 16,
    LAUNCH_VERSIONS_MAX = 16,
    LAUNCH_SETTINGS_MAX = 8192,
};

struct launch_pair {
    char key[64];
    char value[LAUNCH_TEXT_MAX];
};

struct launch_version {
    char name[33];
    char *server_settings; /* JSON; NULL = the fleet's */
};

struct launch {
    char fleet[64];
    char binary[LAUNCH_TEXT_MAX];
    bool endpoint_uri;
    int ports;
    char arguments[LAUNCH_ARGUMENTS_MAX][LAUNCH_TEXT_MAX];
    size_t n_arguments;
    struct launch_pair env[LAUNCH_ENV_MAX];
    size_t n_env;
    char *server_settings; /* JSON object; NULL = {} */
    struct launch_version versions[LAUNCH_VERSIONS_MAX];
    size_t n_versions;
    char token_account[65]; /* login_access_token is made for it; "" = none */
    char token_scopes[LAUNCH_TEXT_MAX];
    struct launch_pair discover[LAUNCH_DISCOVER_MAX]; /* name and URL */
    size_t n_discover;
    int64_t status_period_ms;
};
