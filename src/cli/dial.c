#include "cli/dial.h"

#include "net/address.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static bool is_connected_within(int fd, const union address *a, int timeout_ms)
{
    socklen_t size = a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof(error);
    if (connect(fd, &a->any, size) < 0 && errno != EINPROGRESS)
        return false;
    return poll(&wait, 1, timeout_ms) == 1 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

int dial(struct str host, int64_t port, int timeout_ms)
{
    char ip[INET6_ADDRSTRLEN];
    union address a;
    if (!str_copy(ip, sizeof(ip), host) || !address_parse(ip, (uint16_t)port, &a))
        return -1;
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || is_connected_within(fd, &a, timeout_ms))
        return fd;
    close(fd);
    return -1;
}
