/* The public keys of those who may issue access tokens, read from the files the configuration
 * names. Owned by whoever called access_keys_load, who frees it with free. */
#pragma once

#include "api/access.h"
#include "cli/config.h"

/* config->n_keys of them; *ret is NULL when there are none. On failure returns ERR_IO or
 * ERR_FORMAT, and why is a sentence naming key and file. */
int access_keys_load(const struct config *config, struct access_key **ret,
                     char why[CONFIG_WHY_MAX]);
