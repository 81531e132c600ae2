#include "cli/config_rows.h"

#include "base/buf.h"
#include "cli/config_keys.h"
#include "cli/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Keys that have more than one value, or one that follows from the others. */
static const struct list_key {
    const char *name, *fallback, *values;
    bool reloads;
    const char *meaning;
} list_keys[] = {
    {"regions", "the seventeen of the protocol", "a list", true,
     "`{code, name, latitude, longitude}`: code 0 to 63 without 17 (which means any); name 1 "
     "to 15 of `A-Z a-z 0-9 . _ -`; degrees, both or neither. Replaces the default list"},
    {"fleets", "`default`", "a list", true,
     "`{name, provider, ...}`: the keys of an entry are below. Replaces the default list"},
    {"tokens", "none", "a list", true,
     "`{token or hash, role, fleet, regions}`: role `server` or `chat`; fleet `default` when "
     "absent; region names, all when absent"},
    {"access.keys", "none", "a list", true,
     "`{name, algorithm, file}`: public keys (PEM files) of those who may sign access tokens; "
     "algorithm `RS256` or `ES256`"},
    {"http.trusted_proxies", "none", "a list", true,
     "addresses and networks, as `10.0.0.0/8`, whose `X-Forwarded-For` and `X-Real-IP` are "
     "believed"},
    {"nats.urls", "none", "a list", false,
     "up to 8 NATS servers of one cluster, with JetStream, as `nats://host:4222` or `tls://`"},
    {"rates.create", "5 in 60 s, 10 in 240 s, 20 in 480 s, 40 in 960 s", "a list", true,
     "`{count, seconds}`, up to four: rooms that an account may create"},
    {"rates.join", "30 in 60 s", "a list", true,
     "`{count, seconds}`, up to four: seats that an account may ask for, with join and with "
     "allocations under its own token"},
    {"default_region", "the first of `regions`", "a region's name", true,
     "for players of whom nothing is known"},
};

enum { VALUES_MAX = 512 };

/* What a setting may be: "1 to 604800000 ms", "`error`, `warn`", "a path". */
static const char *values_of(const struct setting *row, char dst[VALUES_MAX])
{
    static const char *const kinds[] = {[SETTING_IP] = "an IP address",
                                        [SETTING_FILE] = "a path",
                                        [SETTING_URL] = "a URL",
                                        [SETTING_TEXT] = "text",
                                        [SETTING_SECRET] = "text"};
    size_t at = 0;
    dst[0] = '\0';
    if (row->kind == SETTING_NUMBER)
        snprintf(dst, VALUES_MAX, "%" PRId64 " to %" PRId64 "%s%s", row->min, row->max,
                 row->unit[0] ? " " : "", row->unit);
    else if (row->kind == SETTING_NAME)
        snprintf(dst, VALUES_MAX, "1 to %zu of `A-Z a-z 0-9 . _ -`", row->size - 1);
    else if (row->kind != SETTING_WORD)
        snprintf(dst, VALUES_MAX, "%s", kinds[row->kind]);
    for (size_t i = 0; row->kind == SETTING_WORD && row->words[i] && at < VALUES_MAX; i++)
        at +=
            (size_t)snprintf(dst + at, VALUES_MAX - at, "%s`%s`", i > 0 ? ", " : "", row->words[i]);
    return dst;
}

static void take_setting(const struct setting *row, const struct config *defaults,
                         config_row_take *take, void *user)
{
    char name[64];
    char values[VALUES_MAX];
    char fallback[SETTING_VALUE_MAX];
    snprintf(name, sizeof(name), "%s.%s", row->section, row->key);
    setting_print(row, defaults, fallback);
    const struct config_row key = {.name = name,
                                   .fallback = fallback[0] ? fallback : "`\"\"`",
                                   .values = values_of(row, values),
                                   .meaning = row->meaning,
                                   .reloads = row->reloads};
    take(user, &key);
}

void config_each_row(config_row_take *take, void *user)
{
    struct config *defaults = xcalloc(1, sizeof(*defaults));
    config_default(defaults);
    for (size_t i = 0; i < sizeof(list_keys) / sizeof(list_keys[0]); i++) {
        const struct list_key *row = &list_keys[i];
        const struct config_row key = {.name = row->name,
                                       .fallback = row->fallback,
                                       .values = row->values,
                                       .meaning = row->meaning,
                                       .reloads = row->reloads};
        take(user, &key);
    }
    for (size_t i = 0; i < n_settings; i++)
        take_setting(&settings[i], defaults, take, user);
    config_done(defaults);
    free(defaults);
}

void config_each_fleet_row(config_row_take *take, void *user)
{
    static const struct {
        const char *name, *provider, *values, *meaning;
    } rows[] = {
        {"name", "all", "1 to 63 of `A-Z a-z 0-9 . _ -`", "what it is called everywhere"},
#define ROW(key, who, values, meaning) {#key, who, values, meaning},
        CONFIG_FLEET(ROW)
#undef ROW
            {"regions", "agent or agones",
             "names; all when absent, and the default region on agones",
             "where its servers may run; one on agones"},
        {"arguments", "agent", "up to 32 texts", "of the command line, after socket and ports"},
        {"env", "agent", "up to 32 `{key, value}`",
         "the environment of its servers, beside what Muster puts there"},
        {"access_token", "agent", "`{account, scopes}`; none",
         "its servers get an access token for this account; scopes with commas between them"},
        {"discover", "agent", "up to 16 `{name, url}`",
         "services that its servers are told of (`discovery_services`)"},
        {"versions", "agent", "up to 16 `{name, enabled, server_settings}`",
         "what players name when they join; `enabled` is `true` when absent; `server_settings` "
         "stand in for the fleet's"},
        {"agones", "agones",
         "`{fleet, namespace, port, list, counter}`; the fleet's name, "
         "`default`, the first port, none, none",
         "what it is called in Kubernetes, the port that players use, and the list of players or "
         "the counter that Agones keeps"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct config_row key = {.name = rows[i].name,
                                       .provider = rows[i].provider,
                                       .values = rows[i].values,
                                       .meaning = rows[i].meaning};
        take(user, &key);
    }
}
