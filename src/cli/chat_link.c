#include "cli/chat_link.h"

#include "base/clock.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { SEND_S = 5, READ_SIZE = 16384 };

/* "host:port" into two strings in the caller's memory; false when it is not of that form. */
static bool split_address(const char *text, char host[256], char port[8])
{
    const char *colon = strrchr(text, ':');
    if (!colon)
        return false;
    struct str h = {text, (size_t)(colon - text)};
    if (h.len >= 2 && h.at[0] == '[' && h.at[h.len - 1] == ']')
        h = (struct str){h.at + 1, h.len - 2};
    return h.len > 0 && str_copy(host, 256, h) && str_copy(port, 8, str_of(colon + 1));
}

/* 0 or an errno. The socket is left blocking, with a limit on how long a write may take. */
static int connect_within(int fd, const struct addrinfo *a, int timeout_ms)
{
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
        return errno;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, timeout_ms) <= 0)
        return ETIMEDOUT;
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
        return error ? error : errno;
    int on = 1;
    struct timeval limit = {.tv_sec = SEND_S};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fcntl(fd, F_SETFL, 0) < 0 ? errno : 0;
}

const char *chat_link_open(struct chat_link *link, const char *address,
                           const struct chat_tls_wish *tls, int timeout_ms)
{
    *link = (struct chat_link){.fd = -1};
    char host[256];
    char port[8];
    if (!split_address(address, host, port))
        return "an address is HOST:PORT";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int unresolved = getaddrinfo(host, port, &hints, &found);
    if (unresolved)
        return gai_strerror(unresolved);
    int error = 0;
    for (struct addrinfo *a = found; a && link->fd < 0; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        error = fd < 0 ? errno : connect_within(fd, a, timeout_ms);
        if (error == 0)
            link->fd = fd;
        else if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(found);
    link->reached = link->fd >= 0;
    link->heard_ms = clock_monotonic_ms();
    if (!link->reached || !tls->ca)
        return link->reached ? NULL : strerror(error);
    const char *why = chat_tls_open(&link->tls, link->fd, tls, host, timeout_ms);
    if (why) {
        close(link->fd);
        link->fd = -1;
    }
    return why;
}

void chat_link_done(struct chat_link *link)
{
    chat_tls_done(&link->tls);
    if (link->fd >= 0)
        close(link->fd);
    buf_done(&link->in);
    *link = (struct chat_link){.fd = -1};
}

static bool send_plain(struct chat_link *link, const uint8_t *data, size_t len)
{
    size_t at = 0;
    while (at < len) {
        ssize_t n = send(link->fd, data + at, len - at, MSG_NOSIGNAL);
        if (n <= 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    return at == len;
}

bool chat_link_send(struct chat_link *link, const struct chat_message *m)
{
    struct buf out = {0};
    chat_encode(&out, m);
    bool all = link->tls.session ? chat_tls_send(&link->tls, out.data, out.len)
                                 : send_plain(link, out.data, out.len);
    buf_done(&out);
    return all;
}

static enum chat_link_result broken(struct chat_link *link, const char *why)
{
    link->error = why;
    return LINK_BROKEN;
}

static enum chat_link_result wait_readable(struct chat_link *link, int stop_fd, int64_t deadline_ms)
{
    for (;;) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms < 0)
            left_ms = 0;
        struct pollfd p[2] = {{.fd = link->fd, .events = POLLIN},
                              {.fd = stop_fd, .events = POLLIN}};
        int n = poll(p, 2, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
        if (n < 0 && errno != EINTR)
            return broken(link, strerror(errno));
        if (p[1].revents)
            return LINK_STOPPED;
        if (p[0].revents)
            return LINK_MESSAGE;
        if (n == 0)
            return LINK_TIMEOUT;
    }
}

static enum chat_link_result read_plain(struct chat_link *link, uint8_t *to, size_t *ret_len)
{
    ssize_t n = recv(link->fd, to, READ_SIZE, 0);
    *ret_len = n > 0 ? (size_t)n : 0;
    if (n == 0)
        return broken(link, "it closed the connection");
    return n > 0 || errno == EINTR ? LINK_MESSAGE : broken(link, strerror(errno));
}

static enum chat_link_result read_sealed(struct chat_link *link, uint8_t *to, size_t *ret_len)
{
    ssize_t n = chat_tls_receive(&link->tls, to, READ_SIZE);
    *ret_len = n > 0 ? (size_t)n : 0;
    return n < 0 ? broken(link, link->tls.why) : LINK_MESSAGE;
}

/* A TLS alert, which would pass for the begin of a long frame of a command nobody has. */
static bool is_tls_alert(const struct buf *in)
{
    return in->len >= 4 && in->data[0] == 21 && in->data[1] == 3 && in->data[3] == 0;
}

static enum chat_link_result read_more(struct chat_link *link)
{
    uint8_t *at = buf_extend(&link->in, READ_SIZE);
    size_t len = 0;
    enum chat_link_result r =
        link->tls.session ? read_sealed(link, at, &len) : read_plain(link, at, &len);
    link->in.len -= READ_SIZE - len;
    if (len > 0) {
        link->heard_ms = clock_monotonic_ms();
        link->pinged = false;
    }
    if (r == LINK_MESSAGE && is_tls_alert(&link->in))
        return broken(link, "it speaks TLS on this port; --tls-ca says whom to believe");
    return r;
}

/* True when a whole frame is at the front of the buffer; a command we do not know is skipped. */
static bool take_message(struct chat_link *link, struct chat_message *ret)
{
    for (;;) {
        buf_consume(&link->in, link->used);
        link->used = 0;
        struct frame frame;
        enum frame_result r = frame_next(link->in.data, link->in.len, FRAME_MAX, &frame);
        if (r != FRAME_OK) {
            link->error = frame_error(r);
            return false;
        }
        link->used = frame.total;
        enum chat_kind kind = chat_find(frame.code, CHAT_FROM_US);
        if (kind == CHAT_KINDS)
            continue;
        struct cursor c = cursor_of(frame.payload, frame.payload_len);
        chat_decode(&c, kind, ret);
        link->error = c.error;
        return !cursor_failed(&c);
    }
}

void chat_link_watch(struct chat_link *link, int silence_ms)
{
    link->silence_ms = silence_ms;
}

static int64_t quiet_until(const struct chat_link *link)
{
    if (link->silence_ms == 0)
        return INT64_MAX;
    return link->heard_ms + (link->pinged ? link->silence_ms : link->silence_ms / 2);
}

/* Waits for something to read until the deadline, and asks for it when all is quiet. */
static enum chat_link_result wait_for_more(struct chat_link *link, int stop_fd, int64_t deadline_ms)
{
    for (;;) {
        int64_t quiet_ms = quiet_until(link);
        enum chat_link_result r =
            wait_readable(link, stop_fd, quiet_ms < deadline_ms ? quiet_ms : deadline_ms);
        if (r != LINK_TIMEOUT || quiet_ms >= deadline_ms)
            return r;
        if (link->pinged)
            return broken(link, "it does not answer");
        link->pinged = true;
        (void)chat_link_send(link, &(struct chat_message){.kind = CHAT_PING});
    }
}

enum chat_link_result chat_link_next(struct chat_link *link, int stop_fd, int64_t deadline_ms,
                                     struct chat_message *ret)
{
    for (;;) {
        while (take_message(link, ret)) {
            if (ret->kind != CHAT_PING && ret->kind != CHAT_PONG)
                return LINK_MESSAGE;
            if (ret->kind == CHAT_PING)
                (void)chat_link_send(link, &(struct chat_message){.kind = CHAT_PONG});
        }
        if (link->error)
            return LINK_BROKEN;
        enum chat_link_result r = wait_for_more(link, stop_fd, deadline_ms);
        if (r == LINK_MESSAGE)
            r = read_more(link);
        if (r != LINK_MESSAGE)
            return r;
    }
}
