/* TLS: a certificate with its key, and optionally the authority that clients must be signed by.
 * Loaded from PEM files through GnuTLS, replaceable while connections live. Owned by whoever loaded
 * it; streams and the HTTP server borrow it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct tls;

enum { TLS_WHY_MAX = 256 };

struct tls_files {
    const char *certificate; /* PEM, the chain */
    const char *key;         /* PEM */
    const char *client_ca;   /* PEM; "" or NULL = clients need no certificate */
};

/* Returns 0, or ERR_IO / ERR_FORMAT with why: which file, what is wrong with it. A certificate that
 * has expired or does not belong to the key is refused. */
int tls_load(const struct tls_files *files, struct tls **ret, char why[TLS_WHY_MAX]);

/* Reads the files anew for connections from now on; on failure everything stays as it was. */
int tls_reload(struct tls *tls, const struct tls_files *files, char why[TLS_WHY_MAX]);

void tls_free(struct tls *tls); /* NULL is fine; no connection may use it any more */
