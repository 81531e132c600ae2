/* What a Muster runs with: the configuration in force, the files it names, its digest. Loaded at
 * the start, read again at SIGHUP. Owned by `muster serve`; the service borrows the certificates
 * and the digest. */
#pragma once

#include "cli/config.h"
#include "cli/config_show.h"
#include "cli/door_tls.h"

struct access_key;
struct service_change;
struct service_taker;

struct running {
    /* Reads everything that says how to run (defaults, file, command line) into *ret; as
     * config_load. Set before running_load. */
    int (*read)(const void *arguments, struct config *ret, struct config_mistakes *mistakes);
    const void *arguments;
    const char *path; /* of the file; NULL = there is none, so nothing is read again */

    struct config *config;
    struct door_tls tls;
    struct access_key *keys; /* config->n_keys of them */
    char digest[CONFIG_DIGEST_MAX];
};

/* Reads and loads everything and sets up the log. False when something is wrong, which has been
 * printed; running_done is needed all the same. */
bool running_load(struct running *r);
void running_done(struct running *r);

/* For service_config: reads again, logs what changed and what cannot, and hands over the rest, when
 * there is any; certificates are read again in any case. With a mistake anywhere, in the file or in
 * those it names, nothing changes, and the first one is logged. user is a struct running. */
int running_reload(void *user, const struct service_taker *taker);

/* What a service or a standby works with, of the configuration in force. Points into r. */
void running_change(const struct running *r, struct service_change *ret);
