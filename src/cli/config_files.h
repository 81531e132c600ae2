/* The files that a configuration names: certificates for the ports, public keys of those who sign
 * access tokens. Nothing is kept here. */
#pragma once

#include "api/access.h"
#include "cli/config.h"

/* Reads the keys of access tokens; keys has room for CONFIG_MAX_KEYS, of which config->n_keys are
 * filled. On failure returns ERR_IO or ERR_FORMAT, and why names key and file. */
int config_load_keys(const struct config *config, struct access_key *keys,
                     char why[CONFIG_WHY_MAX]);

/* Loads every file once, for `muster config check`, and adds a mistake for each that is not usable.
 */
void config_check_files(const struct config *config, struct config_mistakes *mistakes);
