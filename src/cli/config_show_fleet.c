#include "cli/config_show_fleet.h"

#include "cli/config_keys.h"

#include <inttypes.h>
#include <string.h>

static const char *yes(bool v)
{
    return v ? "true" : "false";
}

static void show_key(struct shown *s, const char *key, const char *text)
{
    shown_print(s, "    %s: ", key);
    shown_text(s, text);
    shown_end(s, "", "");
}

static void show_word(struct shown *s, const char *key, const char *word)
{
    shown_print(s, "    %s: %s", key, word);
    shown_end(s, "", "");
}

static void show_number(struct shown *s, const char *key, int64_t v)
{
    shown_print(s, "    %s: %" PRId64, key, v);
    shown_end(s, "", "");
}

static void show_regions(struct shown *s, const struct core_config *core, uint64_t regions)
{
    const char *between = "";
    if (regions == 0)
        return;
    shown_print(s, "    regions: [");
    for (int code = 0; code < REGION_CODES; code++) {
        if (!(regions >> code & 1))
            continue;
        shown_print(s, "%s", between);
        shown_text(s, core->regions[code].name);
        between = ", ";
    }
    shown_print(s, "]");
    shown_end(s, "", "");
}

static void show_pairs(struct shown *s, const char *list, const char *key, const char *value,
                       const struct launch_pair *pairs, size_t n)
{
    shown_print(s, n > 0 ? "    %s:" : "    %s: []", list);
    shown_end(s, "", "");
    for (size_t i = 0; i < n; i++) {
        shown_print(s, "      - {%s: ", key);
        shown_text(s, pairs[i].key);
        shown_print(s, ", %s: ", value);
        shown_text(s, pairs[i].value);
        shown_print(s, "}");
        shown_end(s, "", "");
    }
}

static void show_arguments(struct shown *s, const struct launch *l)
{
    shown_print(s, "    arguments: [");
    for (size_t i = 0; i < l->n_arguments; i++) {
        shown_print(s, "%s", i > 0 ? ", " : "");
        shown_text(s, l->arguments[i]);
    }
    shown_print(s, "]");
    shown_end(s, "", "");
}

static void show_versions(struct shown *s, const struct fleet_config *f, const struct launch *l)
{
    shown_print(s, f->n_versions > 0 ? "    versions:" : "    versions: []");
    shown_end(s, "", "");
    for (size_t i = 0; i < f->n_versions; i++) {
        const char *settings = l->versions[i].server_settings;
        shown_print(s, "      - {name: ");
        shown_text(s, f->versions[i].name);
        shown_print(s, ", enabled: %s", yes(!f->versions[i].disabled));
        if (settings) {
            shown_print(s, ", server_settings: ");
            shown_text(s, settings);
        }
        shown_print(s, "}");
        shown_end(s, "", "");
    }
}

static void show_login(struct shown *s, const struct launch *l)
{
    if (!l->token_account[0])
        return;
    shown_print(s, "    access_token: {account: ");
    shown_text(s, l->token_account);
    shown_print(s, ", scopes: ");
    shown_text(s, l->token_scopes);
    shown_print(s, "}");
    shown_end(s, "", "");
}

static void show_launch(struct shown *s, const struct fleet_config *f, const struct launch *l)
{
    show_key(s, "binary", l->binary);
    show_word(s, "endpoint", l->endpoint_uri ? "uri" : "path");
    show_number(s, "ports", l->ports);
    show_arguments(s, l);
    show_pairs(s, "env", "key", "value", l->env, l->n_env);
    show_key(s, "server_settings", l->server_settings ? l->server_settings : "{}");
    show_login(s, l);
    show_pairs(s, "discover", "name", "url", l->discover, l->n_discover);
    show_number(s, "status_period_s", l->status_period_ms / 1000);
    show_versions(s, f, l);
}

static void show_rooms(struct shown *s, const struct core_config *core,
                       const struct fleet_config *f)
{
    if (f->provider == PROVIDER_AGENT) {
        show_key(s, "game", f->game);
        show_key(s, "server", f->server);
    }
    show_regions(s, core, f->regions);
    show_word(s, "other_regions", yes(f->other_regions));
    show_number(s, "max_players", f->max_players);
    show_number(s, "spawn_timeout_s", f->spawn_ms / 1000);
    if (f->provider == PROVIDER_AGENT)
        show_number(s, "reserve_s", f->reserve_ms / 1000);
    show_number(s, "empty_timeout_s", f->empty_ms / 1000);
    show_number(s, "max_session_s", f->session_ms / 1000);
}

static void show_allocating(struct shown *s, const struct fleet_config *f)
{
    show_word(s, "confirm", f->taken_at_once ? "none" : "joined");
    show_word(s, "fill", f->spread ? "spread" : "pack");
    show_word(s, "when_full", f->queue_when_full ? "queue" : "fail");
    show_number(s, "queue_timeout_s", f->queue_ms / 1000);
    show_word(s, "token", f->token == TOKEN_PLAYER_ID ? "player-id" : "opaque");
}

static void show_cluster_text(struct shown *s, const char *key, const char *text)
{
    if (!text[0])
        return;
    shown_print(s, ", %s: ", key);
    shown_text(s, text);
}

static void show_agones(struct shown *s, const struct agones_fleet *a)
{
    shown_print(s, "    agones: {fleet: ");
    shown_text(s, a->name);
    show_cluster_text(s, "namespace", a->namespace);
    show_cluster_text(s, "port", a->port);
    show_cluster_text(s, "list", a->list);
    show_cluster_text(s, "counter", a->counter);
    shown_print(s, "}");
    shown_end(s, "", "");
}

void config_show_fleet(struct shown *s, const struct config *config, size_t i)
{
    const struct fleet_config *f = &config->core.fleets[i];
    if (f->provider == PROVIDER_CHAT) {
        shown_print(s, "  - {name: ");
        shown_text(s, f->name);
        shown_print(s, ", provider: chat, ready_required: %s, ready_lobbies: %s}",
                    yes(f->ready_required), yes(f->ready_lobbies));
        shown_end(s, "", "");
        return;
    }
    shown_print(s, "  - name: ");
    shown_text(s, f->name);
    shown_end(s, "", "");
    show_word(s, "provider", f->provider == PROVIDER_AGENT ? "agent" : "agones");
    show_rooms(s, &config->core, f);
    show_allocating(s, f);
    for (size_t k = 0; k < config->n_agones; k++) {
        if (strcmp(config->agones[k].fleet, f->name) == 0)
            show_agones(s, &config->agones[k]);
    }
    for (size_t k = 0; k < config->n_launches; k++) {
        if (strcmp(config->launches[k].fleet, f->name) == 0)
            show_launch(s, f, &config->launches[k]);
    }
}
