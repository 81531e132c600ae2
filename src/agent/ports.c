#include "agent/ports.h"

#include "base/buf.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void ports_init(struct ports *p, uint16_t first, uint16_t last)
{
    *p = (struct ports){.first = first, .last = last};
    p->taken = xcalloc((size_t)(last - first) + 1, 1);
}

void ports_done(struct ports *p)
{
    free(p->taken);
    *p = (struct ports){.first = 1};
}

static size_t count(const struct ports *p)
{
    return (size_t)(p->last - p->first) + 1;
}

static bool can_bind(int fd, const void *address, socklen_t len)
{
    bool free_port = bind(fd, address, len) == 0;
    close(fd);
    return free_port;
}

/* On [::] a bind fails when the port is in use on either family. Without SO_REUSEADDR, because the
 * game server may do without it too. */
static bool is_free(uint16_t port, int type)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int off = 0;
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (can_bind(fd, &six, sizeof(six)))
            return true;
    }
    /* It is taken, or this host knows no IPv6. */
    fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    if (fd >= 0 && can_bind(fd, &any, sizeof(any)))
        return false;
    fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    return fd >= 0 && can_bind(fd, &four, sizeof(four));
}

bool ports_take(struct ports *p, int n, uint16_t *ret)
{
    int got = 0;
    for (size_t tried = 0; tried < count(p) && got < n; tried++) {
        size_t at = p->next;
        p->next = (p->next + 1) % count(p);
        uint16_t port = (uint16_t)(p->first + at);
        if (p->taken[at] || !is_free(port, SOCK_STREAM) || !is_free(port, SOCK_DGRAM))
            continue;
        p->taken[at] = 1;
        ret[got++] = port;
    }
    if (got == n)
        return true;
    ports_give(p, ret, got);
    return false;
}

void ports_claim(struct ports *p, uint16_t port)
{
    if (port >= p->first && port <= p->last)
        p->taken[port - p->first] = 1;
}

void ports_give(struct ports *p, const uint16_t *ports, int n)
{
    for (int i = 0; i < n; i++) {
        if (ports[i] >= p->first && ports[i] <= p->last)
            p->taken[ports[i] - p->first] = 0;
    }
}
