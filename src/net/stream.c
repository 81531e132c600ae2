#include "net/stream.h"

#include "base/buf.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/tls_session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*   OPEN ─stream_finish, TLS failed─▶ FINISHING ─flushed and peer gone, error or late─▶ CLOSED
 *     └──────────────── stream_close, peer gone, error, does not read ────────────────────▶ */
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
    struct loop_crowd *crowd;
    const struct stream_ops *ops; /* NULL until started */
    void *user;
    enum stream_state state;
    bool paused;
    bool counted;                /* among its crowd's and the loop's streams */
    bool said_goodbye;           /* our half is shut down */
    struct tls *tls;             /* NULL = plain */
    struct tls_session *session; /* from a TLS peer's first bytes on */
    struct stream_limits limits;
    struct buf in;  /* what the last read left, or ciphertext while it waits to shake hands; memory
                     * only when there is something */
    struct buf out; /* for the end of the turn; plaintext */
    struct rest *rest;
    struct link dirty;
    struct link waiting; /* has output that goes along with the next; not dirty then */
    struct link resumed;
    struct link finishing;
    struct link shaking;
    uint64_t cut_at_ms; /* loop time, when finishing */
    const char *why;
    union address peer;
};

static void count_out(struct stream *s)
{
    if (!s->counted)
        return;
    uint64_t key = address_key(&s->peer);
    struct map *by_address = &s->crowd->by_address;
    uintptr_t n = (uintptr_t)map_get(by_address, key);
    if (n > 1)
        map_put(by_address, key, (void *)(n - 1));
    else
        map_remove(by_address, key);
    s->crowd->streams--;
    s->loop->streams--;
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;
    count_out(s);
    if (s->ops)
        s->ops->closed(s->user, s->why);
    tls_session_free(s->session);
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
    list_remove(&s->waiting);
    list_remove(&s->resumed);
    list_remove(&s->finishing);
    list_remove(&s->shaking);
    uv_close((uv_handle_t *)&s->tcp, on_closed);
}

size_t stream_unsent(const struct stream *s)
{
    size_t own = s->session ? tls_session_unsent(s->session) : 0;
    return s->out.len + (s->rest ? s->rest->len : 0) + own;
}

bool stream_established(const struct stream *s)
{
    return !s->tls || (s->session && tls_session_established(s->session));
}

const char *stream_tls_error(const struct stream *s)
{
    return s->session ? tls_session_why(s->session) : NULL;
}

static void mark_dirty(struct stream *s)
{
    list_remove(&s->waiting);
    if (!link_in_list(&s->dirty))
        list_append(&s->loop->dirty, &s->dirty);
}

