#include "agent/ports.h"

#include "base/buf.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void ports_init(struct ports *p, uint16_t first, uint16_t last)
{
    *p = (struct ports){.first = first, .last = last, .held = {-1, -1}};
    p->taken = xcalloc((size_t)(last - first) + 1, 1);
}

static size_t count(const struct ports *p)
{
    return (size_t)(p->last - p->first) + 1;
}

/* A socket that has the address; -1 = somebody else has, or there is no such family here. */
static int bound(int type, const void *address, socklen_t len)
{
    int off = 0;
    int family = ((const struct sockaddr *)address)->sa_family;
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd < 0 || bind(fd, address, len) == 0)
        return fd;
    close(fd);
    return -1;
}

/* On [::] a bind fails when the port is in use on either family. Without SO_REUSEADDR, because the
 * game server may do without it too. */
static int hold(uint16_t port, int type)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = bound(type, &six, sizeof(six));
    if (fd >= 0)
        return fd;
    fd = bound(type, &any, sizeof(any)); /* it is taken, or this host knows no IPv6 */
    if (fd < 0)
        return bound(type, &four, sizeof(four));
    close(fd);
    return -1;
}

/* True when it was ours until now. */
static bool let_go(struct ports *p)
{
    bool whole = p->held[0] >= 0 && p->held[1] >= 0;
    for (int i = 0; i < 2; i++) {
        if (p->held[i] >= 0)
            close(p->held[i]);
        p->held[i] = -1;
    }
    return whole;
}

/* Nobody else can have it until it is let go. False, and nothing is held, when somebody has. */
static bool hold_both(struct ports *p, uint16_t port)
{
    p->held[0] = hold(port, SOCK_STREAM);
    p->held[1] = p->held[0] >= 0 ? hold(port, SOCK_DGRAM) : -1;
    if (p->held[1] < 0)
        (void)let_go(p);
    return p->held[1] >= 0;
}

void ports_lay_in(struct ports *p)
{
    if (p->held[0] < 0 && !p->taken[p->next])
        (void)hold_both(p, (uint16_t)(p->first + p->next));
}

bool ports_take(struct ports *p, int n, uint16_t *ret)
{
    int got = 0;
    for (size_t tried = 0; tried < count(p) && got < n; tried++) {
        size_t at = p->next;
        p->next = (p->next + 1) % count(p);
        uint16_t port = (uint16_t)(p->first + at);
        bool ours = let_go(p); /* it is the next one */
        if (p->taken[at] || (!ours && !(hold_both(p, port) && let_go(p))))
            continue;
        p->taken[at] = 1;
        ret[got++] = port;
    }
    if (got == n)
        return true;
    ports_give(p, ret, got);
    return false;
}

void ports_done(struct ports *p)
{
    if (p->taken)
        (void)let_go(p);
    free(p->taken);
    *p = (struct ports){.first = 1};
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
