#include "cli/chat_tls.h"

#include "base/clock.h"
#include "base/str.h"
#include "net/address.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Reads never wait, also on a blocking socket: the caller polls, and looks at other things too. */
static ssize_t pull(gnutls_transport_ptr_t user, void *to, size_t n)
{
    return recv((int)(intptr_t)user, to, n, MSG_DONTWAIT);
}

static const char *load(struct chat_tls *t, const struct chat_tls_wish *wish)
{
    if (gnutls_certificate_allocate_credentials(&t->credentials) < 0)
        return "out of memory";
    int n = gnutls_certificate_set_x509_trust_file(t->credentials, wish->ca, GNUTLS_X509_FMT_PEM);
    if (n <= 0) {
        snprintf(t->why, sizeof(t->why), "--tls-ca %.150s: %s", wish->ca,
                 n == GNUTLS_E_FILE_ERROR ? strerror(errno) : "holds no certificate in PEM");
        return t->why;
    }
    if (!wish->certificate)
        return NULL;
    int error = gnutls_certificate_set_x509_key_file(t->credentials, wish->certificate, wish->key,
                                                     GNUTLS_X509_FMT_PEM);
    if (error >= 0)
        return NULL;
    const char *words = error == GNUTLS_E_CERTIFICATE_KEY_MISMATCH
                            ? "they do not belong together"
                            : "one of them cannot be read or is none in PEM";
    snprintf(t->why, sizeof(t->why), "--tls-cert %.80s with --tls-key %.80s: %s", wish->certificate,
             wish->key, words);
    return t->why;
}

bool chat_tls_check(const char *verb, const struct chat_tls_wish *wish)
{
    if (!wish->certificate != !wish->key)
        return args_refuse(verb, "--tls-cert and --tls-key go together");
    if (!wish->ca && (wish->certificate || wish->server_name))
        return args_refuse(verb, "%s needs --tls-ca: without it TLS is not spoken",
                           wish->certificate ? "--tls-cert" : "--tls-name");
    struct chat_tls t = {0};
    const char *why = wish->ca ? load(&t, wish) : NULL;
    if (t.credentials)
        gnutls_certificate_free_credentials(t.credentials);
    return !why || args_refuse(verb, "%s", why);
}

/* Muster's certificate did not pass: the first thing that is wrong with it, in words. */
static const char *explain_certificate(struct chat_tls *t)
{
    unsigned status = gnutls_session_get_verify_cert_status(t->session);
    if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
        snprintf(t->why, sizeof(t->why), "its certificate is not signed by an authority in %.150s",
                 t->ca);
    else if (status & GNUTLS_CERT_EXPIRED)
        return "its certificate has expired";
    else if (status & GNUTLS_CERT_NOT_ACTIVATED)
        return "its certificate is not valid yet; is this machine's clock right?";
    else if (status & GNUTLS_CERT_UNEXPECTED_OWNER)
        snprintf(t->why, sizeof(t->why),
                 "its certificate is not for %.130s; --tls-name says whom it is for",
                 t->server_name);
    else
        snprintf(t->why, sizeof(t->why), "its certificate is not acceptable (%#x)", status);
    return t->why;
}

static const char *explain(struct chat_tls *t, int error)
{
    gnutls_alert_description_t alert = gnutls_alert_get(t->session);
    switch (error) {
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
        return explain_certificate(t);
    case GNUTLS_E_FATAL_ALERT_RECEIVED:
        if (alert == GNUTLS_A_CERTIFICATE_REQUIRED)
            return "it wants our certificate: --tls-cert and --tls-key";
        snprintf(t->why, sizeof(t->why), "it refused our TLS: %s", gnutls_alert_get_name(alert));
        return t->why;
    case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
    case GNUTLS_E_UNEXPECTED_PACKET:
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
    case GNUTLS_E_RECORD_OVERFLOW:
        return "it does not speak TLS on this port; try without --tls-ca";
    case GNUTLS_E_PREMATURE_TERMINATION:
    case GNUTLS_E_PULL_ERROR:
    case GNUTLS_E_PUSH_ERROR:
        return "it closed the connection";
    default:
        return gnutls_strerror(error);
    }
}

static int begin(struct chat_tls *t, int fd)
{
    union address ip;
    int error = gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (error == 0)
        error = gnutls_priority_set_direct(t->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                                           NULL);
    if (error == 0)
        error = gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials);
    if (error == 0 && !address_parse(t->server_name, 0, &ip)) /* an address may not be said there */
        error = gnutls_server_name_set(t->session, GNUTLS_NAME_DNS, t->server_name,
                                       strlen(t->server_name));
    if (error != 0)
        return error;
    t->expected[0] = (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME,
                                             .data = (unsigned char *)t->server_name};
    t->expected[1] = (gnutls_typed_vdata_st){.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                             .data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER};
    gnutls_session_set_verify_cert2(t->session, t->expected, 2, 0);
    gnutls_transport_set_int(t->session, fd);
    gnutls_transport_set_pull_function(t->session, pull);
    return 0;
}

static const char *shake_hands(struct chat_tls *t, int fd, int timeout_ms)
{
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;
    for (;;) {
        int error = gnutls_handshake(t->session);
        if (error == 0)
            return NULL;
        if (gnutls_error_is_fatal(error)) {
            gnutls_alert_send_appropriate(t->session, error);
            return explain(t, error);
        }
        int64_t left_ms = until_ms - clock_monotonic_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0)
            return "it does not answer our TLS; is it a port that speaks it?";
    }
}

const char *chat_tls_open(struct chat_tls *t, int fd, const struct chat_tls_wish *wish,
                          const char *host, int timeout_ms)
{
    *t = (struct chat_tls){.ca = wish->ca};
    if (!str_copy(t->server_name, sizeof(t->server_name),
                  str_of(wish->server_name ? wish->server_name : host)))
        return "the name is too long";
    const char *why = load(t, wish);
    int error = why ? 0 : begin(t, fd);
    if (error != 0)
        why = gnutls_strerror(error);
    if (!why)
        why = shake_hands(t, fd, timeout_ms);
    if (!why)
        return NULL;
    if (t->session)
        gnutls_deinit(t->session);
    if (t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    t->session = NULL;
    return why;
}

void chat_tls_done(struct chat_tls *t)
{
    if (!t->session)
        return;
    gnutls_bye(t->session, GNUTLS_SHUT_WR);
    gnutls_deinit(t->session);
    gnutls_certificate_free_credentials(t->credentials);
    t->session = NULL;
}

bool chat_tls_send(struct chat_tls *t, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = gnutls_record_send(t->session, data, len);
        if (n < 0) /* the socket blocks, so this is its time limit or its end */
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

ssize_t chat_tls_receive(struct chat_tls *t, uint8_t *to, size_t room)
{
    ssize_t n = gnutls_record_recv(t->session, to, room);
    if (n > 0)
        return n;
    if (n < 0 && !gnutls_error_is_fatal((int)n))
        return 0;
    const char *why = n == 0 ? "it closed the connection" : explain(t, (int)n);
    if (why != t->why)
        str_copy(t->why, sizeof(t->why), str_of(why));
    return -1;
}
