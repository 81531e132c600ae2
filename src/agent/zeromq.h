/* ZeroMQ's functions, loaded when an agent starts, not linked: with the libraries it brings it
 * would cost every `muster` its time to start and its memory, and only agents speak it. One table
 * for the process; it stays. Its functions set errno. */
#pragma once

#include <zmq.h>

#define ZEROMQ_FUNCTIONS(X)                                                                        \
    X(strerror)                                                                                    \
    X(ctx_new)                                                                                     \
    X(ctx_set)                                                                                     \
    X(ctx_term)                                                                                    \
    X(socket)                                                                                      \
    X(close)                                                                                       \
    X(setsockopt)                                                                                  \
    X(getsockopt)                                                                                  \
    X(bind)                                                                                        \
    X(connect)                                                                                     \
    X(socket_monitor)                                                                              \
    X(send)                                                                                        \
    X(recv) X(msg_init) X(msg_recv) X(msg_more) X(msg_data) X(msg_size) X(msg_close)

struct zeromq_functions {
#define X(name) __typeof__(zmq_##name) *name;
    ZEROMQ_FUNCTIONS(X)
#undef X
};

/* Empty until zeromq_load has returned NULL. */
extern struct zeromq_functions zeromq;

/* Does nothing when it was loaded. NULL, or what is wrong as a clause. */
const char *zeromq_load(void);
