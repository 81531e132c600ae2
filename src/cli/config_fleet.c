#include "cli/config_fleet.h"

#include "base/json.h"
#include "cli/config_doc.h"
#include "cli/config_entry.h"
#include "cli/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a fleet of Kubernetes has when it names nothing: players do not name versions there. */
static const char only_version[] = "1";

enum { PLAYERS_MAX = 10000, PORTS_MAX = 4, HOUR_S = 3600, DAY_S = 24 * HOUR_S };

_Static_assert((int)LAUNCH_VERSIONS_MAX >= (int)FLEET_VERSIONS_MAX, "every version has a place");

const struct fleet_config *config_find_fleet(const struct core_config *core, const char *name)
{
    for (size_t i = 0; i < core->n_fleets; i++) {
        if (strcmp(core->fleets[i].name, name) == 0)
            return &core->fleets[i];
    }
    return NULL;
}

/* One entry while it is read. */
struct taking {
    struct entry at;
    const struct doc_fleet *d;
    struct fleet_config fleet;
    struct launch *launch;
};

/* "env, entry 2, key". Returns dst. */
enum { DEEP_MAX = 64 };
static const char *deep(char dst[DEEP_MAX], const char *list, uint32_t i, const char *key)
{
    snprintf(dst, DEEP_MAX, "%s, entry %" PRIu32 "%s%s", list, i + 1, key[0] ? ", " : "", key);
    return dst;
}

/* A text of 1 to cap - 1 bytes. What was given is not said again: it may be a secret. */
static bool take_text(struct taking *t, const char *key, const char *text, size_t min, char *ret,
                      size_t cap)
{
    if (strlen(text) >= min && str_copy(ret, cap, str_of(text)))
        return true;
    ENTRY_REFUSE(&t->at, key, "must be %zu to %zu bytes", min, cap - 1);
    return false;
}

/* Required where agents run the servers. */
static void take_needed_name(struct taking *t, const char *key, const char *text, char *ret,
                             size_t cap)
{
    if (text)
        (void)entry_name(&t->at, key, text, ret, cap);
    else
        ENTRY_REFUSE(&t->at, "", "%s is missing; a fleet of provider agent needs it", key);
}

static int64_t take_number(struct taking *t, const char *key, const char *text, int64_t min,
                           int64_t max, int64_t otherwise)
{
    int64_t v = otherwise;
    if (text)
        (void)entry_number(&t->at, key, text, min, max, &v);
    return v;
}

static int64_t take_seconds(struct taking *t, const char *key, const char *text, int64_t max,
                            int64_t otherwise)
{
    return 1000 * take_number(t, key, text, 1, max, otherwise);
}

/* The copy of a JSON object, or NULL. */
static char *take_json(struct taking *t, const char *key, const char *text)
{
    char why[JSON_WHY_MAX];
    if (!text)
        return NULL;
    if (strlen(text) >= LAUNCH_SETTINGS_MAX) {
        ENTRY_REFUSE(&t->at, key, "must be at most %d bytes", LAUNCH_SETTINGS_MAX - 1);
        return NULL;
    }
    struct json *parsed = json_parse(str_of(text), why);
    bool object = parsed && json_kind(parsed) == JSON_KIND_OBJECT;
    json_free(parsed);
    if (!parsed)
        ENTRY_REFUSE(&t->at, key, "must be a JSON object; in it, %s", why);
    else if (!object)
        ENTRY_REFUSE(&t->at, key, "must be a JSON object, not another value");
    return object ? xstrdup(text) : NULL;
}

