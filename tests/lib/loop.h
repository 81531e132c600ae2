/* What tests of a running loop share. Nothing sleeps: the loop turns until what is awaited is
 * there. */
#pragma once

#include "lib/patience.h"
#include "lib/unit.h"
#include "net/listener.h"
#include "net/loop.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#define RUN_UNTIL(w_, condition_)                                                                  \
    do {                                                                                           \
        struct patience patience_ = {0};                                                           \
        while (!(condition_)) {                                                                    \
            assert_true(patience_lasts(&patience_));                                               \
            uv_run(&(w_)->loop.uv, UV_RUN_ONCE);                                                   \
        }                                                                                          \
    } while (0)

static inline uint16_t listener_port(const struct listener *listener)
{
    char text[ADDRESS_MAX];
    listener_address(listener, text);
    return (uint16_t)atoi(strrchr(text, ':') + 1);
}

/* A blocking socket, connected to the listener. The caller closes it. */
static inline int listener_dial(const struct listener *listener)
{
    union address to;
    assert_true(address_parse("127.0.0.1", listener_port(listener), &to));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1; /* what is said arrives, however little it is */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    assert_int_equal(connect(fd, &to.any, sizeof(to.v4)), 0);
    return fd;
}
