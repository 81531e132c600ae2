/* The files that a configuration names: certificates for the ports, public keys of those who sign
 * access tokens. Nothing is kept here. */
#pragma once

#include "api/access.h"
#include "cli/config.h"

/* Reads the keys of access tokens; keys has room for CONFIG_MAX_KEYS, of which config->n_keys are
 * filled. On failure returns ERR_IO or ERR_FORMAT, and why names key, file and line. */
int config_load_keys(const struct config *config, struct access_key *keys,
                     char why[CONFIG_WHY_MAX]);

/* What is wrong with a port's TLS as a sentence: with file, line and key when the configuration has
 * them, then the port. reason is that of tls_load and begins with the key. */
void config_explain_tls(const struct config *config, const char *port, const struct config_tls *tls,
                        const char *reason, char why[CONFIG_WHY_MAX]);

/* Loads every file once, for `muster config check`, and adds a mistake for each that is not usable.
 */
void config_check_files(const struct config *config, struct config_mistakes *mistakes);