static void take_program(struct taking *t)
{
    const struct doc_fleet *d = t->d;
    struct launch *l = t->launch;
    if (d->binary)
        (void)take_text(t, "binary", d->binary, 1, l->binary, sizeof(l->binary));
    else
        ENTRY_REFUSE(&t->at, "", "binary is missing; a fleet of provider agent needs it");
    l->endpoint_uri = d->endpoint && strcmp(d->endpoint, "uri") == 0;
    if (d->endpoint && !l->endpoint_uri && strcmp(d->endpoint, "path") != 0)
        ENTRY_REFUSE(&t->at, "endpoint", "must be path or uri, not '%.40s'", d->endpoint);
    l->ports = (int)take_number(t, "ports", d->ports, 1, PORTS_MAX, 1);
    l->status_period_ms = take_seconds(t, "status_period_s", d->status_period_s, HOUR_S, 10);
    l->server_settings = take_json(t, "server_settings", d->server_settings);
    l->n_arguments = d->arguments_count;
    for (uint32_t i = 0; i < d->arguments_count; i++) {
        char key[DEEP_MAX];
        (void)take_text(t, deep(key, "arguments", i, ""), d->arguments[i], 0, l->arguments[i],
                        sizeof(l->arguments[i]));
    }
}

static bool is_variable(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    return name[0] && !strchr("0123456789", name[0]) && strspn(name, allowed) == strlen(name) &&
           strlen(name) < sizeof(((struct launch_pair *)0)->key);
}

/* What the agent puts there itself. */
static bool is_taken_variable(const char *name)
{
    static const char *const taken[] = {
        "server_settings",  "room_settings",      "room_id",
        "game_max_players", "login_access_token", "discovery_services"};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], name) == 0)
            return true;
    }
    return false;
}

static bool has_pair(const struct launch_pair *pairs, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pairs[i].key, key) == 0)
            return true;
    }
    return false;
}

static void take_variable(struct taking *t, uint32_t i)
{
    struct launch *l = t->launch;
    const struct doc_env *d = &t->d->env[i];
    struct launch_pair *pair = &l->env[l->n_env];
    char key[DEEP_MAX];
    (void)take_text(t, deep(key, "env", i, "value"), d->value, 0, pair->value, sizeof(pair->value));
    deep(key, "env", i, "key");
    if (!is_variable(d->key))
        ENTRY_REFUSE(&t->at, key, "must be 1 to %zu of A-Z a-z 0-9 _ and begin with no digit",
                     sizeof(pair->key) - 1);
    else if (is_taken_variable(d->key))
        ENTRY_REFUSE(&t->at, key, "%s is set by the agent", d->key);
    else if (has_pair(l->env, l->n_env, d->key))
        ENTRY_REFUSE(&t->at, key, "%s is there twice", d->key);
    else if (str_copy(pair->key, sizeof(pair->key), str_of(d->key)))
        l->n_env++;
}

static void take_discovered(struct taking *t, uint32_t i)
{
    struct launch *l = t->launch;
    const struct doc_discover *d = &t->d->discover[i];
    struct launch_pair *pair = &l->discover[l->n_discover];
    char key[DEEP_MAX];
    bool web = strncmp(d->url, "http://", 7) == 0 || strncmp(d->url, "https://", 8) == 0;
    if (!web || !str_copy(pair->value, sizeof(pair->value), str_of(d->url)))
        ENTRY_REFUSE(&t->at, deep(key, "discover", i, "url"),
                     "must be a URL of at most %zu bytes that begins with http:// or https://",
                     sizeof(pair->value) - 1);
    deep(key, "discover", i, "name");
    if (has_pair(l->discover, l->n_discover, d->name))
        ENTRY_REFUSE(&t->at, key, "%.63s is there twice", d->name);
    else if (entry_name(&t->at, key, d->name, pair->key, sizeof(pair->key)))
        l->n_discover++;
}

