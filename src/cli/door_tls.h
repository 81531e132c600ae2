/* The TLS of the doors of `muster serve`, as the configuration says. Owned by the verb; the service
 * borrows it. */
#pragma once

#include "cli/config.h"

struct tls;

struct door_tls {
    struct tls *http; /* NULL = plain */
    struct tls *server;
    struct tls *manager;
    struct tls *client;
};

/* Loads the files of every door that has a certificate. On failure nothing is left behind, and why
 * is a sentence naming door and file. */
int door_tls_load(struct door_tls *t, const struct config *config, char why[CONFIG_WHY_MAX]);

/* Reads the files of the doors that speak TLS anew, for connections from now on. A door whose files
 * are refused keeps what it has; the others are changed all the same, and the first refusal is
 * returned. A door cannot begin or cease to speak TLS: then ERR_INVALID_REQUEST. */
int door_tls_reload(struct door_tls *t, const struct config *config, char why[CONFIG_WHY_MAX]);

void door_tls_done(struct door_tls *t);
