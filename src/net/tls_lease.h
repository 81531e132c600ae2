/* A TLS session that another library made (libmicrohttpd) and that uses our certificate: it
 * presents what tls has at its beginning, checks its client as ours do, and cannot be made to
 * swallow more than it should. Owned by whoever took it; it must outlive the session's last byte.
 *
 * libmicrohttpd does not start without a certificate of its own, which is then never used: give it
 * tls_certificate_pem and tls_key_pem, no MHD_OPTION_HTTPS_MEM_TRUST, and take a lease when it
 * tells of a new connection. */
#pragma once

#include <stddef.h>

struct gnutls_session_int;
struct tls;
struct tls_lease;

/* Before the session's first byte; its transport must be a socket. The session may read `most`
 * bytes until tls_lease_heard; then reading fails. */
struct tls_lease *tls_lease_new(struct tls *tls, struct gnutls_session_int *session, size_t most);
void tls_lease_free(struct tls_lease *l); /* NULL is fine */

/* The client has said something that is understood. NULL is fine. */
void tls_lease_heard(struct tls_lease *l);
