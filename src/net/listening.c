#include "net/listening.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <uv.h>

/* Accepted sockets inherit these, which saves six system calls for each. A peer that vanished is
 * found by the keepalive when nothing is under way, by the user timeout when something is. */
static bool set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {SOL_SOCKET, SO_REUSEADDR, 1},          {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30},        {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},          {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 31000},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)) != 0)
            return false;
    }
    return true;
}

static int fail(int fd, const char **ret_why)
{
    *ret_why = uv_strerror(uv_translate_sys_error(errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int listening_open(const char *ip, uint16_t port, const char **ret_why)
{
    union address wanted;
    if (!address_parse(ip, port, &wanted)) {
        *ret_why = "not an IP address";
        return -1;
    }
    bool v6 = wanted.any.sa_family == AF_INET6;
    socklen_t len = v6 ? sizeof(wanted.v6) : sizeof(wanted.v4);
    int fd = socket(wanted.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || !set_options(fd) || bind(fd, &wanted.any, len) != 0 ||
        listen(fd, LISTENING_BACKLOG) != 0)
        return fail(fd, ret_why);
    return fd;
}

int listening_share(int held_fd, const char **ret_why)
{
    int fd = fcntl(held_fd, F_DUPFD_CLOEXEC, 3);
    return fd >= 0 ? fd : fail(fd, ret_why);
}

void listening_address(int fd, union address *ret)
{
    socklen_t len = sizeof(*ret);
    int err = getsockname(fd, &ret->any, &len);
    assert(err == 0);
    (void)err;
}
