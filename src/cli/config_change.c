#include "cli/config_change.h"

#include "base/log.h"
#include "cli/config_show_fleet.h"
#include "cli/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 80 };

/* "+arena -old ~ranked": what came, went or is different now, as one text of the log. */
struct names {
    char text[LOG_QUOTE_MAX];
    size_t len;
    int n;
};

static void add_name(struct names *names, char sign, const char *name)
{
    int n = snprintf(names->text + names->len, sizeof(names->text) - names->len, "%s%c%s",
                     names->len > 0 ? " " : "", sign, name);
    names->n++;
    if (n > 0 && (size_t)n < sizeof(names->text) - names->len)
        names->len += (size_t)n;
    else
        names->text[names->len] = '\0'; /* it does not fit; n still counts it */
}

static int log_names(const char *what, const struct names *names)
{
    struct log_entry e;
    if (names->n == 0 || !log_enabled(LOG_INFO))
        return names->n;
    log_begin(&e, LOG_INFO, "configuration changed");
    log_word(&e, "what", what);
    log_int(&e, "n", names->n);
    log_text(&e, "names", (struct str){names->text, names->len});
    log_end(&e);
    return names->n;
}

/* A list whose entries have names: how many there are, the name of each (in dst), whether two of
 * the same name say the same. */
struct listed {
    const char *what;
    size_t (*count)(const struct config *c);
    const char *(*name)(const struct config *c, size_t i, char dst[NAME_MAX_LEN]);
    bool (*same)(const struct config *a, size_t i, const struct config *b, size_t k);
};

static size_t find_named(const struct listed *l, const struct config *c, const char *name)
{
    char other[NAME_MAX_LEN];
    for (size_t i = 0; i < l->count(c); i++) {
        if (strcmp(l->name(c, i, other), name) == 0)
            return i;
    }
    return SIZE_MAX;
}

static int compare_list(const struct listed *l, const struct config *old, const struct config *new)
{
    struct names names = {.len = 0};
    char dst[NAME_MAX_LEN];
    for (size_t i = 0; i < l->count(new); i++) {
        const char *name = l->name(new, i, dst);
        size_t was = find_named(l, old, name);
        if (!name[0])
            continue;
        if (was == SIZE_MAX)
            add_name(&names, '+', name);
        else if (!l->same(old, was, new, i))
            add_name(&names, '~', name);
    }
    for (size_t i = 0; i < l->count(old); i++) {
        const char *name = l->name(old, i, dst);
        if (name[0] && find_named(l, new, name) == SIZE_MAX)
            add_name(&names, '-', name);
    }
    return log_names(l->what, &names);
}

static size_t count_regions(const struct config *c)
{
    (void)c;
    return REGION_CODES; /* those without a name are not there */
}

static const char *region_name(const struct config *c, size_t i, char dst[NAME_MAX_LEN])
{
    (void)dst;
    return c->core.regions[i].name;
}

static bool same_region(const struct config *a, size_t i, const struct config *b, size_t k)
{
    const struct region_config *x = &a->core.regions[i];
    const struct region_config *y = &b->core.regions[k];
    return i == k && x->located == y->located && x->latitude == y->latitude &&
           x->longitude == y->longitude;
}

static size_t count_fleets(const struct config *c)
{
    return c->core.n_fleets;
}

static const char *fleet_name(const struct config *c, size_t i, char dst[NAME_MAX_LEN])
{
    (void)dst;
    return c->core.fleets[i].name;
}

static bool same_text(struct buf *a, struct buf *b)
{
    bool same = a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
    buf_done(a);
    buf_done(b);
    return same;
}

/* Everything that is said of a fleet is shown, so it is the same when it is shown alike. */
static bool same_fleet(const struct config *a, size_t i, const struct config *b, size_t k)
{
    struct buf before = {0}, after = {0};
    config_show_fleet(&(struct shown){.out = &before}, a, i);
    config_show_fleet(&(struct shown){.out = &after}, b, k);
    return same_text(&before, &after);
}

static size_t count_tokens(const struct config *c)
{
    return c->core.n_enrolments;
}