/* "game,profile" */
static bool is_scopes(const char *text)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (;;) {
        size_t n = strspn(text, allowed);
        if (n == 0 || (text[n] != ',' && text[n] != '\0'))
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

static void take_login(struct taking *t)
{
    const struct doc_login *d = t->d->access_token;
    struct launch *l = t->launch;
    if (!d)
        return;
    (void)entry_name(&t->at, "access_token, account", d->account, l->token_account,
                     sizeof(l->token_account));
    if (!is_scopes(d->scopes) ||
        !str_copy(l->token_scopes, sizeof(l->token_scopes), str_of(d->scopes)))
        ENTRY_REFUSE(&t->at, "access_token, scopes",
                     "must be scopes with commas between them, as game,profile, not '%.40s'",
                     d->scopes);
}

static void take_version(struct taking *t, uint32_t i)
{
    const struct doc_version *d = &t->d->versions[i];
    struct fleet_config *f = &t->fleet;
    struct launch *l = t->launch;
    struct version_config *version = &f->versions[f->n_versions];
    char key[DEEP_MAX];
    version->disabled =
        d->enabled && !entry_bool(&t->at, deep(key, "versions", i, "enabled"), d->enabled);
    if (!entry_name(&t->at, deep(key, "versions", i, "name"), d->name, version->name,
                    sizeof(version->name)))
        return;
    for (size_t k = 0; k < f->n_versions; k++) {
        if (strcmp(f->versions[k].name, version->name) == 0) {
            ENTRY_REFUSE(&t->at, key, "%s is there twice", version->name);
            return;
        }
    }
    struct launch_version *own = &l->versions[l->n_versions++];
    f->n_versions++;
    memcpy(own->name, version->name, sizeof(own->name));
    own->server_settings =
        take_json(t, deep(key, "versions", i, "server_settings"), d->server_settings);
}

static void take_lists(struct taking *t)
{
    const struct doc_fleet *d = t->d;
    for (uint32_t i = 0; i < d->env_count; i++)
        take_variable(t, i);
    for (uint32_t i = 0; i < d->discover_count; i++)
        take_discovered(t, i);
    for (uint32_t i = 0; i < d->versions_count; i++)
        take_version(t, i);
}

/* One of two words: true for the second. */
static bool take_choice(struct taking *t, const char *key, const char *text, const char *first,
                        const char *second)
{
    bool is_second = text && strcmp(text, second) == 0;
    if (text && !is_second && strcmp(text, first) != 0)
        ENTRY_REFUSE(&t->at, key, "must be %s or %s, not '%.40s'", first, second, text);
    return is_second;
}

/* How allocations are placed. */
static void take_allocating(struct taking *t)
{
    const struct doc_fleet *d = t->d;
    struct fleet_config *f = &t->fleet;
    f->taken_at_once = take_choice(t, "confirm", d->confirm, "joined", "none");
    f->spread = take_choice(t, "fill", d->fill, "pack", "spread");
    f->queue_when_full = !take_choice(t, "when_full", d->when_full, "queue", "fail");
    f->queue_ms = take_seconds(t, "queue_timeout_s", d->queue_timeout_s, DAY_S, 120);
    f->token =
        take_choice(t, "token", d->token, "opaque", "player-id") ? TOKEN_PLAYER_ID : TOKEN_OPAQUE;
    if (f->provider == PROVIDER_AGONES && d->confirm && strcmp(d->confirm, "joined") == 0)
        ENTRY_REFUSE(&t->at, "confirm", "must be none: nobody says there that a player joined");
}

/* What core decides by. */
static void take_rules(struct taking *t, const char *provider)
{
    const struct doc_fleet *d = t->d;
    struct fleet_config *f = &t->fleet;
    f->regions = entry_regions(&t->at, d->regions, d->regions_count);
    f->other_regions = d->other_regions && entry_bool(&t->at, "other_regions", d->other_regions);
    if (!d->max_players)
        ENTRY_REFUSE(&t->at, "", "max_players is missing; a fleet of provider %s needs it",
                     provider);
    f->max_players = (int32_t)take_number(t, "max_players", d->max_players, 1, PLAYERS_MAX, 1);
    f->spawn_ms = take_seconds(t, "spawn_timeout_s", d->spawn_timeout_s, HOUR_S, 30);
    f->reserve_ms = take_seconds(t, "reserve_s", d->reserve_s, DAY_S, 30);
    f->empty_ms = take_seconds(t, "empty_timeout_s", d->empty_timeout_s, 7 * DAY_S, 300);
    f->session_ms = take_seconds(t, "max_session_s", d->max_session_s, 7 * DAY_S, 6 * HOUR_S);
    take_allocating(t);
}

/* Players would not know which one they mean. */
static void check_path(struct taking *t, const struct core_config *core)
{
    const struct fleet_config *f = &t->fleet;
    for (size_t i = 0; i < core->n_fleets; i++) {
        const struct fleet_config *other = &core->fleets[i];
        if (f->game[0] && f->server[0] && strcmp(other->game, f->game) == 0 &&
            strcmp(other->server, f->server) == 0)
            ENTRY_REFUSE(&t->at, "server", "%s/%s is fleet %s already", f->game, f->server,
                         other->name);
    }
}

static void take_agent_fleet(struct taking *t)
{
    struct config *config = t->at.r->config;
    config->launches =
        xrealloc(config->launches, (config->n_launches + 1) * sizeof(*config->launches));
    t->launch = &config->launches[config->n_launches++];
    memset(t->launch, 0, sizeof(*t->launch));
    memcpy(t->launch->fleet, t->fleet.name, sizeof(t->launch->fleet));
    take_needed_name(t, "game", t->d->game, t->fleet.game, sizeof(t->fleet.game));
    take_needed_name(t, "server", t->d->server, t->fleet.server, sizeof(t->fleet.server));
    take_rules(t, "agent");
    take_program(t);
    take_login(t);
    take_lists(t);
    check_path(t, &config->core);
}

/* The lowest of them, or else where players of whom nothing is known are. */
static int8_t only_region(struct taking *t)
{
    const struct core_config *core = &t->at.r->config->core;
    uint64_t regions = t->fleet.regions;
    int code = core->default_region >= 0 ? core->default_region : 0;
    if ((regions & (regions - 1)) != 0)
        ENTRY_REFUSE(&t->at, "regions", "a fleet of provider agones is in one region");
    for (int i = 0; regions != 0 && i < REGION_CODES; i++) {
        if (regions >> i & 1)
            return (int8_t)i;
    }
    while (code < REGION_CODES - 1 && !core->regions[code].name[0])
        code++;
    return (int8_t)code;
}

/* A text of Kubernetes: left as it is when nothing is said. */
static void take_cluster_text(struct taking *t, const char *key, const char *text, char *ret,
                              size_t cap)
{
    if (text)
        (void)entry_name(&t->at, key, text, ret, cap);
}

static void take_agones_fleet(struct taking *t)
{
    static const struct doc_agones nothing;
    struct config *config = t->at.r->config;
    struct fleet_config *f = &t->fleet;
    const struct doc_agones *d = t->d->agones ? t->d->agones : &nothing;
    if (config->n_agones == AGONES_FLEETS_MAX) {
        ENTRY_REFUSE(&t->at, "", "there are more than %d fleets of provider agones",
                     AGONES_FLEETS_MAX);
        return;
    }
    take_rules(t, "agones");
    f->taken_at_once = true;
    (void)str_copy(f->versions[0].name, sizeof(f->versions[0].name), str_of(only_version));
    f->n_versions = 1;
    struct agones_fleet *a = &config->agones[config->n_agones++];
    *a = (struct agones_fleet){.region = only_region(t), .namespace = "default"};
    f->regions = UINT64_C(1) << a->region;
    (void)str_copy(a->fleet, sizeof(a->fleet), str_of(f->name));
    (void)str_copy(a->name, sizeof(a->name), str_of(f->name));
    take_cluster_text(t, "agones, fleet", d->fleet, a->name, sizeof(a->name));
    take_cluster_text(t, "agones, namespace", d->namespace, a->namespace, sizeof(a->namespace));
    take_cluster_text(t, "agones, port", d->port, a->port, sizeof(a->port));
    take_cluster_text(t, "agones, list", d->list, a->list, sizeof(a->list));
    take_cluster_text(t, "agones, counter", d->counter, a->counter, sizeof(a->counter));
}

/* A key that the provider does not know would be a promise nobody keeps. */
static void refuse_key_of(struct taking *t, const char *key, const char *provider)
{
    ENTRY_REFUSE(&t->at, key, "is for fleets of provider %s only", provider);
}

static void refuse_foreign(struct taking *t, const char *provider)
{
    const struct doc_fleet *d = t->d;
    const struct {
        const char *key, *who, *text;
    } keys[] = {
#define KEY(key, who, ...) {#key, who, d->key},
        CONFIG_FLEET(KEY)
#undef KEY
    };
    const struct {
        const char *key, *who;
        const void *value;
    } lists[] = {
        {"regions", "agent or agones", d->regions},
        {"arguments", "agent", d->arguments},
        {"env", "agent", d->env},
        {"access_token", "agent", d->access_token},
        {"discover", "agent", d->discover},
        {"versions", "agent", d->versions},
        {"agones", "agones", d->agones},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].text && strcmp(keys[i].who, "all") != 0 && !strstr(keys[i].who, provider))
            refuse_key_of(t, keys[i].key, keys[i].who);
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (lists[i].value && !strstr(lists[i].who, provider))
            refuse_key_of(t, lists[i].key, lists[i].who);
    }
}

