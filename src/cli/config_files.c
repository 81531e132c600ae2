#include "cli/config_files.h"

#include "base/buf.h"
#include "base/err.h"
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)ACCESS_KEYS_MAX >= (int)CONFIG_MAX_KEYS, "every key has a place");

static int refuse_key(const struct config_key *key, const char *reason, int err,
                      char why[CONFIG_WHY_MAX])
{
    snprintf(why, CONFIG_WHY_MAX, "access key %s: %s: %s", key->name, key->file, reason);
    return err;
}

static int load_key(const struct config_key *key, struct access_key *ret, char why[CONFIG_WHY_MAX])
{
    char reason[ACCESS_WHY_MAX];
    FILE *f = fopen(key->file, "re");
    if (!f)
        return refuse_key(key, strerror(errno), ERR_IO, why);
    size_t n = fread(ret->pem, 1, sizeof(ret->pem), f);
    int failed = ferror(f) ? errno : 0;
    fclose(f);
    if (failed != 0)
        return refuse_key(key, strerror(failed), ERR_IO, why);
    if (n == sizeof(ret->pem))
        return refuse_key(key, "it is too long for a key", ERR_FORMAT, why);
    ret->pem[n] = '\0';
    ret->algorithm = access_algorithm(str_of(key->algorithm));
    (void)str_copy(ret->name, sizeof(ret->name), str_of(key->name));
    return access_key_fits(ret, reason) ? 0 : refuse_key(key, reason, ERR_FORMAT, why);
}

int config_load_keys(const struct config *config, struct access_key *keys, char why[CONFIG_WHY_MAX])
{
    int err = 0;
    for (size_t i = 0; i < config->n_keys && err == 0; i++)
        err = load_key(&config->keys[i], &keys[i], why);
    return err;
}

static char *next_mistake(struct config_mistakes *mistakes)
{
    static char beyond[CONFIG_WHY_MAX]; /* only counted */
    size_t i = mistakes->n++;
    return i < CONFIG_MISTAKES_MAX ? mistakes->sentence[i] : beyond;
}

static void check_tls(const char *port, const struct config_tls *c,
                      struct config_mistakes *mistakes)
{
    char why[TLS_WHY_MAX];
    struct tls *tls = NULL;
    struct tls_files files = {c->certificate, c->key, c->client_ca};
    if (c->certificate[0] && tls_load(&files, &tls, why) != 0)
        snprintf(next_mistake(mistakes), CONFIG_WHY_MAX, "TLS of the %s port: %s", port, why);
    tls_free(tls);
}

void config_check_files(const struct config *config, struct config_mistakes *mistakes)
{
    struct access_key *key = xcalloc(1, sizeof(*key));
    check_tls("http", &config->tls_http, mistakes);
    check_tls("server", &config->tls_server, mistakes);
    check_tls("manager", &config->tls_manager, mistakes);
    for (size_t i = 0; i < config->n_keys; i++) {
        char why[CONFIG_WHY_MAX];
        if (load_key(&config->keys[i], key, why) != 0)
            memcpy(next_mistake(mistakes), why, sizeof(why));
    }
    free(key);
}
