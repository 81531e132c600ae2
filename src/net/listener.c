#include "net/listener.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "net/listening.h"
#include "net/loop.h"
#include "net/stream.h"

#include <stdlib.h>
#include <unistd.h>

struct listener {
    uv_tcp_t tcp;
    struct loop *loop;
    struct tls *tls;
    struct loop_crowd *crowd;
    listener_accepted *accepted;
    void *user;
    union address bound;
    int64_t refused;
};

static void on_connection(uv_stream_t *handle, int status)
{
    struct listener *l = handle->data;
    if (status < 0) {
        /* Out of descriptors: libuv has already turned the peer away with its spare one. */
        l->refused++;
        if (loop_may_complain(l->loop))
            log_line(LOG_WARN, "connection refused", "reason=\"%s\" open=%zu", uv_strerror(status),
                     l->loop->streams);
        return;
    }
    struct stream *s = stream_accept(l->loop, handle, l->tls, l->crowd);
    if (s)
        l->accepted(l->user, s);
    else
        l->refused++;
}

/* The socket is the handle's from here, also on failure. */
static int listen_on(struct listener *l, int fd)
{
    listening_address(fd, &l->bound);
    int err = uv_tcp_open(&l->tcp, fd);
    if (err != 0)
        (void)close(fd);
    else
        err = uv_listen((uv_stream_t *)&l->tcp, LISTENING_BACKLOG, on_connection);
    return err;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void listener_stop(struct listener *l)
{
    if (l)
        uv_close((uv_handle_t *)&l->tcp, on_closed);
}

int listener_start(struct loop *loop, const struct listener_place *place,
                   listener_accepted *accepted, void *user, struct listener **ret,
                   const char **ret_why)
{
    struct listener *l = xcalloc(1, sizeof(*l));
    l->loop = loop;
    l->tls = place->tls;
    l->crowd = place->crowd ? place->crowd : &loop->crowd;
    l->accepted = accepted;
    l->user = user;
    uv_tcp_init(&loop->uv, &l->tcp);
    l->tcp.data = l;
    int fd = place->held_fd ? listening_share(place->held_fd, ret_why)
                            : listening_open(place->ip, place->port, ret_why);
    int err = fd >= 0 ? listen_on(l, fd) : 0;
    if (err != 0)
        *ret_why = uv_strerror(err);
    if (fd < 0 || err != 0) {
        listener_stop(l);
        return ERR_IO;
    }
    *ret = l;
    return 0;
}

const char *listener_address(const struct listener *l, char dst[ADDRESS_MAX])
{
    return address_print(&l->bound, dst);
}

int64_t listener_refused(const struct listener *l)
{
    return l->refused;
}
