#include "cli/config_show.h"

#include "cli/config_print.h"
#include "cli/config_rows.h"
#include "cli/config_show_fleet.h"
#include "cli/setting.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that give the same number again; a file may have 15 after the point. */
static void print_degrees(struct shown *s, const char *key, double degrees)
{
    char text[40];
    for (int precision = 0; precision <= 15; precision++) {
        snprintf(text, sizeof(text), "%.*f", precision, degrees);
        if (strtod(text, NULL) == degrees)
            break;
    }
    shown_print(s, ", %s: %s", key, text);
}

static void show_regions(struct shown *s, const struct core_config *core)
{
    shown_print(s, "regions:");
    shown_end(s, "", "codes 0 to 63 without 17, which means any; degrees");
    for (int code = 0; code < REGION_CODES; code++) {
        const struct region_config *region = &core->regions[code];
        if (!region->name[0])
            continue;
        shown_print(s, "  - {code: %d, name: ", code);
        shown_text(s, region->name);
        if (region->located) {
            print_degrees(s, "latitude", region->latitude);
            print_degrees(s, "longitude", region->longitude);
        }
        shown_print(s, "}");
        shown_end(s, "", "");
    }
}

static void show_fleets(struct shown *s, const struct config *config)
{
    shown_print(s, "fleets:");
    shown_end(s, "",
              "provider chat: servers come by themselves; agent: agents start one for each room; "
              "agones: Kubernetes does");
    for (size_t i = 0; i < config->core.n_fleets; i++)
        config_show_fleet(s, config, i);
}

static void show_token(struct shown *s, const struct core_config *core, const struct enrolment *e)
{
    char hash[2 * CORE_HASH_SIZE + 1];
    const char *between = "";
    sodium_bin2hex(hash, sizeof(hash), e->hash, sizeof(e->hash));
    shown_print(s, "  - {hash: \"%s\", role: %s, fleet: ", hash,
                e->role == ROLE_SERVER ? "server" : "chat");
    shown_text(s, e->fleet);
    shown_print(s, ", regions: [");
    for (int code = 0; code < REGION_CODES; code++) {
        if (!(e->regions >> code & 1))
            continue;
        shown_print(s, "%s", between);
        shown_text(s, core->regions[code].name);
        between = ", ";
    }
    shown_print(s, "]}");
    shown_end(s, "", "");
}

static void show_tokens(struct shown *s, const struct core_config *core)
{
    shown_print(s, core->n_enrolments > 0 ? "tokens:" : "tokens: []");
    shown_end(s, "", "hash: BLAKE2b-256 of the token");
    for (size_t i = 0; i < core->n_enrolments; i++)
        show_token(s, core, &core->enrolments[i]);
}

static void show_keys(struct shown *s, const struct config *config)
{
    shown_print(s, config->n_keys > 0 ? "  keys:" : "  keys: []");
    shown_end(s, "", "public keys (PEM files) of those who may sign access tokens");
    for (size_t i = 0; i < config->n_keys; i++) {
        shown_print(s, "    - {name: ");
        shown_text(s, config->keys[i].name);
        shown_print(s, ", algorithm: %s, file: ", config->keys[i].algorithm);
        shown_text(s, config->keys[i].file);
        shown_print(s, "}");
        shown_end(s, "", "");
    }
}

static void show_proxies(struct shown *s, const struct config *config)
{
    shown_print(s, "  trusted_proxies: [");
    for (size_t i = 0; i < config->n_proxies; i++) {
        char text[ADDRESS_MAX];
        shown_print(s, "%s\"%s\"", i > 0 ? ", " : "",
                    address_range_print(&config->proxies[i], text));
    }
    shown_print(s, "]");
    shown_end(s, "", "networks whose X-Forwarded-For and X-Real-IP are believed");
}

static void show_brokers(struct shown *s, const struct config *config)
{
    shown_print(s, "  urls: [");
    for (size_t i = 0; i < config->nats.n_urls; i++) {
        shown_print(s, "%s", i > 0 ? ", " : "");
        shown_text(s, config->nats.urls[i]);
    }
    shown_print(s, "]");
    shown_end(s, "", "NATS servers of one cluster, with JetStream; none = no NATS");
}

static void show_rates(struct shown *s, const char *key, const struct rate_limit *rates,
                       const char *meaning)
{
    shown_print(s, "  %s: [", key);
    for (size_t i = 0; i < RATE_LIMITS_MAX && rates[i].count > 0; i++)
        shown_print(s, "%s{count: %d, seconds: %" PRId64 "}", i > 0 ? ", " : "", rates[i].count,
                    rates[i].ms / 1000);
    shown_print(s, "]");
    shown_end(s, "", meaning);
}

