/* TLS: a certificate with its key, and optionally the authority that clients must be signed by.
 * Loaded from PEM files through GnuTLS, replaceable while connections live. Owned by whoever loaded
 * it; listeners and the HTTP server borrow it. Used on one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gnutls_session_int;
struct tls;

enum { TLS_WHY_MAX = 256 };

struct tls_files {
    const char *certificate; /* PEM, the chain; the server's own certificate first */
    const char *key;         /* PEM, without a passphrase */
    const char *client_ca;   /* PEM; "" or NULL = clients need no certificate */
};

/* Returns 0, or ERR_IO / ERR_FORMAT with why: which file, what is wrong with it. A certificate that
 * has expired, is not valid yet or does not belong to the key is refused. */
int tls_load(const struct tls_files *files, struct tls **ret, char why[TLS_WHY_MAX]);

/* Reads the files anew for connections from now on; those that are open keep what they began with.
 * On failure everything stays as it was. */
int tls_reload(struct tls *tls, const struct tls_files *files, char why[TLS_WHY_MAX]);

/* NULL is fine. Connections that still use it keep what they need. */
void tls_free(struct tls *tls);

/* Wall clock, seconds: when the server's certificate runs out. */
int64_t tls_expires_s(const struct tls *tls);

/* Clients must show a certificate. */
bool tls_wants_client(const struct tls *tls);

/* What one load brought, kept alive by every session that uses it. */
struct tls_credentials;

/* Makes a new GnuTLS server session ours, before its first byte: the certificate of now, TLS 1.2 or
 * later, and the check of the client's certificate, without which the handshake fails. What it
 * returns is given to tls_release when the session is gone. */
struct tls_credentials *tls_attach(struct tls *tls, struct gnutls_session_int *session);
void tls_release(struct tls_credentials *credentials); /* NULL is fine */

/* GnuTLS gathers a handshake message before it looks at its length, up to 16 MiB, also after the
 * handshake. Whoever feeds a session must give up when it has swallowed so much without a word of
 * plaintext: a record, or a long chain of a client's certificates, fits. */
enum { TLS_SWALLOW_MAX = 20 * 1024 };

/* The texts of the files, valid until the next reload. */
const char *tls_certificate_pem(const struct tls *tls);
const char *tls_key_pem(const struct tls *tls);