/* The beginning of the hash; its file has the rest. */
static const char *token_name(const struct config *c, size_t i, char dst[NAME_MAX_LEN])
{
    const uint8_t *hash = c->core.enrolments[i].hash;
    snprintf(dst, NAME_MAX_LEN, "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
    return dst;
}

static bool same_token(const struct config *a, size_t i, const struct config *b, size_t k)
{
    const struct enrolment *x = &a->core.enrolments[i];
    const struct enrolment *y = &b->core.enrolments[k];
    return memcmp(x->hash, y->hash, sizeof(x->hash)) == 0 && x->role == y->role &&
           x->regions == y->regions && strcmp(x->fleet, y->fleet) == 0;
}

static size_t count_keys(const struct config *c)
{
    return c->n_keys;
}

static const char *key_name(const struct config *c, size_t i, char dst[NAME_MAX_LEN])
{
    (void)dst;
    return c->keys[i].name;
}

static bool same_key(const struct config *a, size_t i, const struct config *b, size_t k)
{
    return strcmp(a->keys[i].algorithm, b->keys[k].algorithm) == 0 &&
           strcmp(a->keys[i].file, b->keys[k].file) == 0;
}

static size_t count_proxies(const struct config *c)
{
    return c->n_proxies;
}

static const char *proxy_name(const struct config *c, size_t i, char dst[NAME_MAX_LEN])
{
    return address_range_print(&c->proxies[i], dst);
}

/* Its name is all there is of it. */
static bool same_proxy(const struct config *a, size_t i, const struct config *b, size_t k)
{
    (void)a, (void)i, (void)b, (void)k;
    return true;
}

static const struct listed lists[] = {
    {"regions", count_regions, region_name, same_region},
    {"fleets", count_fleets, fleet_name, same_fleet},
    {"tokens", count_tokens, token_name, same_token},
    {"access.keys", count_keys, key_name, same_key},
    {"http.trusted_proxies", count_proxies, proxy_name, same_proxy},
};

static void log_value(const char *what, bool reloads, const char *before, const char *after)
{
    struct log_entry e;
    enum log_level level = reloads ? LOG_INFO : LOG_WARN;
    if (!log_enabled(level))
        return;
    log_begin(&e, level,
              reloads ? "configuration changed" : "configuration cannot change without a restart");
    log_word(&e, "what", what);
    log_text(&e, reloads ? "before" : "stays", str_of(before));
    log_text(&e, reloads ? "now" : "wanted", str_of(after));
    log_end(&e);
}

/* A port's files may change, but not whether it speaks TLS at all. */
static void keep_kind_of_port(const char *what, const struct config_tls *old,
                              struct config_tls *new)
{
    bool was = old->certificate[0] != '\0';
    bool wanted = new->certificate[0] != '\0';
    if (was == wanted)
        return;
    log_value(what, false, was ? "TLS" : "plain", wanted ? "TLS" : "plain");
    *new = *old;
}

static int change_setting(const struct setting *s, const struct config *old, struct config *new)
{
    char before[SETTING_VALUE_MAX], after[SETTING_VALUE_MAX], key[NAME_MAX_LEN];
    if (strcmp(setting_print(s, old, before), setting_print(s, new, after)) == 0)
        return 0;
    snprintf(key, sizeof(key), "%s.%s", s->section, s->key);
    if (s->kind == SETTING_SECRET)
        log_value(key, s->reloads, "(not shown)", "(not shown)");
    else
        log_value(key, s->reloads, before, after);
    return s->reloads ? 1 : 0;
}

/* "5/60 10/240": so many in so many seconds. Returns dst. */
static const char *print_rates(const struct rate_limit *rates, char dst[NAME_MAX_LEN])
{
    size_t n = 0;
    dst[0] = '\0';
    for (size_t i = 0; i < RATE_LIMITS_MAX && rates[i].count > 0; i++)
        n += (size_t)snprintf(dst + n, NAME_MAX_LEN - n, "%s%d/%" PRId64, i > 0 ? " " : "",
                              rates[i].count, rates[i].ms / 1000);
    return dst;
}

static int change_rates(const char *what, const struct rate_limit *old,
                        const struct rate_limit *new)
{
    char before[NAME_MAX_LEN], after[NAME_MAX_LEN];
    if (strcmp(print_rates(old, before), print_rates(new, after)) == 0)
        return 0;
    log_value(what, true, before, after);
    return 1;
}

static int change_default_region(const struct config *old, const struct config *new)
{
    const char *before = config_default_region(old);
    const char *after = config_default_region(new);
    if (strcmp(before, after) == 0)
        return 0;
    log_value("default_region", true, before, after);
    return 1;
}

/* Brokers are connected to once. */
static int change_brokers(const struct config *old, struct config *new)
{
    char before[16], after[16];
    snprintf(before, sizeof(before), "%zu", old->nats.n_urls);
    snprintf(after, sizeof(after), "%zu", new->nats.n_urls);
    if (old->nats.n_urls == new->nats.n_urls &&
        memcmp(old->nats.urls, new->nats.urls, sizeof(old->nats.urls)) == 0)
        return 0;
    log_value("nats.urls", false, before, after);
    memcpy(new->nats.urls, old->nats.urls, sizeof(new->nats.urls));
    new->nats.n_urls = old->nats.n_urls;
    return 0;
}

int config_change(const struct config *old, struct config *new)
{
    int n = 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        n += compare_list(&lists[i], old, new);
    n += change_default_region(old, new);
    n += change_rates("rates.create", old->core.create_rates, new->core.create_rates);
    n += change_rates("rates.join", old->core.join_rates, new->core.join_rates);
    n += change_brokers(old, new);
    keep_kind_of_port("tls.http", &old->tls_http, &new->tls_http);
    keep_kind_of_port("tls.server", &old->tls_server, &new->tls_server);
    keep_kind_of_port("tls.manager", &old->tls_manager, &new->tls_manager);
    keep_kind_of_port("tls.client", &old->tls_client, &new->tls_client);
    for (size_t i = 0; i < n_settings; i++)
        n += change_setting(&settings[i], old, new);
    /* Afterwards: what one setting is printed as may depend on another. */
    for (size_t i = 0; i < n_settings; i++) {
        if (!settings[i].reloads)
            setting_copy(&settings[i], old, new);
    }
    return n;
}
