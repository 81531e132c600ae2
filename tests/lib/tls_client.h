/* A TLS client for tests. It never waits: the test turns its server between two steps. Its bytes go
 * through two functions, so that they can cross a socket or a buffer. */
#pragma once

#include "base/buf.h"
#include "lib/unit.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tls_client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    bool done;
    int error; /* of GnuTLS; 0 while all is well */
    bool ended;
    int fd;         /* -1 = through the buffers */
    struct buf in;  /* what the server wrote */
    struct buf out; /* what the server has to read */
};

static inline ssize_t tls_client_pull(gnutls_transport_ptr_t user, void *to, size_t n)
{
    struct tls_client *c = user;
    if (c->fd >= 0) {
        ssize_t got = recv(c->fd, to, n, MSG_DONTWAIT);
        gnutls_transport_set_errno(c->session, errno);
        return got;
    }
    n = n < c->in.len ? n : c->in.len;
    if (n == 0) {
        gnutls_transport_set_errno(c->session, EAGAIN);
        return -1;
    }
    memcpy(to, c->in.data, n);
    buf_consume(&c->in, n);
    return (ssize_t)n;
}

static inline ssize_t tls_client_push(gnutls_transport_ptr_t user, const void *data, size_t n)
{
    struct tls_client *c = user;
    if (c->fd >= 0) {
        ssize_t put = send(c->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        gnutls_transport_set_errno(c->session, errno);
        return put;
    }
    buf_append(&c->out, data, n);
    return (ssize_t)n;
}

struct tls_client_wish {
    const char *ca;          /* NULL = any server will do */
    const char *certificate; /* NULL = none is shown */
    const char *key;
    const char *priorities; /* NULL = NORMAL */
};

/* fd is closed by tls_client_done; -1 = through the buffers. */
static inline void tls_client_init(struct tls_client *c, int fd, const struct tls_client_wish *wish)
{
    *c = (struct tls_client){.fd = fd};
    assert_int_equal(gnutls_certificate_allocate_credentials(&c->credentials), 0);
    if (wish->ca)
        assert_int_equal(
            gnutls_certificate_set_x509_trust_file(c->credentials, wish->ca, GNUTLS_X509_FMT_PEM),
            1);
    if (wish->certificate)
        assert_int_equal(gnutls_certificate_set_x509_key_file(c->credentials, wish->certificate,
                                                              wish->key, GNUTLS_X509_FMT_PEM),
                         0);
    /* A client shows what it has, also to an authority that did not sign it. */
    assert_int_equal(
        gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_FORCE_CLIENT_CERT), 0);
    assert_int_equal(gnutls_priority_set_direct(
                         c->session, wish->priorities ? wish->priorities : "NORMAL", NULL),
                     0);
    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->credentials);
    gnutls_server_name_set(c->session, GNUTLS_NAME_DNS, "localhost", strlen("localhost"));
    if (wish->ca)
        gnutls_session_set_verify_cert(c->session, "localhost", 0);
    gnutls_transport_set_ptr(c->session, c);
    gnutls_transport_set_pull_function(c->session, tls_client_pull);
    gnutls_transport_set_push_function(c->session, tls_client_push);
}

static inline void tls_client_done(struct tls_client *c)
{
    gnutls_deinit(c->session);
    gnutls_certificate_free_credentials(c->credentials);
    if (c->fd >= 0)
        close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
}

/* Goes on with the handshake; true when it is over, well or not. */
static inline bool tls_client_shake(struct tls_client *c)
{
    if (c->done || c->error)
        return true;
    int error = gnutls_handshake(c->session);
    c->done = error == 0;
    if (error < 0 && gnutls_error_is_fatal(error)) {
        c->error = error;
        gnutls_alert_send_appropriate(c->session, error);
    }
    return c->done || c->error;
}

static inline void tls_client_say(struct tls_client *c, const void *data, size_t len)
{
    assert_int_equal(gnutls_record_send(c->session, data, len), len);
}

/* Bytes heard; 0 when there are none now, and when the conversation is over (ended or error). */
static inline size_t tls_client_hear(struct tls_client *c, void *to, size_t room)
{
    ssize_t n;
    do {
        n = gnutls_record_recv(c->session, to, room);
    } while (n == GNUTLS_E_AGAIN && c->in.len > 0); /* a message of the handshake's came first */
    if (n > 0)
        return (size_t)n;
    if (n == 0)
        c->ended = true;
    else if (gnutls_error_is_fatal((int)n))
        c->error = (int)n;
    return 0;
}

/* The name in the certificate the server showed. */
static inline void tls_client_server_name(const struct tls_client *c, char dst[64])
{
    unsigned n = 0;
    size_t size = 64;
    gnutls_x509_crt_t crt;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(c->session, &n);
    assert_true(n > 0);
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &shown[0], GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(
        gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, dst, &size), 0);
    gnutls_x509_crt_deinit(crt);
}
