#include "net/tls_session.h"

#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 192 };

/*   SHAKING ──▶ ESTABLISHED ──▶ SAID_GOODBYE
 *      └──────────────┴──────────────▶ FAILED   nothing is opened or sealed any more */
enum session_state { SHAKING, ESTABLISHED, SAID_GOODBYE, FAILED };

struct tls_session {
    gnutls_session_t session;
    struct tls_credentials *credentials;
    enum session_state state;
    size_t swallowed;  /* since the last plaintext */
    uint8_t looked_at; /* so many of the first bytes are known to look like TLS */
    const uint8_t *in; /* while opening: what GnuTLS has not taken yet */
    size_t in_len;
    struct buf *to; /* where what GnuTLS wants written goes: to what is sealed, or own */
    struct buf own;
    char *why; /* when FAILED */
};

static ssize_t pull(gnutls_transport_ptr_t user, void *to, size_t n)
{
    struct tls_session *t = user;
    if (t->in_len == 0) {
        gnutls_transport_set_errno(t->session, EAGAIN);
        return -1;
    }
    if (n > t->in_len)
        n = t->in_len;
    memcpy(to, t->in, n);
    t->in += n;
    t->in_len -= n;
    return (ssize_t)n;
}

static ssize_t push(gnutls_transport_ptr_t user, const void *data, size_t n)
{
    struct tls_session *t = user;
    buf_append(t->to, data, n);
    return (ssize_t)n;
}

struct tls_session *tls_session_new(struct tls *tls)
{
    struct tls_session *t = xcalloc(1, sizeof(*t));
    if (gnutls_init(&t->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS) < 0)
        abort(); /* only for want of memory */
    t->to = &t->own;
    t->credentials = tls_attach(tls, t->session);
    gnutls_transport_set_ptr(t->session, t);
    gnutls_transport_set_pull_function(t->session, pull);
    gnutls_transport_set_push_function(t->session, push);
    return t;
}

void tls_session_free(struct tls_session *t)
{
    if (!t)
        return;
    gnutls_deinit(t->session);
    tls_release(t->credentials);
    buf_done(&t->own);
    free(t->why);
    free(t);
}

static enum tls_result fail(struct tls_session *t, const char *why, const char *detail)
{
    t->state = FAILED;
    t->in_len = 0;
    t->why = xmalloc(WHY_MAX);
    snprintf(t->why, WHY_MAX, "%s%s", why, detail);
    size_t len = strlen(t->why);
    while (len > 0 && (t->why[len - 1] == ' ' || t->why[len - 1] == '.')) /* of GnuTLS' sentences */
        t->why[--len] = '\0';
    return TLS_FAILED;
}

/* GnuTLS would say that a packet has an unexpected length. Peers that have not heard of our TLS are
 * common and deserve to be told apart from broken ones. */
static bool looks_like_tls(struct tls_session *t, const uint8_t *sealed, size_t n)
{
    static const uint8_t first[] = {22, 3}; /* a handshake record of any version since SSL 3 */
    while (n > 0 && t->looked_at < sizeof(first)) {
        if (*sealed++ != first[t->looked_at])
            return false;
        t->looked_at++;
        n--;
    }
    return true;
}

static enum tls_result refuse_client(struct tls_session *t)
{
    gnutls_datum_t text = {0};
    unsigned status = gnutls_session_get_verify_cert_status(t->session);
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
        return fail(t, "the peer's certificate is not acceptable", "");
    enum tls_result r = fail(t, "the peer's certificate is not acceptable: ", (char *)text.data);
    gnutls_free(text.data);
    return r;
}

/* The alert in the clear that a read begins with, perhaps behind the empty "change cipher spec" of
 * TLS 1.3; -1 when there is none. Some clients (OpenSSL) refuse us so before they have keys, where
 * GnuTLS expects ciphertext and would only say that it cannot be decrypted. */
static int plain_alert(const uint8_t *sealed, size_t n)
{
    enum { CHANGE_CIPHER_SPEC = 20, ALERT = 21, HEADER = 5 };
    if (n >= HEADER + 1 && sealed[0] == CHANGE_CIPHER_SPEC && sealed[4] == 1) {
        sealed += HEADER + 1;
        n -= HEADER + 1;
    }
    bool is_one = n == HEADER + 2 && sealed[0] == ALERT && sealed[3] == 0 && sealed[4] == 2;
    return is_one ? sealed[HEADER + 1] : -1;
}

static enum tls_result refused_by_peer(struct tls_session *t, gnutls_alert_description_t alert)
{
    bool ours = alert == GNUTLS_A_UNKNOWN_CA ||
                (alert >= GNUTLS_A_BAD_CERTIFICATE && alert <= GNUTLS_A_CERTIFICATE_UNKNOWN);
    const char *name = gnutls_alert_get_name(alert);
    return fail(t, ours ? "the peer does not accept our certificate: " : "the peer refused: ",
                name ? name : "unknown alert");
}

