#include "net/tls_lease.h"

#include "base/buf.h"
#include "net/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ALERT_RECORD = 7 }; /* bytes, in the clear */

struct tls_lease {
    struct tls_credentials *credentials;
    gnutls_session_t session;
    int fd; /* the other library's */
    size_t most;
    size_t swallowed;
    struct tls_lease **reader;
    bool wants_client;
    bool hung_up;
    uint8_t first[2]; /* bytes of the client's */
    size_t n_first;
    uint8_t last[ALERT_RECORD]; /* bytes of the client's */
};

static void remember(struct tls_lease *l, const uint8_t *got, size_t n)
{
    for (size_t i = 0; i < n && l->n_first < sizeof(l->first); i++)
        l->first[l->n_first++] = got[i];
    size_t kept = n < sizeof(l->last) ? sizeof(l->last) - n : 0;
    memmove(l->last, l->last + sizeof(l->last) - kept, kept);
    memcpy(l->last + kept, got + n - (sizeof(l->last) - kept), sizeof(l->last) - kept);
}

static ssize_t pull(gnutls_transport_ptr_t user, void *to, size_t n)
{
    struct tls_lease *l = user;
    *l->reader = l;
    if (l->swallowed >= l->most) {
        gnutls_transport_set_errno(l->session, EMSGSIZE);
        return -1;
    }
    ssize_t got = recv(l->fd, to, n, 0);
    l->hung_up = got == 0 || (got < 0 && errno == ECONNRESET);
    if (got > 0) {
        l->swallowed += (size_t)got;
        remember(l, to, (size_t)got);
    } else if (got < 0) {
        gnutls_transport_set_errno(l->session, errno);
    }
    return got;
}

static ssize_t push(gnutls_transport_ptr_t user, const void *data, size_t n)
{
    struct tls_lease *l = user;
    ssize_t put = send(l->fd, data, n, MSG_NOSIGNAL);
    if (put < 0)
        gnutls_transport_set_errno(l->session, errno);
    return put;
}

struct tls_lease *tls_lease_new(struct tls *tls, gnutls_session_t session, size_t most,
                                struct tls_lease **reader)
{
    struct tls_lease *l = xcalloc(1, sizeof(*l));
    l->credentials = tls_attach(tls, session);
    l->session = session;
    l->fd = gnutls_transport_get_int(session);
    l->most = most;
    l->reader = reader;
    l->wants_client = tls_wants_client(tls);
    gnutls_transport_set_ptr(session, l);
    gnutls_transport_set_pull_function(session, pull);
    gnutls_transport_set_push_function(session, push);
    return l;
}

void tls_lease_free(struct tls_lease *l)
{
    if (!l)
        return;
    tls_release(l->credentials);
    if (*l->reader == l)
        *l->reader = NULL;
    free(l);
}

int tls_lease_fd(const struct tls_lease *l)
{
    return l->fd;
}

/* The client's alert, 0 when it sent none. Some clients (OpenSSL) refuse us in the clear where
 * GnuTLS expects ciphertext, so that it does not know. */
static int alert_of(const struct tls_lease *l)
{
    enum { ALERT = 21 };
    bool plain = l->last[0] == ALERT && l->last[1] == 3 && l->last[3] == 0 && l->last[4] == 2;
    return plain ? l->last[ALERT_RECORD - 1] : (int)gnutls_alert_get(l->session);
}

static void say(char dst[TLS_LEASE_WHY_MAX], const char *why, const char *detail)
{
    snprintf(dst, TLS_LEASE_WHY_MAX, "%s%s", why, detail);
    size_t len = strlen(dst);
    while (len > 0 && (dst[len - 1] == ' ' || dst[len - 1] == '.')) /* of GnuTLS' sentences */
        dst[--len] = '\0';
}

static void say_alert(char dst[TLS_LEASE_WHY_MAX], int alert)
{
    bool ours = alert == GNUTLS_A_UNKNOWN_CA ||
                (alert >= GNUTLS_A_BAD_CERTIFICATE && alert <= GNUTLS_A_CERTIFICATE_UNKNOWN);
    const char *name = gnutls_alert_get_name((gnutls_alert_description_t)alert);
    say(dst, ours ? "the peer does not accept our certificate: " : "the peer refused: ",
        name ? name : "unknown alert");
}

static void say_certificate(char dst[TLS_LEASE_WHY_MAX], unsigned status)
{
    gnutls_datum_t text = {0};
    (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
    say(dst, "the peer's certificate is not acceptable: ", text.data ? (char *)text.data : "");
    gnutls_free(text.data);
}

bool tls_lease_why(const struct tls_lease *l, char dst[TLS_LEASE_WHY_MAX])
{
    static const uint8_t handshake[] = {22, 3};
    const unsigned unchecked = (unsigned)-1;
    unsigned status = gnutls_session_get_verify_cert_status(l->session);
    unsigned shown = 0;
    (void)gnutls_certificate_get_peers(l->session, &shown);
    int alert = alert_of(l);
    if (memcmp(l->first, handshake, l->n_first) != 0)
        say(dst, "the peer does not speak TLS, and this port speaks nothing else", "");
    else if (l->swallowed >= l->most)
        say(dst, "the peer sends a handshake without end", "");
    else if (alert != 0)
        say_alert(dst, alert);
    else if (l->hung_up)
        return false;
    else if (l->wants_client && status != 0 && status != unchecked)
        say_certificate(dst, status);
    else if (l->wants_client && shown == 0 &&
             gnutls_handshake_get_last_in(l->session) == GNUTLS_HANDSHAKE_CERTIFICATE_PKT)
        say(dst, "the peer shows no certificate, which client_ca requires", "");
    else
        say(dst, "the handshake failed", "");
    return true;
}

void tls_lease_say(struct tls_lease *l, const void *data, size_t n)
{
    (void)gnutls_record_send(l->session, data, n);
}

void tls_lease_heard(struct tls_lease *l)
{
    if (l)
        l->swallowed = 0;
}