static void show_players(struct shown *s, const struct config *config)
{
    const struct core_config *core = &config->core;
    shown_print(s, "default_region: ");
    shown_text(s, config_default_region(config));
    shown_end(s, "", "for players of whom nothing is known");
    shown_print(s, "rates:");
    shown_end(s, "", "per account");
    show_rates(s, "create", core->create_rates, "rooms that an account may create");
    show_rates(s, "join", core->join_rates, "seats that an account may ask for");
}

/* "tls.http" is "http" below "tls". Returns how deep its keys stand. */
static int show_section(struct shown *s, const char *section, const char *before)
{
    const char *dot = strchr(section, '.');
    size_t outer = dot ? (size_t)(dot - section) : strlen(section);
    if (strncmp(section, before, outer) != 0) {
        shown_print(s, "%.*s:", (int)outer, section);
        shown_end(s, "", "");
    }
    if (dot) {
        shown_print(s, "  %s:", dot + 1);
        shown_end(s, "", "");
    }
    return dot ? 4 : 2;
}

static void show_settings(struct shown *s, const struct config *config)
{
    const char *section = "";
    int indent = 0;
    for (size_t i = 0; i < n_settings; i++) {
        const struct setting *row = &settings[i];
        char value[SETTING_VALUE_MAX];
        if (strcmp(section, row->section) != 0)
            indent = show_section(s, row->section, section);
        section = row->section;
        shown_print(s, "%*s%s: ", indent, "", row->key);
        setting_print(row, config, value);
        if (row->kind == SETTING_NUMBER || row->kind == SETTING_WORD)
            shown_print(s, "%s", value);
        else
            shown_text(s, value);
        shown_end(s, row->unit, row->meaning);
        bool last = i + 1 == n_settings || strcmp(row[1].section, section) != 0;
        if (last && strcmp(section, "access") == 0)
            show_keys(s, config);
        if (last && strcmp(section, "http") == 0)
            show_proxies(s, config);
        if (last && strcmp(section, "nats") == 0)
            show_brokers(s, config);
    }
}

void config_show(const struct config *config, bool comments, struct buf *out)
{
    struct shown s = {.out = out, .comments = comments, .line_start = out->len};
    show_regions(&s, &config->core);
    show_fleets(&s, config);
    show_tokens(&s, &config->core);
    show_players(&s, config);
    show_settings(&s, config);
}

/* Nodes of a cell are to be configured alike, but for what each of them is called and where it is.
 * None of that can be changed by a reload. */
static void forget_node(struct config *config)
{
    struct config_cluster *c = &config->cluster;
    config->bind_ip[0] = config->http_bind_ip[0] = '\0';
    c->node[0] = c->http[0] = c->server[0] = c->manager[0] = c->client[0] = '\0';
}

void config_digest(const struct config *config, char ret[CONFIG_DIGEST_MAX])
{
    struct buf text = {0};
    uint8_t hash[crypto_generichash_BYTES];
    struct config *alike = xcalloc(1, sizeof(*alike));
    *alike = *config;
    forget_node(alike);
    config_show(alike, false, &text);
    free(alike);
    crypto_generichash(hash, sizeof(hash), text.data, text.len, NULL, 0);
    buf_done(&text);
    sodium_bin2hex(ret, CONFIG_DIGEST_MAX, hash, (CONFIG_DIGEST_MAX - 1) / 2);
}

static void put_key(void *user, const struct config_row *key)
{
    shown_print(user, "| `%s` | %s | %s | %s | %s |\n", key->name, key->fallback, key->values,
                key->reloads ? "yes" : "no", key->meaning);
}

static void put_fleet_key(void *user, const struct config_row *key)
{
    shown_print(user, "| `%s` | %s | %s | %s |\n", key->name, key->provider, key->values,
                key->meaning);
}

void config_show_keys(struct buf *out)
{
    struct shown s = {.out = out};
    shown_print(&s, "| key | default | values | reload | meaning |\n|---|---|---|---|---|\n");
    config_each_row(put_key, &s);
    shown_print(&s, "\n| key of a fleet | provider | values; default | meaning |\n"
                    "|---|---|---|---|\n");
    config_each_fleet_row(put_fleet_key, &s);
}
