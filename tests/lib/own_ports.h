/* Ports that no other test has: a block of a hundred, below those that the system gives to outgoing
 * connections. Its last port stays bound until this program ends, which is how other tests see that
 * the block is taken. */
#pragma once

#include "lib/unit.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OWN_PORTS = 99, OWN_PORTS_FIRST = 10000, OWN_PORTS_BLOCKS = 200 };

/* A socket bound to the port at every address; -1 = the port is in use. */
static inline int own_port_bind(int type, int port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static inline bool own_port_is_free(int port)
{
    int tcp = own_port_bind(SOCK_STREAM, port);
    int udp = own_port_bind(SOCK_DGRAM, port);
    if (tcp >= 0)
        close(tcp);
    if (udp >= 0)
        close(udp);
    return tcp >= 0 && udp >= 0;
}

/* The first of OWN_PORTS ports, the same at each call. */
static inline uint16_t own_ports(void)
{
    static int first = 0;
    for (int i = 0; first == 0 && i < OWN_PORTS_BLOCKS; i++) {
        int block = OWN_PORTS_FIRST + (getpid() + i) % OWN_PORTS_BLOCKS * (OWN_PORTS + 1);
        int guard = own_port_bind(SOCK_STREAM, block + OWN_PORTS);
        int n = 0;
        while (guard >= 0 && n < OWN_PORTS && own_port_is_free(block + n))
            n++;
        if (n == OWN_PORTS)
            first = block;
        else if (guard >= 0)
            close(guard);
    }
    assert_true(first > 0);
    return (uint16_t)first;
}