static enum fleet_provider take_provider(struct taking *t, const char *text)
{
    if (strcmp(text, "agent") == 0)
        return PROVIDER_AGENT;
    if (strcmp(text, "agones") == 0)
        return PROVIDER_AGONES;
    if (strcmp(text, "chat") != 0)
        ENTRY_REFUSE(&t->at, "provider", "must be chat, agent or agones, not '%.40s'", text);
    return PROVIDER_CHAT;
}

static void take_fleet(struct taking *t)
{
    const struct doc_fleet *d = t->d;
    struct core_config *core = &t->at.r->config->core;
    struct fleet_config *f = &t->fleet;
    static const char *const words[] = {"chat", "agent", "agones"};
    f->provider = take_provider(t, d->provider ? d->provider : "chat");
    f->ready_lobbies = true;
    if (d->ready_required)
        f->ready_required = entry_bool(&t->at, "ready_required", d->ready_required);
    if (d->ready_lobbies)
        f->ready_lobbies = entry_bool(&t->at, "ready_lobbies", d->ready_lobbies);
    if (!entry_name(&t->at, "name", d->name, f->name, sizeof(f->name)))
        return;
    if (config_find_fleet(core, f->name)) {
        ENTRY_REFUSE(&t->at, "name", "%s is there twice", f->name);
        return;
    }
    refuse_foreign(t, words[f->provider]);
    if (f->provider == PROVIDER_AGENT)
        take_agent_fleet(t);
    else if (f->provider == PROVIDER_AGONES)
        take_agones_fleet(t);
    core->fleets[core->n_fleets++] = *f;
}

