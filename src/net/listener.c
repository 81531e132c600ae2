#include "net/listener.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/stream.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

struct listener {
    uv_tcp_t tcp;
    struct loop *loop;
    struct tls *tls;
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
    struct stream *s = stream_accept(l->loop, handle, l->tls);
    if (s)
        l->accepted(l->user, s);
    else
        l->refused++;
}

/* Accepted sockets inherit these, which saves six system calls for each. A peer that vanished is
 * found by the keepalive when nothing is under way, by the user timeout when something is. */
static int set_options(uv_tcp_t *tcp)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 31000},
    };
    uv_os_fd_t fd;
    int err = uv_fileno((uv_handle_t *)tcp, &fd);
    for (size_t i = 0; err == 0 && i < sizeof(options) / sizeof(options[0]); i++) {
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) != 0)
            err = uv_translate_sys_error(errno);
    }
    return err;
}

static int bind_and_listen(struct listener *l, const char *ip, uint16_t port)
{
    union address wanted;
    if (!address_parse(ip, port, &wanted))
        return UV_EAI_NONAME;
    int err = uv_tcp_bind(&l->tcp, &wanted.any, 0);
    if (err == 0)
        err = set_options(&l->tcp);
    if (err == 0)
        err = uv_listen((uv_stream_t *)&l->tcp, BACKLOG, on_connection);
    int len = sizeof(l->bound);
    if (err == 0)
        err = uv_tcp_getsockname(&l->tcp, &l->bound.any, &len);
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
    l->accepted = accepted;
    l->user = user;
    uv_tcp_init(&loop->uv, &l->tcp);
    l->tcp.data = l;
    int err = bind_and_listen(l, place->ip, place->port);
    if (err != 0) {
        *ret_why = err == UV_EAI_NONAME ? "not an IP address" : uv_strerror(err);
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
