#include "cli/config_take.h"

#include "cli/advertise.h"
#include "cli/config_doc.h"
#include "cli/config_entry.h"
#include "cli/config_fleet.h"
#include "cli/setting.h"
#include "cli/yaml_words.h"
#include "store/cell.h"
#include "store/libpq.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_MAX = 512 };

void reading_refuse(struct reading *r, const char *place, const char *written, const char *format,
                    ...)
{
    if (r->mistakes->n++ >= CONFIG_MISTAKES_MAX)
        return;
    char *sentence = r->mistakes->sentence[r->mistakes->n - 1];
    size_t line = yaml_line(r->text, r->len, written);
    int n = snprintf(sentence, CONFIG_WHY_MAX, "%.200s: line %zu: %s%s", r->name, line, place,
                     place[0] ? ": " : "");
    if (n < 0 || n >= CONFIG_WHY_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sentence + n, CONFIG_WHY_MAX - (size_t)n, format, args);
    va_end(args);
}

static void refuse(struct reading *r, const char *place, const char *what)
{
    reading_refuse(r, place, place, "%s", what);
}

/* Degrees: an optional "-", digits, an optional fraction. */
static bool take_degrees(struct entry *e, const char *key, const char *text, int max, double *ret)
{
    size_t digits = strspn(text + (text[0] == '-'), "0123456789");
    const char *rest = text + (text[0] == '-') + digits;
    bool shaped = digits > 0 && digits <= 3;
    if (shaped && *rest == '.')
        shaped = rest[1] != '\0' && strspn(rest + 1, "0123456789") == strlen(rest + 1) &&
                 strlen(rest + 1) <= 15;
    else
        shaped = shaped && *rest == '\0';
    double v = shaped ? strtod(text, NULL) : 0;
    if (!shaped || v < -max || v > max) {
        ENTRY_REFUSE(e, key, "must be degrees from -%d to %d, not '%.40s'", max, max, text);
        return false;
    }
    *ret = v == 0 ? 0 : v; /* no -0 */
    return true;
}

static void take_location(struct entry *e, const struct doc_region *d, struct region_config *ret)
{
    if (!d->latitude && !d->longitude)
        return;
    if (!d->latitude || !d->longitude) {
        ENTRY_REFUSE(e, "", "%s is missing; a location has both latitude and longitude",
                     d->latitude ? "longitude" : "latitude");
        return;
    }
    bool good = take_degrees(e, "latitude", d->latitude, 90, &ret->latitude);
    ret->located = take_degrees(e, "longitude", d->longitude, 180, &ret->longitude) && good;
}

static void take_region(struct entry *e, const struct doc_region *d)
{
    struct core_config *core = &e->r->config->core;
    struct region_config region = {0};
    int64_t code = 0;
    take_location(e, d, &region);
    bool named = entry_name(e, "name", d->name, region.name, sizeof(region.name));
    if (!setting_read_number(d->code, 0, REGION_CODES - 1, &code) || code == REGION_AUTO) {
        ENTRY_REFUSE(
            e, "code",
            "must be a whole number from 0 to %d without %d (which means any), not '%.40s'",
            REGION_CODES - 1, REGION_AUTO, d->code);
        return;
    }
    if (core->regions[code].name[0]) {
        ENTRY_REFUSE(e, "code", "%" PRId64 " is already %s", code, core->regions[code].name);
        return;
    }
    if (named && config_find_region(core, region.name) >= 0)
        ENTRY_REFUSE(e, "name", "%s is there twice", region.name);
    core->regions[code] = region;
}

static void take_regions(struct reading *r, const struct doc *d)
{
    if (!d->regions)
        return;
    memset(r->config->core.regions, 0, sizeof(r->config->core.regions));
    for (uint32_t i = 0; i < d->regions_count; i++) {
        struct entry e = {.r = r, .list = "regions", .number = i + 1};
        take_region(&e, &d->regions[i]);
    }
}

