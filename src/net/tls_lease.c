#include "net/tls_lease.h"

#include "base/buf.h"
#include "net/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <sys/socket.h>

struct tls_lease {
    struct tls_credentials *credentials;
    gnutls_session_t session;
    int fd; /* the other library's */
    size_t most;
    size_t swallowed;
};

static ssize_t pull(gnutls_transport_ptr_t user, void *to, size_t n)
{
    struct tls_lease *l = user;
    if (l->swallowed >= l->most) {
        gnutls_transport_set_errno(l->session, EMSGSIZE);
        return -1;
    }
    ssize_t got = recv(l->fd, to, n, 0);
    if (got > 0)
        l->swallowed += (size_t)got;
    else if (got < 0)
        gnutls_transport_set_errno(l->session, errno);
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

struct tls_lease *tls_lease_new(struct tls *tls, gnutls_session_t session, size_t most)
{
    struct tls_lease *l = xcalloc(1, sizeof(*l));
    l->credentials = tls_attach(tls, session);
    l->session = session;
    l->fd = gnutls_transport_get_int(session);
    l->most = most;
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
    free(l);
}

void tls_lease_heard(struct tls_lease *l)
{
    if (l)
        l->swallowed = 0;
}
