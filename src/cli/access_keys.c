#include "cli/access_keys.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(char *why, const struct config_key *key, int err, const char *clause)
{
    snprintf(why, CONFIG_WHY_MAX, "access key %s, %s: %s", key->name, key->file, clause);
    return err;
}

static int load(const struct config_key *from, struct access_key *to, char *why)
{
    char clause[ACCESS_WHY_MAX];
    FILE *file = fopen(from->file, "re");
    if (!file)
        return refuse(why, from, ERR_IO, strerror(errno));
    size_t n = fread(to->pem, 1, sizeof(to->pem), file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed)
        return refuse(why, from, ERR_IO, "it cannot be read");
    if (n == sizeof(to->pem))
        return refuse(why, from, ERR_FORMAT, "it is too long for a public key");
    to->pem[n] = '\0';
    (void)str_copy(to->name, sizeof(to->name), str_of(from->name));
    to->algorithm = access_algorithm(str_of(from->algorithm));
    return access_key_fits(to, clause) ? 0 : refuse(why, from, ERR_FORMAT, clause);
}

int access_keys_load(const struct config *config, struct access_key **ret, char why[CONFIG_WHY_MAX])
{
    _Static_assert((int)CONFIG_MAX_KEYS <= (int)ACCESS_KEYS_MAX, "all of them fit");
    struct access_key *keys = config->n_keys ? xcalloc(config->n_keys, sizeof(*keys)) : NULL;
    for (size_t i = 0; i < config->n_keys; i++) {
        int err = load(&config->keys[i], &keys[i], why);
        if (err != 0) {
            free(keys);
            return err;
        }
    }
    *ret = keys;
    return 0;
}
