/* Wire: many framed connections on one epoll, for the benchmark's own peers: chat servers, game
 * servers, echoes. It must cost little beside what it measures, so a turn reads every connection
 * once, hands over whole frames, and writes what was queued once. Owned by whoever embeds it; used
 * from one thread. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

struct wire_peer {
    struct wire *wire;
    int fd;
    struct buf in;  /* the beginning of a frame */
    struct buf out; /* for the end of the turn, or what the kernel has not taken */
    struct link dirty;
    bool stuck; /* waits for the kernel to take more */
};

struct wire {
    int epoll;
    uint8_t *read_buffer;
    struct list dirty;
    int listening; /* -1 = nobody is accepted */

    /* A whole frame has come. */
    void (*frame)(struct wire *w, struct wire_peer *p, const struct frame *f);

    /* The other side has hung up; p is closed and will not be heard of again. May be NULL. */
    void (*lost)(struct wire *w, struct wire_peer *p);

    /* Somebody connected; returns his peer, zeroed. Only when listening. */
    struct wire_peer *(*accepted)(struct wire *w);
};

/* False with errno when the system gives no descriptor. */
bool wire_init(struct wire *w);
void wire_done(struct wire *w);

/* Connects p to "address:port"; blocks until it is. False with errno. */
bool wire_connect(struct wire *w, struct wire_peer *p, const char *address);

/* A socket that listens on a free port of the loopback, for a wire of this process or of a child;
 * ret is "127.0.0.1:port". -1 with errno. */
int wire_listener(char ret[64]);

/* Accepts from it; it belongs to the wire now. False with errno. */
bool wire_accept_on(struct wire *w, int listener);

void wire_close(struct wire_peer *p);

/* Queues bytes for the end of the turn. */
void wire_send(struct wire_peer *p, const void *data, size_t len);

/* Writes what is queued. */
void wire_flush(struct wire *w);

/* Waits for input (at most timeout_ms), reads all that is there, writes what that caused. */
void wire_turn(struct wire *w, int timeout_ms);

static inline int32_t wire_i32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                     (uint32_t)p[3] << 24);
}

static inline void wire_put_i32(uint8_t *p, int32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)((uint32_t)v >> (8 * i));
}
