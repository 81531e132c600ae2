#include "cli/running.h"

#include "api/service.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/config_change.h"
#include "cli/config_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool load_files(struct running *r)
{
    char why[CONFIG_WHY_MAX];
    r->keys = xcalloc(CONFIG_MAX_KEYS, sizeof(*r->keys));
    if (door_tls_load(&r->tls, r->config, why) == 0 &&
        config_load_keys(r->config, r->keys, why) == 0)
        return true;
    fprintf(stderr, "muster serve: %s\n", why);
    return false;
}

bool running_load(struct running *r)
{
    struct config_mistakes mistakes;
    r->config = xcalloc(1, sizeof(*r->config));
    if (r->read(r->arguments, r->config, &mistakes) != 0) {
        config_print_mistakes("serve", &mistakes);
        return false;
    }
    log_set_level(r->config->log_level);
    log_set_format(r->config->log_format);
    config_digest(r->config, r->digest);
    return load_files(r);
}

void running_done(struct running *r)
{
    door_tls_done(&r->tls);
    free(r->keys);
    if (r->config)
        config_done(r->config);
    free(r->config);
}

static int refuse(const struct running *r, const char *why, size_t n)
{
    struct log_entry e;
    log_begin(&e, LOG_ERROR, "configuration refused; nothing has changed");
    log_text(&e, "config", str_of(r->path));
    log_text(&e, "why", str_of(why));
    log_int(&e, "mistakes", (int64_t)n);
    log_end(&e);
    return ERR_INVALID_REQUEST;
}

/* All that can go wrong goes wrong here, before anything changes. */
static int read_again(const struct running *r, struct config *ret, struct access_key *ret_keys)
{
    struct config_mistakes mistakes;
    char why[CONFIG_WHY_MAX];
    if (r->read(r->arguments, ret, &mistakes) == 0)
        config_check_files(ret, &mistakes);
    if (mistakes.n > 0)
        return refuse(r, mistakes.sentence[0], mistakes.n);
    return config_load_keys(ret, ret_keys, why) == 0 ? 0 : refuse(r, why, 1);
}

/* Files that were fine a moment ago may not be any more. */
static void reload_tls(struct running *r)
{
    char why[CONFIG_WHY_MAX], quoted[LOG_QUOTE_MAX + 8];
    if (door_tls_reload(&r->tls, r->config, why) != 0)
        log_line(LOG_ERROR, "a certificate stays as it was", "why=%s",
                 log_quote(quoted, str_of(why)));
}

void running_change(const struct running *r, struct service_change *ret)
{
    const struct config *config = r->config;
    *ret = (struct service_change){.core = &config->core,
                                   .gamespace = config->gamespace,
                                   .keys = r->keys,
                                   .n_keys = config->n_keys,
                                   .login_url = config->login_url,
                                   .metrics_open = config->metrics_open,
                                   .launches = config->launches,
                                   .n_launches = config->n_launches,
                                   .proxies = config->proxies,
                                   .n_proxies = config->n_proxies};
}

/* Keeps what was read; false when it is what we had, in the file and in those it names. That is no
 * act of an operator, so the service is not told, which would write a line of the audit.
 * The service goes on with the launches it has until it is told of others, so *new gets those that
 * can go afterwards. */
static bool keep(struct running *r, struct config *new, const struct access_key *keys)
{
    const size_t size = CONFIG_MAX_KEYS * sizeof(*keys);
    char digest[CONFIG_DIGEST_MAX];
    config_digest(new, digest);
    bool differs = strcmp(digest, r->digest) != 0 || memcmp(r->keys, keys, size) != 0;
    struct launch *had = r->config->launches;
    size_t n_had = r->config->n_launches;
    struct launch *read = new->launches;
    size_t n_read = new->n_launches;
    *r->config = *new;
    r->config->launches = differs ? read : had;
    r->config->n_launches = differs ? n_read : n_had;
    new->launches = differs ? had : read;
    new->n_launches = differs ? n_had : n_read;
    memcpy(r->keys, keys, size);
    memcpy(r->digest, digest, sizeof(digest));
    return differs;
}

/* The lines about what changed are written at the more talkative of both levels. */
static void change(struct running *r, struct config *new, const struct access_key *keys,
                   const struct service_taker *taker)
{
    if (new->log_level > r->config->log_level)
        log_set_level(new->log_level);
    log_set_format(new->log_format);
    int n = config_change(r->config, new);
    bool differs = keep(r, new, keys);
    reload_tls(r);
    taker->reload_geo(taker->user, r->config->geo_file);
    if (differs) {
        struct service_change given;
        running_change(r, &given);
        taker->reconfigure(taker->user, &given);
        log_line(LOG_INFO, "configuration in force", "changes=%d digest=%s", n, r->digest);
    } else {
        log_line(LOG_INFO, "configuration unchanged", "digest=%s", r->digest);
    }
    log_set_level(new->log_level);
}

int running_reload(void *user, const struct service_taker *taker)
{
    struct running *r = user;
    if (!r->path) {
        log_line(LOG_WARN, "there is no configuration file to read again", "%s", "");
        return 0;
    }
    struct config *new = xcalloc(1, sizeof(*new));
    struct access_key *keys = xcalloc(CONFIG_MAX_KEYS, sizeof(*keys));
    int err = read_again(r, new, keys);
    if (err == 0)
        change(r, new, keys, taker);
    free(keys);
    config_done(new);
    free(new);
    return err;
}
