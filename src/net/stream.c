#include "net/stream.h"

#include "base/buf.h"
#include "base/log.h"
#include "net/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*   OPEN ──stream_finish──▶ FINISHING ──flushed and peer gone, error or late──▶ CLOSED
 *     └──────────────── stream_close, peer gone, error, does not read ────────────▶ */
enum stream_state { STREAM_OPEN, STREAM_FINISHING, STREAM_CLOSED };

/* Output the kernel did not take at once; there is at most one per stream. */
struct rest {
    uv_write_t request;
    struct stream *stream;
    struct buf bytes;
    size_t len; /* of the end of bytes that was left */
};

struct stream {
    uv_tcp_t tcp;
    struct loop *loop;
    const struct stream_ops *ops; /* NULL until started */
    void *user;
    enum stream_state state;
    bool paused;
    bool counted;      /* among the loop's streams */
    bool said_goodbye; /* our half is shut down */
    struct stream_limits limits;
    struct buf in;  /* what the last read left; memory only when there is something */
    struct buf out; /* for the end of the turn */
    struct rest *rest;
    struct link dirty;
    struct link resumed;
    struct link finishing;
    uint64_t cut_at_ms; /* loop time, when finishing */
    const char *why;
    union address peer;
};

static void count_out(struct stream *s)
{
    if (!s->counted)
        return;
    uint64_t key = address_key(&s->peer);
    uintptr_t n = (uintptr_t)map_get(&s->loop->by_address, key);
    if (n > 1)
        map_put(&s->loop->by_address, key, (void *)(n - 1));
    else
        map_remove(&s->loop->by_address, key);
    s->loop->streams--;
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;
    count_out(s);
    if (s->ops)
        s->ops->closed(s->user, s->why);
    buf_done(&s->in);
    buf_done(&s->out);
    free(s);
}

void stream_close(struct stream *s, const char *why)
{
    if (s->state == STREAM_CLOSED)
        return;
    s->state = STREAM_CLOSED;
    s->why = why;
    list_remove(&s->dirty);
    list_remove(&s->resumed);
    list_remove(&s->finishing);
    uv_close((uv_handle_t *)&s->tcp, on_closed);
}

size_t stream_unsent(const struct stream *s)
{
    return s->out.len + (s->rest ? s->rest->len : 0);
}

static void mark_dirty(struct stream *s)
{
    if (!link_in_list(&s->dirty))
        list_append(&s->loop->dirty, &s->dirty);
}

/* Closing a socket with unread input sends a reset, which may overtake the last words we wrote. So
 * a finishing stream says that it is done and reads on until the peer hangs up too. */
static void say_goodbye(struct stream *s)
{
    if (s->said_goodbye || stream_unsent(s) > 0)
        return;
    s->said_goodbye = true;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&s->tcp, &fd) != 0 || shutdown(fd, SHUT_WR) != 0)
        stream_close(s, "finished");
}

static void on_rest_written(uv_write_t *request, int status)
{
    struct rest *rest = container_of(request, struct rest, request);
    struct stream *s = rest->stream;
    assert(s->rest == rest);
    s->rest = NULL;
    buf_done(&rest->bytes);
    free(rest);
    if (s->state == STREAM_CLOSED)
        return;
    if (status < 0) {
        stream_close(s, uv_strerror(status));
        return;
    }
    /* More may have been queued meanwhile, and a finishing stream takes its next step there. */
    mark_dirty(s);
}

static void keep_rest(struct stream *s, size_t taken)
{
    struct rest *rest = xcalloc(1, sizeof(*rest));
    rest->stream = s;
    rest->bytes = s->out;
    rest->len = s->out.len - taken;
    s->out = (struct buf){0};
    s->rest = rest;
    uv_buf_t bytes = uv_buf_init((char *)rest->bytes.data + taken, (unsigned)rest->len);
    int err = uv_write(&rest->request, (uv_stream_t *)&s->tcp, &bytes, 1, on_rest_written);
    if (err == 0)
        return;
    s->rest = NULL;
    buf_done(&rest->bytes);
    free(rest);
    stream_close(s, uv_strerror(err));
}

static void write_out(struct stream *s)
{
    if (s->out.len == 0 || s->rest)
        return;
    uv_buf_t bytes = uv_buf_init((char *)s->out.data, (unsigned)s->out.len);
    int n = uv_try_write((uv_stream_t *)&s->tcp, &bytes, 1);
    if (n < 0 && n != UV_EAGAIN) {
        stream_close(s, uv_strerror(n));
        return;
    }
    size_t taken = n > 0 ? (size_t)n : 0;
    if (taken < s->out.len) {
        keep_rest(s, taken);
        return;
    }
    buf_clear(&s->out);
    loop_give_spare(s->loop, &s->out);
}

void stream_write_now(struct link *in_dirty)
{
    struct stream *s = container_of(in_dirty, struct stream, dirty);
    list_remove(in_dirty);
    write_out(s);
    if (s->state == STREAM_FINISHING)
        say_goodbye(s);
}

void stream_send(struct stream *s, const void *data, size_t len)
{
    if (s->state != STREAM_OPEN)
        return;
    if (!s->out.data)
        s->out = loop_take_spare(s->loop);
    buf_append(&s->out, data, len);
    mark_dirty(s);
    if (stream_unsent(s) <= s->limits.output_cap)
        return;

    /* A turn may well produce more than the cap; only what the kernel refuses counts. */
    write_out(s);
    if (s->state == STREAM_CLOSED || stream_unsent(s) <= s->limits.output_cap)
        return;
    char peer[ADDRESS_MAX];
    log_line(LOG_WARN, "peer does not read", "peer=%s unsent=%zu", stream_peer(s, peer),
             stream_unsent(s));
    stream_close(s, "does not read");
}

