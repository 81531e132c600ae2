/* Makes certificates with their keys (ECDSA P-256), for trying TLS out and for tests: an authority,
 * and servers and clients signed by it. Owned by whoever asked for it. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct certificate;

enum certificate_use { CERTIFICATE_AUTHORITY, CERTIFICATE_SERVER, CERTIFICATE_CLIENT };

struct certificate_wish {
    enum certificate_use use;
    const char *name;
    const char *const *hosts; /* names and IP addresses of a server */
    size_t n_hosts;
    int64_t from_s; /* Unix time */
    int64_t until_s;
};

/* signer NULL = it signs itself. NULL when there is no randomness or a wish is no text GnuTLS
 * takes. */
struct certificate *certificate_make(const struct certificate_wish *wish,
                                     const struct certificate *signer);
void certificate_free(struct certificate *c); /* NULL is fine */

/* PEM, valid as long as the certificate. */
struct str certificate_pem(const struct certificate *c);
struct str certificate_key_pem(const struct certificate *c);