static enum tls_result explain(struct tls_session *t, int error)
{
    switch (error) {
    case GNUTLS_E_FATAL_ALERT_RECEIVED:
    case GNUTLS_E_WARNING_ALERT_RECEIVED:
        return refused_by_peer(t, gnutls_alert_get(t->session));
    case GNUTLS_E_CERTIFICATE_REQUIRED:
    case GNUTLS_E_NO_CERTIFICATE_FOUND:
        return fail(t, "the peer shows no certificate, which client_ca requires", "");
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
    case GNUTLS_E_CERTIFICATE_ERROR:
        return refuse_client(t);
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
        return fail(t, "the peer speaks no TLS 1.2 or later", "");
    case GNUTLS_E_REHANDSHAKE:
        return fail(t, "the peer wants another handshake", "");
    default:
        return fail(t, gnutls_strerror(error), "");
    }
}

static enum tls_result refuse(struct tls_session *t, int error)
{
    if (error != GNUTLS_E_FATAL_ALERT_RECEIVED && error != GNUTLS_E_WARNING_ALERT_RECEIVED)
        gnutls_alert_send_appropriate(t->session, error);
    return explain(t, error);
}

/* GnuTLS was called with `left` bytes to read and gives no result yet. It says "again" also after a
 * message of the peer's that it dealt with, or of which it has a part; only when it has read
 * everything does that mean that the peer's next bytes are wanted. */
static bool goes_on(const struct tls_session *t, int error, size_t left)
{
    return !gnutls_error_is_fatal(error) && error != GNUTLS_E_REHANDSHAKE && t->in_len < left;
}

static enum tls_result shake_hands(struct tls_session *t, int alert)
{
    int error;
    size_t left;
    do {
        left = t->in_len;
        error = gnutls_handshake(t->session);
    } while (error != 0 && goes_on(t, error, left));
    if (error == GNUTLS_E_DECRYPTION_FAILED && alert >= 0)
        return refused_by_peer(t, (gnutls_alert_description_t)alert);
    if (error == 0)
        t->state = ESTABLISHED;
    bool waits = error == GNUTLS_E_AGAIN && t->in_len == 0;
    return error == 0 || waits ? TLS_GOES_ON : refuse(t, error);
}

static enum tls_result decrypt(struct tls_session *t, uint8_t *to, size_t room, size_t *ret_len)
{
    for (;;) {
        size_t left = t->in_len;
        assert(*ret_len < room);
        ssize_t n = gnutls_record_recv(t->session, to + *ret_len, room - *ret_len);
        if (n > 0)
            *ret_len += (size_t)n;
        else if (n == 0)
            return TLS_ENDED;
        else if (n == GNUTLS_E_AGAIN && t->in_len == 0)
            return TLS_GOES_ON;
        else if (!goes_on(t, (int)n, left))
            return refuse(t, (int)n);
    }
}

enum tls_result tls_session_open(struct tls_session *t, const uint8_t *sealed, size_t n,
                                 uint8_t *to, size_t *ret_len)
{
    *ret_len = 0;
    if (t->state == FAILED)
        return TLS_FAILED;
    if (!looks_like_tls(t, sealed, n)) {
        gnutls_alert_send(t->session, GNUTLS_AL_FATAL, GNUTLS_A_UNEXPECTED_MESSAGE);
        return fail(t, "the peer does not speak TLS, and this port speaks nothing else", "");
    }
    if (t->swallowed > TLS_SWALLOW_MAX) {
        gnutls_alert_send(t->session, GNUTLS_AL_FATAL, GNUTLS_A_RECORD_OVERFLOW);
        return fail(t, "the peer sends a handshake without end", "");
    }
    t->swallowed += n;
    t->in = sealed;
    t->in_len = n;
    enum tls_result r = TLS_GOES_ON;
    if (t->state == SHAKING)
        r = shake_hands(t, plain_alert(sealed, n));
    if (r == TLS_GOES_ON && t->state != SHAKING)
        r = decrypt(t, to, n + TLS_RECORD_MAX, ret_len);
    if (*ret_len > 0)
        t->swallowed = 0;
    return r;
}

static bool encrypt(struct tls_session *t, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = gnutls_record_send(t->session, data, len);
        if (n < 0) {
            explain(t, (int)n);
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

bool tls_session_seal(struct tls_session *t, const uint8_t *data, size_t len, bool last,
                      struct buf *out)
{
    if (t->own.len > 0)
        buf_append(out, t->own.data, t->own.len);
    buf_done(&t->own); /* idle sessions hold no output memory */
    if (t->state != ESTABLISHED)
        return t->state != FAILED;
    t->to = out;
    bool sealed = encrypt(t, data, len);
    if (sealed && last) {
        gnutls_bye(t->session, GNUTLS_SHUT_WR);
        t->state = SAID_GOODBYE;
    }
    t->to = &t->own;
    return sealed;
}

size_t tls_session_unsent(const struct tls_session *t)
{
    return t->own.len;
}

bool tls_session_established(const struct tls_session *t)
{
    return t->state == ESTABLISHED || t->state == SAID_GOODBYE;
}

const char *tls_session_why(const struct tls_session *t)
{
    return t->why;
}
