#include "cli/config_files.h"

#include "api/geo.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/tls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ACCESS_KEYS_MAX >= (int)CONFIG_MAX_KEYS, "every key has a place");

/* Appends to what why holds already. */
static void add(char why[CONFIG_WHY_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(char why[CONFIG_WHY_MAX], const char *format, ...)
{
    size_t n = strlen(why);
    va_list args;
    va_start(args, format);
    vsnprintf(why + n, CONFIG_WHY_MAX - n, format, args);
    va_end(args);
}

/* "muster.yaml: line 3: ", or nothing when no file says it. */
static void begin(const struct config *config, size_t line, char why[CONFIG_WHY_MAX])
{
    why[0] = '\0';
    if (config->name[0] && line > 0)
        add(why, "%s: line %zu: ", config->name, line);
}

static int refuse_key(const struct config *config, size_t i, const char *reason, int err,
                      char why[CONFIG_WHY_MAX])
{
    const struct config_key *key = &config->keys[i];
    begin(config, key->line, why);
    if (why[0])
        add(why, "access, keys, entry %zu, file: ", i + 1);
    add(why, "access key %s: %s: %s", key->name, key->file, reason);
    return err;
}

static int load_key(const struct config *config, size_t i, struct access_key *ret,
                    char why[CONFIG_WHY_MAX])
{
    const struct config_key *key = &config->keys[i];
    char reason[ACCESS_WHY_MAX];
    FILE *f = fopen(key->file, "re");
    if (!f)
        return refuse_key(config, i, strerror(errno), ERR_IO, why);
    size_t n = fread(ret->pem, 1, sizeof(ret->pem), f);
    int failed = ferror(f) ? errno : 0;
    fclose(f);
    if (failed != 0)
        return refuse_key(config, i, strerror(failed), ERR_IO, why);
    if (n == sizeof(ret->pem))
        return refuse_key(config, i, "it is too long for a key", ERR_FORMAT, why);
    ret->pem[n] = '\0';
    ret->algorithm = access_algorithm(str_of(key->algorithm));
    (void)str_copy(ret->name, sizeof(ret->name), str_of(key->name));
    return access_key_fits(ret, reason) ? 0 : refuse_key(config, i, reason, ERR_FORMAT, why);
}

int config_load_keys(const struct config *config, struct access_key *keys, char why[CONFIG_WHY_MAX])
{
    int err = 0;
    for (size_t i = 0; i < config->n_keys && err == 0; i++)
        err = load_key(config, i, &keys[i], why);
    return err;
}

static char *next_mistake(struct config_mistakes *mistakes)
{
    static char beyond[CONFIG_WHY_MAX]; /* only counted */
    size_t i = mistakes->n++;
    return i < CONFIG_MISTAKES_MAX ? mistakes->sentence[i] : beyond;
}

static bool begins_with(const char *text, const char *word)
{
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && text[n] == ' ';
}

void config_explain_tls(const struct config *config, const char *port, const struct config_tls *tls,
                        const char *reason, char why[CONFIG_WHY_MAX])
{
    const struct {
        const char *key;
        size_t line;
    } keys[] = {
        {"certificate", tls->certificate_line},
        {"key", tls->key_line},
        {"client_ca", tls->client_ca_line},
    };
    why[0] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!begins_with(reason, keys[i].key))
            continue;
        begin(config, keys[i].line, why);
        if (why[0])
            add(why, "tls, %s, %s: ", port, keys[i].key);
    }
    add(why, "TLS of the %s port: %s", port, reason);
}

static void check_tls(const struct config *config, const char *port, const struct config_tls *c,
                      struct config_mistakes *mistakes)
{
    char why[TLS_WHY_MAX];
    struct tls *tls = NULL;
    struct tls_files files = {c->certificate, c->key, c->client_ca};
    if (c->certificate[0] && tls_load(&files, &tls, why) != 0)
        config_explain_tls(config, port, c, why, next_mistake(mistakes));
    tls_free(tls);
}

static void check_geo(const struct config *config, struct config_mistakes *mistakes)
{
    char reason[GEO_WHY_MAX];
    if (!config->geo_file[0])
        return;
    struct geo *geo = geo_open(config->geo_file, reason);
    if (!geo) {
        char *why = next_mistake(mistakes);
        begin(config, config->geo_line, why);
        add(why, "geo, file: %s: %s", config->geo_file, reason);
    }
    geo_close(geo);
}

void config_check_files(const struct config *config, struct config_mistakes *mistakes)
{
    struct access_key *key = xcalloc(1, sizeof(*key));
    check_tls(config, "http", &config->tls_http, mistakes);
    check_tls(config, "server", &config->tls_server, mistakes);
    check_tls(config, "manager", &config->tls_manager, mistakes);
    check_tls(config, "client", &config->tls_client, mistakes);
    for (size_t i = 0; i < config->n_keys; i++) {
        char why[CONFIG_WHY_MAX];
        if (load_key(config, i, key, why) != 0)
            memcpy(next_mistake(mistakes), why, sizeof(why));
    }
    free(key);
    check_geo(config, mistakes);
}
