/* A TLS session that another library made (libmicrohttpd) and that uses our certificate: it
 * presents what tls has at its beginning, checks its client as ours do, and cannot be made to
 * swallow more than it should. Owned by whoever took it; it must outlive the session's last byte.
 *
 * libmicrohttpd does not start without a certificate of its own, which is then never used: give it
 * tls_certificate_pem and tls_key_pem, no MHD_OPTION_HTTPS_MEM_TRUST, and take a lease when it
 * tells of a new connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct gnutls_session_int;
struct tls;
struct tls_lease;

/* Before the session's first byte; its transport must be a socket. The session may read `most`
 * bytes until tls_lease_heard; then reading fails. Whenever it reads, *reader becomes the lease. */
struct tls_lease *tls_lease_new(struct tls *tls, struct gnutls_session_int *session, size_t most,
                                struct tls_lease **reader);
void tls_lease_free(struct tls_lease *l); /* NULL is fine */

enum { TLS_LEASE_WHY_MAX = 192 };

/* After a handshake has failed, before the session is gone: why, as far as can be told without the
 * error, which the other library keeps to itself. A sentence for the log without a full stop; false
 * when the client has merely hung up. */
bool tls_lease_why(const struct tls_lease *l, char dst[TLS_LEASE_WHY_MAX]);

/* The socket whose session it is. */
int tls_lease_fd(const struct tls_lease *l);

/* Writes it, as far as the socket takes it at once. The session must not have more to write. */
void tls_lease_say(struct tls_lease *l, const void *data, size_t n);

/* The client has said something that is understood. NULL is fine. */
void tls_lease_heard(struct tls_lease *l);
