#include "cli/bench_wire.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 64 * 1024, KEEP_MAX = FRAME_MAX + 2, EVENTS = 512, BACKLOG = 1024 };

bool wire_init(struct wire *w)
{
    w->listening = -1;
    list_init(&w->dirty);
    w->read_buffer = xmalloc(KEEP_MAX + READ_SIZE);
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    return w->epoll >= 0;
}

void wire_done(struct wire *w)
{
    free(w->read_buffer);
    w->read_buffer = NULL;
    if (w->listening >= 0)
        close(w->listening);
    if (w->epoll >= 0)
        close(w->epoll);
    w->epoll = -1;
}

/* ── connecting ────────────────────────────────────────────────────────────────────────────── */

static bool parse_address(const char *text, struct sockaddr_in *ret)
{
    char ip[64];
    const char *colon = strchr(text, ':');
    *ret = (struct sockaddr_in){.sin_family = AF_INET};
    bool good = colon && str_copy(ip, sizeof(ip), (struct str){text, (size_t)(colon - text)}) &&
                inet_pton(AF_INET, ip, &ret->sin_addr) == 1;
    if (!good) {
        errno = EINVAL;
        return false;
    }
    unsigned long port = strtoul(colon + 1, NULL, 10);
    ret->sin_port = htons((uint16_t)port);
    return true;
}

static bool watch(struct wire *w, struct wire_peer *p)
{
    int on = 1;
    p->wire = w;
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, p->fd, &e) == 0;
}

bool wire_connect(struct wire *w, struct wire_peer *p, const char *address)
{
    struct sockaddr_in to;
    if (!parse_address(address, &to))
        return false;
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0)
        return false;
    if (connect(p->fd, (struct sockaddr *)&to, sizeof(to)) == 0 && watch(w, p))
        return true;
    int error = errno;
    close(p->fd);
    p->fd = -1;
    errno = error;
    return false;
}

int wire_listener(char ret[64])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
        close(fd);
        return -1;
    }
    snprintf(ret, 64, "127.0.0.1:%u", ntohs(a.sin_port));
    return fd;
}

bool wire_accept_on(struct wire *w, int listener)
{
    w->listening = listener;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, listener, &e) == 0;
}

static void accept_all(struct wire *w)
{
    for (;;) {
        int fd = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct wire_peer *p = w->accepted(w);
        p->fd = fd;
        (void)watch(w, p);
    }
}

void wire_close(struct wire_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    list_remove(&p->dirty);
    buf_done(&p->in);
    buf_done(&p->out);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

void wire_send(struct wire_peer *p, const void *data, size_t len)
{
    buf_append(&p->out, data, len);
    if (!link_in_list(&p->dirty) && !p->stuck)
        list_append(&p->wire->dirty, &p->dirty);
}

static void set_stuck(struct wire_peer *p, bool stuck)
{
    if (p->stuck == stuck)
        return;
    p->stuck = stuck;
    struct epoll_event e = {.events = stuck ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = p};
    (void)epoll_ctl(p->wire->epoll, EPOLL_CTL_MOD, p->fd, &e);
}

static void write_out(struct wire_peer *p)
{
    ssize_t n = send(p->fd, p->out.data, p->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        buf_consume(&p->out, (size_t)n);
    else if (errno != EAGAIN)
        buf_clear(&p->out); /* reading finds out what happened */
    set_stuck(p, p->out.len > 0);
}

void wire_flush(struct wire *w)
{
    struct link *n;
    while ((n = list_first(&w->dirty))) {
        list_remove(n);
        write_out(container_of(n, struct wire_peer, dirty));
    }
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void lose(struct wire *w, struct wire_peer *p)
{
    wire_close(p);
    if (w->lost)
        w->lost(w, p);
}

static void read_in(struct wire *w, struct wire_peer *p)
{
    uint8_t *data = w->read_buffer;
    size_t len = p->in.len;
    if (len > 0)
        memcpy(data, p->in.data, len);
    ssize_t n = recv(p->fd, data + len, READ_SIZE, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            lose(w, p);
        return;
    }
    len += (size_t)n;
    size_t used = 0;
    struct frame f;
    while (p->fd >= 0 && frame_next(data + used, len - used, FRAME_MAX, &f) == FRAME_OK) {
        w->frame(w, p, &f);
        used += f.total;
    }
    if (p->fd < 0)
        return;
    buf_clear(&p->in);
    if (used < len)
        buf_append(&p->in, data + used, len - used);
}

void wire_turn(struct wire *w, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(w->epoll, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        struct wire_peer *p = events[i].data.ptr;
        if (!p) {
            accept_all(w);
            continue;
        }
        if (p->fd >= 0 && events[i].events & EPOLLOUT)
            write_out(p);
        if (p->fd >= 0 && events[i].events & ~(uint32_t)EPOLLOUT)
            read_in(w, p);
    }
    wire_flush(w);
}