/* What is left of the last read goes in front of the new bytes, so that frames are whole in one
 * place and nothing else is ever copied. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct stream *s = handle->data;
    assert(s->in.len <= LOOP_KEEP_MAX);
    uint8_t *to = s->loop->read_buffer;
    if (s->in.len > 0)
        memcpy(to, s->in.data, s->in.len);
    *ret = uv_buf_init((char *)to + s->in.len, (unsigned)s->limits.input_max);
}

static void keep_input(struct stream *s, const uint8_t *data, size_t len)
{
    buf_clear(&s->in);
    if (len > 0)
        buf_append(&s->in, data, len);
    else
        buf_done(&s->in);
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *unused)
{
    (void)unused;
    struct stream *s = handle->data;
    if (n == 0 || s->state == STREAM_CLOSED)
        return;
    if (n < 0) {
        stream_close(s, n == UV_EOF ? "peer closed" : uv_strerror((int)n));
        return;
    }
    if (s->state == STREAM_FINISHING)
        return;
    const uint8_t *data = s->loop->read_buffer;
    size_t len = s->in.len + (size_t)n;
    size_t used = s->ops->input(s->user, data, len);
    if (s->state == STREAM_OPEN)
        keep_input(s, data + used, len - used);
}

static void start_reading(struct stream *s)
{
    int err = uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read);
    if (err != 0 && err != UV_EALREADY)
        stream_close(s, uv_strerror(err));
}

void stream_pause(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    s->paused = true;
    list_remove(&s->resumed);
    uv_read_stop((uv_stream_t *)&s->tcp);
}

void stream_resume(struct stream *s)
{
    if (s->state != STREAM_OPEN || !s->paused)
        return;
    s->paused = false;
    list_append(&s->loop->resumed, &s->resumed);
}

void stream_hand_on(struct link *in_resumed)
{
    struct stream *s = container_of(in_resumed, struct stream, resumed);
    list_remove(in_resumed);
    if (s->in.len > 0) {
        size_t used = s->ops->input(s->user, s->in.data, s->in.len);
        if (s->state != STREAM_OPEN)
            return;
        buf_consume(&s->in, used);
        if (s->in.len == 0)
            buf_done(&s->in);
    }
    if (s->state == STREAM_OPEN && !s->paused)
        start_reading(s);
}

void stream_finish(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    s->state = STREAM_FINISHING;
    s->cut_at_ms = uv_now(&s->loop->uv) + STREAM_FINISH_MS;
    list_remove(&s->resumed);
    list_append(&s->loop->finishing, &s->finishing);
    buf_clear(&s->in);
    mark_dirty(s);
    start_reading(s);
}

bool stream_cut_if_late(struct link *in_finishing)
{
    struct stream *s = container_of(in_finishing, struct stream, finishing);
    if (uv_now(&s->loop->uv) < s->cut_at_ms)
        return false;
    stream_close(s, "finished");
    return true;
}

void stream_start(struct stream *s, const struct stream_ops *ops, void *user,
                  const struct stream_limits *limits)
{
    s->ops = ops;
    s->user = user;
    stream_set_limits(s, limits);
    start_reading(s);
}

void stream_set_limits(struct stream *s, const struct stream_limits *limits)
{
    assert(limits->input_max > 0 && limits->input_max <= LOOP_READ_SIZE);
    s->limits = *limits;
}

const char *stream_peer(const struct stream *s, char dst[ADDRESS_MAX])
{
    return address_print(&s->peer, dst);
}

/* NULL, or why the peer may not have one more connection. */
static const char *over_cap(const struct stream *s)
{
    const struct loop *loop = s->loop;
    if (loop->streams >= loop->limits.streams)
        return "too many connections";
    uintptr_t n = (uintptr_t)map_get(&loop->by_address, address_key(&s->peer));
    if (n >= loop->limits.streams_per_address)
        return "too many connections from this address";
    return NULL;
}

static void count_in(struct stream *s)
{
    uint64_t key = address_key(&s->peer);
    uintptr_t n = (uintptr_t)map_get(&s->loop->by_address, key);
    map_put(&s->loop->by_address, key, (void *)(n + 1));
    s->loop->streams++;
    s->counted = true;
}

struct stream *stream_accept(struct loop *loop, uv_stream_t *listening)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    s->loop = loop;
    uv_tcp_init(&loop->uv, &s->tcp);
    s->tcp.data = s;
    int peer_len = sizeof(s->peer);
    int err = uv_accept(listening, (uv_stream_t *)&s->tcp);
    if (err == 0)
        err = uv_tcp_getpeername(&s->tcp, &s->peer.any, &peer_len);
    const char *refused = err ? uv_strerror(err) : over_cap(s);
    if (!refused) {
        count_in(s);
        return s;
    }
    char peer[ADDRESS_MAX];
    if (loop_may_complain(loop))
        log_line(LOG_WARN, "connection refused", "peer=%s reason=\"%s\" open=%zu",
                 stream_peer(s, peer), refused, loop->streams);
    stream_close(s, refused);
    return NULL;
}