/* Absent means all there are. An empty list, which the schema refuses, would seem to mean none. */
static uint64_t take_token_regions(struct entry *e, const struct doc_token *d)
{
    const struct core_config *core = &e->r->config->core;
    uint64_t regions = entry_regions(e, d->regions, d->regions_count);
    for (int code = 0; d->regions_count == 0 && code < REGION_CODES; code++) {
        if (core->regions[code].name[0])
            regions |= UINT64_C(1) << code;
    }
    return regions;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_hash(const char *text, uint8_t ret[CORE_HASH_SIZE])
{
    if (strlen(text) != 2 * (size_t)CORE_HASH_SIZE)
        return false;
    for (size_t i = 0; i < CORE_HASH_SIZE; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* A token or its hash, never both. What was given is not said again: it may be a secret that stands
 * in the wrong place. */
static bool take_credential(struct entry *e, const struct doc_token *d, uint8_t ret[CORE_HASH_SIZE])
{
    if (!d->token == !d->hash) {
        ENTRY_REFUSE(e, "",
                     d->token ? "token and hash are both there; one of them is enough"
                              : "token or hash is missing");
        return false;
    }
    if (d->hash && !read_hash(d->hash, ret)) {
        ENTRY_REFUSE(e, "hash", "must be %d digits of 0-9 a-f (BLAKE2b of the token)",
                     2 * CORE_HASH_SIZE);
        return false;
    }
    size_t len = d->token ? strlen(d->token) : 0;
    if (d->token && (len == 0 || len > TOKEN_MAX)) {
        ENTRY_REFUSE(e, "token", "must be 1 to %d bytes", TOKEN_MAX);
        return false;
    }
    if (d->token)
        core_hash_token(str_of(d->token), ret);
    return true;
}

static void take_token_fleet(struct entry *e, const char *said, char *ret, size_t cap)
{
    const char *name = said ? said : "default";
    const struct fleet_config *fleet = config_find_fleet(&e->r->config->core, name);
    if (fleet && fleet->provider != PROVIDER_CHAT)
        ENTRY_REFUSE(e, said ? "fleet" : "",
                     "the servers of fleet %s are started by %s and need no such token", name,
                     fleet->provider == PROVIDER_AGENT ? "agents" : "Kubernetes");
    else if (fleet)
        (void)str_copy(ret, cap, str_of(name));
    else if (said)
        ENTRY_REFUSE(e, "fleet", "there is no fleet '%.64s'", said);
    else
        ENTRY_REFUSE(e, "", "fleet is missing, and there is no fleet 'default'");
}

static void take_token(struct entry *e, const struct doc_token *d)
{
    struct core_config *core = &e->r->config->core;
    struct enrolment new = {0};
    core->n_enrolments = e->number;
    if (strcmp(d->role, "server") == 0)
        new.role = ROLE_SERVER;
    else if (strcmp(d->role, "chat") == 0)
        new.role = ROLE_CHAT;
    else
        ENTRY_REFUSE(e, "role", "must be server or chat, not '%.40s'", d->role);
    take_token_fleet(e, d->fleet, new.fleet, sizeof(new.fleet));
    new.regions = take_token_regions(e, d);
    if (!take_credential(e, d, new.hash))
        return;
    for (size_t i = 0; i + 1 < e->number; i++) {
        if (memcmp(core->enrolments[i].hash, new.hash, CORE_HASH_SIZE) == 0) {
            ENTRY_REFUSE(e, "", "the same token as entry %zu", i + 1);
            return;
        }
    }
    core->enrolments[e->number - 1] = new;
}

static void take_tokens(struct reading *r, const struct doc *d)
{
    if (!d->tokens)
        return;
    r->config->core.n_enrolments = 0;
    memset(r->config->core.enrolments, 0, sizeof(r->config->core.enrolments));
    for (uint32_t i = 0; i < d->tokens_count; i++) {
        struct entry e = {.r = r, .list = "tokens", .number = i + 1};
        take_token(&e, &d->tokens[i]);
    }
}

static void take_key(struct entry *e, const struct doc_key *d)
{
    struct config *config = e->r->config;
    struct config_key key = {0};
    if (strcmp(d->algorithm, "RS256") == 0 || strcmp(d->algorithm, "ES256") == 0)
        (void)str_copy(key.algorithm, sizeof(key.algorithm), str_of(d->algorithm));
    else
        ENTRY_REFUSE(e, "algorithm", "must be RS256 or ES256, not '%.40s'", d->algorithm);
    if (d->file[0] == '\0' || !setting_resolve(d->file, e->r->folder, key.file))
        ENTRY_REFUSE(e, "file", "must be a path of 1 to %d bytes", CONFIG_PATH_MAX - 1);
    if (!entry_name(e, "name", d->name, key.name, sizeof(key.name)))
        return;
    for (size_t i = 0; i < config->n_keys; i++) {
        if (strcmp(config->keys[i].name, key.name) == 0) {
            ENTRY_REFUSE(e, "name", "%s is there twice", key.name);
            return;
        }
    }
    key.line = yaml_line(e->r->text, e->r->len, entry_at(e, "file"));
    config->keys[config->n_keys++] = key;
}

static void take_keys(struct reading *r, const struct doc_access *d)
{
    if (!d->keys)
        return;
    r->config->n_keys = 0;
    for (uint32_t i = 0; i < d->keys_count; i++) {
        struct entry e = {.r = r, .list = "access, keys", .number = i + 1};
        take_key(&e, &d->keys[i]);
    }
}

static void take_proxies(struct reading *r, const struct doc_http *d)
{
    struct config *config = r->config;
    if (!d->trusted_proxies)
        return;
    config->n_proxies = 0;
    memset(config->proxies, 0, sizeof(config->proxies));
    for (uint32_t i = 0; i < d->trusted_proxies_count; i++) {
        struct entry e = {.r = r, .list = "http, trusted_proxies", .number = i + 1};
        if (address_range_parse(d->trusted_proxies[i], &config->proxies[config->n_proxies]))
            config->n_proxies++;
        else
            ENTRY_REFUSE(&e, "", "must be an address or a network, as 10.0.0.0/8, not '%.60s'",
                         d->trusted_proxies[i]);
    }
}

/* Credentials have keys of their own: what stands in a URL is shown in logs. */
static bool is_broker(const char *url)
{
    const char *host = strstr(url, "://");
    bool known = strncmp(url, "nats://", 7) == 0 || strncmp(url, "tls://", 6) == 0;
    return known && host[3] && strlen(url) < CONFIG_PATH_MAX && !strpbrk(url, "@ ,\"\\");
}

static void take_brokers(struct reading *r, const struct doc_nats *d)
{
    struct config_nats *nats = &r->config->nats;
    if (!d->urls)
        return;
    nats->n_urls = 0;
    for (uint32_t i = 0; i < d->urls_count; i++) {
        struct entry e = {.r = r, .list = "nats, urls", .number = i + 1};
        if (is_broker(d->urls[i]))
            (void)str_copy(nats->urls[nats->n_urls++], CONFIG_PATH_MAX, str_of(d->urls[i]));
        else
            ENTRY_REFUSE(&e, "",
                         "must be a URL as nats://host:4222 or tls://host:4222, of at most %d "
                         "bytes and without a user",
                         CONFIG_PATH_MAX - 1);
    }
}

/* Results that go nowhere would be waited for. */
/* What is owed to others is dropped in time. */
static void take_buses(struct config *config)
{
    int nats = config->nats.n_urls > 0 ? BUS_NATS : 0;
    int pubsub = config->pubsub.project[0] != '\0' ? BUS_PUBSUB : 0;
    config->core.buses = (int8_t)(nats | pubsub);
}

static void check_pubsub(struct reading *r)
{
    const struct config_pubsub *p = &r->config->pubsub;
    if (p->project[0] && !p->topic[0])
        refuse(r, "pubsub", "topic is missing; results are published there");
    else if (p->project[0] && !p->subscription[0] && !p->push_audience[0])
        refuse(r, "pubsub", "subscription is missing, and push_audience: no request could come");
    else if (!p->project[0] && (p->topic[0] || p->subscription[0]))
        refuse(r, "pubsub", "project is missing");
    if (p->push_audience[0] && !p->push_account[0])
        refuse(r, "pubsub", "push_account is missing; anybody with a token of Google's could push");
}

static void take_rates(struct reading *r, const char *list, const struct doc_rate *d, uint32_t n,
                       struct rate_limit ret[RATE_LIMITS_MAX])
{
    if (!d)
        return;
    memset(ret, 0, RATE_LIMITS_MAX * sizeof(*ret));
    for (uint32_t i = 0; i < n; i++) {
        struct entry e = {.r = r, .list = list, .number = i + 1};
        int64_t count = 0, seconds = 0;
        (void)entry_number(&e, "count", d[i].count, 1, 1000 * 1000, &count);
        (void)entry_number(&e, "seconds", d[i].seconds, 1, 24 * 3600, &seconds);
        ret[i] = (struct rate_limit){(int32_t)count, seconds * 1000};
    }
}

static void take_default_region(struct reading *r, const char *name)
{
    int code = name ? config_find_region(&r->config->core, name) : -1;
    if (name && code < 0)
        reading_refuse(r, "default_region", "default_region", "there is no region '%.40s'", name);
    r->config->core.default_region = (int8_t)code;
}

/* "tls.http" and "key" → "tls, http, key" */
static void place_of(const struct setting *s, char ret[YAML_PLACE_MAX])
{
    const char *dot = strchr(s->section, '.');
    int n = dot ? (int)(dot - s->section) : (int)strlen(s->section);
    snprintf(ret, YAML_PLACE_MAX, "%.*s%s%s, %s", n, s->section, dot ? ", " : "",
             dot ? dot + 1 : "", s->key);
}

static void take_settings(struct reading *r, const struct doc *d)
{
    for (size_t i = 0; i < n_settings; i++) {
        const char *text = setting_said(&settings[i], d);
        char why[SETTING_WHY_MAX], place[YAML_PLACE_MAX];
        if (!text || setting_take(&settings[i], text, r->folder, r->config, why))
            continue;
        place_of(&settings[i], place);
        refuse(r, place, why);
    }
}

static void check_cluster(struct reading *r)
{
    const struct config_cluster *c = &r->config->cluster;
    const struct {
        const char *place, *text;
    } addresses[] = {{"cluster, advertise_server", c->server},
                     {"cluster, advertise_manager", c->manager},
                     {"cluster, advertise_client", c->client}};
    struct why why;
    if (c->store[0] && pg_check_url(c->store, &why) != 0)
        refuse(r, "cluster, store", why.text);
    if (!cell_name_is_good(c->cell))
        reading_refuse(r, "cluster, cell", "cluster, cell",
                       "must be 1 to 32 characters of a-z, 0-9 and _, not '%.40s'", c->cell);
    if (c->node[0] && !advertise_is_name(c->node))
        reading_refuse(r, "cluster, node", "cluster, node",
                       "must be 1 to 63 of A-Z a-z 0-9 . _ -, not '%.70s'", c->node);
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        if (addresses[i].text[0] && !advertise_is_address(addresses[i].text))
            reading_refuse(r, addresses[i].place, addresses[i].place,
                           "must be an address with its port, as 10.0.0.1:11032, not '%.40s'",
                           addresses[i].text);
    }
}

static void check_tls(struct reading *r, const char *place, const struct config_tls *tls)
{
    bool certificate = tls->certificate[0] != '\0';
    if (certificate && !tls->key[0])
        refuse(r, place, "key is missing; a certificate needs its key");
    else if (!certificate && (tls->key[0] || tls->client_ca[0]))
        refuse(r, place, "certificate is missing; without it the port would be plain");
}

/* IPv4 as its mapped IPv6 address. */
static struct in6_addr read_address(const char *ip)
{
    struct in6_addr ret = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (inet_pton(AF_INET, ip, &ret.s6_addr[12]) != 1)
        (void)inet_pton(AF_INET6, ip, &ret);
    return ret;
}

/* Every address of one kind; IPv6's takes IPv4 too, as the ports are opened. */
static bool is_every(const struct in6_addr *all, const struct in6_addr *other)
{
    const struct in6_addr v4 = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    return IN6_IS_ADDR_UNSPECIFIED(all) ||
           (IN6_ARE_ADDR_EQUAL(all, &v4) && IN6_IS_ADDR_V4MAPPED(other));
}

static bool same_address(const char *ip, const char *other)
{
    struct in6_addr a = read_address(ip);
    struct in6_addr b = read_address(other);
    return IN6_ARE_ADDR_EQUAL(&a, &b) || is_every(&a, &b) || is_every(&b, &a);
}

/* Two ports of one address; said at the one that the file names. */
struct named_port {
    const char *place;
    const char *said; /* by the file; NULL = it is the default */
    uint16_t number;  /* 0 = a free one */
};

static void check_pair(struct reading *r, struct named_port a, struct named_port b)
{
    if (a.number != b.number || a.number == 0)
        return;
    struct named_port at = b.said ? b : a;
    struct named_port as = b.said ? a : b;
    reading_refuse(r, at.place, at.place, "%d is taken by %s already%s", at.number, as.place,
                   as.said ? "" : ", whose default it is");
}

static void check_ports(struct reading *r, const struct doc *doc)
{
    const struct config *c = r->config;
    struct named_port server = {"listen, server_port", doc->listen.server_port, c->server_port};
    struct named_port manager = {"listen, manager_port", doc->listen.manager_port, c->manager_port};
    struct named_port client = {"listen, client_port", doc->listen.client_port, c->client_port};
    struct named_port http = {"http, port", doc->http.port, c->http_port};
    check_pair(r, server, manager);
    check_pair(r, server, client);
    check_pair(r, manager, client);
    if (!same_address(c->bind_ip, config_http_bind(c)))
        return;
    check_pair(r, server, http);
    check_pair(r, manager, http);
    check_pair(r, client, http);
}

/* The files are looked at when this text is gone; what is wrong with them belongs to these lines.
 */
static void note_lines(struct reading *r, const char *port, struct config_tls *tls)
{
    const struct {
        const char *key, *path;
        size_t *line;
    } files[] = {
        {"certificate", tls->certificate, &tls->certificate_line},
        {"key", tls->key, &tls->key_line},
        {"client_ca", tls->client_ca, &tls->client_ca_line},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char place[YAML_PLACE_MAX];
        snprintf(place, sizeof(place), "tls, %s, %s", port, files[i].key);
        if (files[i].path[0])
            *files[i].line = yaml_line(r->text, r->len, place);
    }
}

static void take_tls(struct reading *r, const char *port, struct config_tls *tls)
{
    char place[YAML_PLACE_MAX];
    snprintf(place, sizeof(place), "tls, %s", port);
    check_tls(r, place, tls);
    note_lines(r, port, tls);
}

/* Regions and fleets first: tokens name them. */
void config_take(struct reading *r, const struct doc *doc)
{
    struct config *config = r->config;
    struct core_config *core = &config->core;
    (void)snprintf(config->name, sizeof(config->name), "%.200s", r->name);
    take_regions(r, doc);
    take_default_region(r, doc->default_region);
    config_take_fleets(r, doc);
    take_tokens(r, doc);
    take_keys(r, &doc->access);
    take_proxies(r, &doc->http);
    take_brokers(r, &doc->nats);
    take_rates(r, "rates, create", doc->rates.create, doc->rates.create_count, core->create_rates);
    take_rates(r, "rates, join", doc->rates.join, doc->rates.join_count, core->join_rates);
    take_settings(r, doc);
    config_check_fleets(r, doc);
    if (doc->geo.file)
        config->geo_line = yaml_line(r->text, r->len, "geo, file");
    check_ports(r, doc);
    check_pubsub(r);
    check_cluster(r);
    take_buses(config);
    take_tls(r, "http", &config->tls_http);
    take_tls(r, "server", &config->tls_server);
    take_tls(r, "manager", &config->tls_manager);
    take_tls(r, "client", &config->tls_client);
    if (core->timeouts.backoff_first_ms > core->timeouts.backoff_max_ms)
        refuse(r, "timeouts", "backoff_first_ms is above backoff_max_ms");
    if (core->timeouts.host_backoff_ms > core->timeouts.host_backoff_max_ms)
        refuse(r, "timeouts", "host_backoff_ms is above host_backoff_max_ms");
    if (core->timeouts.host_ms > core->timeouts.host_lost_ms)
        refuse(r, "timeouts", "host_ms is above host_lost_ms");
}