void stream_wait_no_more(struct link *in_waiting)
{
    mark_dirty(container_of(in_waiting, struct stream, waiting));
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

/* Makes ciphertext of the output, with what the session itself has to say in front of it. What is
 * sealed goes to the kernel or becomes the rest, so out holds plaintext again afterwards. */
static void seal(struct stream *s)
{
    bool last = s->state == STREAM_FINISHING;
    if (!last && s->out.len == 0 && tls_session_unsent(s->session) == 0)
        return;
    struct buf sealed = loop_take_spare(s->loop);
    bool done = tls_session_seal(s->session, s->out.data, s->out.len, last, &sealed);
    buf_clear(&s->out);
    loop_give_spare(s->loop, &s->out);
    s->out = sealed;
    if (!done && !last)
        stream_close(s, "TLS failed");
}

static void write_out(struct stream *s)
{
    if (s->rest)
        return;
    if (s->session)
        seal(s);
    if (s->out.len == 0 || s->state == STREAM_CLOSED || !loop_may_write(s->loop))
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

const char stream_not_reading[] = "does not read";

/* A turn may well produce more than the cap; only what the kernel refuses counts. */
static void cut_off_if_not_reading(struct stream *s)
{
    if (stream_unsent(s) <= s->limits.output_cap)
        return;
    write_out(s);
    if (s->state == STREAM_CLOSED || stream_unsent(s) <= s->limits.output_cap)
        return;
    char peer[ADDRESS_MAX];
    log_line(LOG_WARN, "peer does not read", "peer=%s unsent=%zu", stream_peer(s, peer),
             stream_unsent(s));
    stream_close(s, stream_not_reading);
}

/* False when nothing can be said any more, or not yet. */
static bool queue(struct stream *s, const void *data, size_t len)
{
    if (s->state != STREAM_OPEN || !stream_established(s))
        return false;
    if (!s->out.data)
        s->out = loop_take_spare(s->loop);
    buf_append(&s->out, data, len);
    return true;
}

void stream_send(struct stream *s, const void *data, size_t len)
{
    if (!queue(s, data, len))
        return;
    mark_dirty(s);
    cut_off_if_not_reading(s);
}

void stream_send_along(struct stream *s, const void *data, size_t len)
{
    if (!queue(s, data, len))
        return;
    if (!link_in_list(&s->dirty) && !link_in_list(&s->waiting))
        list_append(&s->loop->waiting, &s->waiting);
    cut_off_if_not_reading(s);
}

/* Plaintext goes to the read buffer, behind what was left there: one whole record may have waited
 * inside the session for its end. */
static uv_buf_t room_for_sealed(struct stream *s)
{
    enum { MOST = LOOP_READ_SIZE - TLS_RECORD_MAX };
    if (!s->loop->sealed_buffer)
        s->loop->sealed_buffer = xmalloc(MOST);
    size_t n = s->limits.input_max < MOST ? s->limits.input_max : MOST;
    return uv_buf_init((char *)s->loop->sealed_buffer, (unsigned)n);
}

/* What is left of the last read goes in front of the new bytes, so that frames are whole in one
 * place and nothing else is ever copied. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct stream *s = handle->data;
    if (s->tls) {
        *ret = room_for_sealed(s);
        return;
    }
    if (s->in.len > LOOP_KEEP_MAX) { /* read as UV_ENOBUFS, which closes it */
        *ret = uv_buf_init(NULL, 0);
        return;
    }
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

/* len bytes are in the read buffer, what was left the last time in front of them. */
static void hand_over(struct stream *s, size_t len)
{
    const uint8_t *data = s->loop->read_buffer;
    size_t used = s->ops->input(s->user, data, len);
    if (s->state == STREAM_OPEN)
        keep_input(s, data + used, len - used);
}

static void finish(struct stream *s);

static void open_sealed(struct stream *s, const uint8_t *sealed, size_t n)
{
    uint8_t *to = s->loop->read_buffer;
    size_t kept = s->in.len;
    if (kept > LOOP_KEEP_MAX) {
        stream_close(s, uv_strerror(UV_ENOBUFS));
        return;
    }
    if (kept > 0)
        memcpy(to, s->in.data, kept);
    size_t len = 0;
    enum tls_result r = tls_session_open(s->session, sealed, n, to + kept, &len);
    if (tls_session_unsent(s->session) > 0)
        mark_dirty(s);
    if (len > 0 && s->paused) /* the handshake ended meanwhile, and bytes came with its end */
        keep_input(s, to, kept + len);
    else if (len > 0)
        hand_over(s, kept + len);
    if (s->state != STREAM_OPEN)
        return;
    if (r == TLS_ENDED)
        stream_close(s, "peer closed");
    else if (r == TLS_FAILED)
        finish(s);
    else
        cut_off_if_not_reading(s);
}

/* Nothing more is read until the handshake has got its turn, so what waits is one read. */
static void wait_to_shake_hands(struct stream *s, size_t n)
{
    buf_append(&s->in, s->loop->sealed_buffer, n);
    uv_read_stop((uv_stream_t *)&s->tcp);
    list_append(&s->loop->shaking, &s->shaking);
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
    if (!s->tls)
        hand_over(s, s->in.len + (size_t)n);
    else if (stream_established(s))
        open_sealed(s, s->loop->sealed_buffer, (size_t)n);
    else
        wait_to_shake_hands(s, (size_t)n);
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
    if (link_in_list(&s->shaking))
        return;
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

/* Memory for the session is taken here, so that peers who say nothing do not cost it. */
void stream_shake_hands(struct link *in_shaking)
{
    struct stream *s = container_of(in_shaking, struct stream, shaking);
    list_remove(in_shaking);
    if (!s->session)
        s->session = tls_session_new(s->tls);
    struct buf sealed = s->in;
    s->in = (struct buf){0};
    open_sealed(s, sealed.data, sealed.len);
    buf_done(&sealed);
    if (s->state == STREAM_OPEN && !s->paused)
        start_reading(s);
}

static void finish(struct stream *s)
{
    s->state = STREAM_FINISHING;
    s->cut_at_ms = uv_now(&s->loop->uv) + STREAM_FINISH_MS;
    list_remove(&s->resumed);
    list_append(&s->loop->finishing, &s->finishing);
    buf_clear(&s->in);
    mark_dirty(s);
    start_reading(s);
}

void stream_finish(struct stream *s)
{
    if (s->state != STREAM_OPEN)
        return;
    if (stream_established(s))
        finish(s);
    else
        stream_close(s, "finished");
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
    const struct loop_crowd *crowd = s->crowd;
    if (crowd->streams >= crowd->limits.streams || s->loop->streams >= s->loop->streams_max)
        return "too many connections";
    uintptr_t n = (uintptr_t)map_get(&crowd->by_address, address_key(&s->peer));
    if (n >= crowd->limits.streams_per_address)
        return "too many connections from this address";
    return NULL;
}

static void count_in(struct stream *s)
{
    uint64_t key = address_key(&s->peer);
    uintptr_t n = (uintptr_t)map_get(&s->crowd->by_address, key);
    map_put(&s->crowd->by_address, key, (void *)(n + 1));
    s->crowd->streams++;
    s->loop->streams++;
    s->counted = true;
}

struct stream *stream_accept(struct loop *loop, uv_stream_t *listening, struct tls *tls,
                             struct loop_crowd *crowd)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    s->loop = loop;
    s->tls = tls;
    s->crowd = crowd;
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
                 stream_peer(s, peer), refused, crowd->streams);
    stream_close(s, refused);
    return NULL;
}