void config_take_fleets(struct reading *r, const struct doc *doc)
{
    struct core_config *core = &r->config->core;
    if (!doc->fleets)
        return;
    core->n_fleets = 0;
    memset(core->fleets, 0, sizeof(core->fleets));
    r->config->n_agones = 0;
    config_done(r->config);
    for (uint32_t i = 0; i < doc->fleets_count; i++) {
        struct taking t = {.at = {.r = r, .list = "fleets", .number = i + 1}, .d = &doc->fleets[i]};
        take_fleet(&t);
    }
}

void config_check_fleets(struct reading *r, const struct doc *doc)
{
    const struct core_config *core = &r->config->core;
    for (uint32_t i = 0; i < doc->fleets_count; i++) {
        const struct fleet_config *f = config_find_fleet(core, doc->fleets[i].name);
        struct entry e = {.r = r, .list = "fleets", .number = i + 1};
        if (f && f->spawn_ms > core->timeouts.place_ms)
            ENTRY_REFUSE(&e, doc->fleets[i].spawn_timeout_s ? "spawn_timeout_s" : "",
                         "servers get %" PRId64 " ms to start, but players wait only %" PRId64
                         " ms (timeouts, place_ms)",
                         f->spawn_ms, core->timeouts.place_ms);
    }
}
