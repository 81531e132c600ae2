#include "net/http.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "net/http_parts.h"
#include "net/listening.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ACCEPT_MAX = 64, /* in one go; then others have their turn */
    CONN_MEMORY_STEP = 2 * 1024,
    GAP_MAX_MS = 1000, /* what one tick may add to the server's time */
    RUNS_IN_VAIN_MAX = 4,
    PAUSE_MS = 5,
    RUN_US = 500,  /* a run that takes longer is followed by a rest, as long at most */
    QUIET_US = 50, /* a turn of the loop that is shorter had work for nobody else */
};

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

void conn_set_deadline(struct http_conn *conn, int64_t delay_ms)
{
    struct http_server *s = conn->server;
    if (delay_ms == HTTP_NEVER) {
        conn->deadline_ms = HTTP_NEVER;
        return;
    }
    /* The server's time is up to a tick behind. */
    conn->deadline_ms = s->now_ms + LOOP_TICK_MS + delay_ms;
    if (conn->deadline_ms < s->earliest_ms)
        s->earliest_ms = conn->deadline_ms;
}

/* libmicrohttpd has no call to end a connection; it does so itself when the socket says that the
 * peer is gone. */
static void cut(struct http_conn *conn, const char *why)
{
    char peer[ADDRESS_MAX];
    if (log_enabled(LOG_DEBUG))
        log_line(LOG_DEBUG, "http connection cut", "peer=%s reason=\"%s\"",
                 address_print(&conn->peer, peer), why);
    conn->deadline_ms = HTTP_NEVER;
    (void)shutdown(conn->fd, SHUT_RDWR);
}

/* ── connections ───────────────────────────────────────────────────────────────────────────── */

static void count_in(struct http_conn *conn)
{
    struct http_server *s = conn->server;
    uint64_t key = address_key(&conn->peer);
    conn->origin = map_get(&s->by_address, key);
    if (!conn->origin) {
        conn->origin = xcalloc(1, sizeof(*conn->origin));
        map_put(&s->by_address, key, conn->origin);
    }
    conn->origin->connections++;
    s->figures.connections++;
}

static void count_out(struct http_conn *conn)
{
    struct http_server *s = conn->server;
    s->figures.connections--;
    if (--conn->origin->connections > 0)
        return;
    assert(conn->origin->answer_bytes == 0);
    map_remove(&s->by_address, address_key(&conn->peer));
    free(conn->origin);
}

static void print_peer(struct http_conn *conn)
{
    const struct in6_addr *v6 = &conn->peer.v6.sin6_addr;
    char *dst = conn->peer_text;
    if (conn->peer.any.sa_family != AF_INET6)
        (void)inet_ntop(AF_INET, &conn->peer.v4.sin_addr, dst, sizeof(conn->peer_text));
    else if (IN6_IS_ADDR_V4MAPPED(v6))
        (void)inet_ntop(AF_INET, v6->s6_addr + 12, dst, sizeof(conn->peer_text));
    else
        (void)inet_ntop(AF_INET6, v6, dst, sizeof(conn->peer_text));
}

static struct http_conn *conn_new(struct http_server *s, struct MHD_Connection *mhd)
{
    struct http_conn *conn = xcalloc(1, sizeof(*conn));
    conn->server = s;
    conn->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const struct sockaddr *peer =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    memcpy(&conn->peer, peer,
           peer->sa_family == AF_INET6 ? sizeof(conn->peer.v6) : sizeof(conn->peer.v4));
    print_peer(conn);
    if (s->tls)
        conn->lease = tls_lease_new(
            s->tls, MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session,
            HTTP_CONN_MEMORY + TLS_SWALLOW_MAX, &s->tls_reader);
    list_append(&s->conns, &conn->link);
    count_in(conn);
    conn_set_deadline(conn, s->limits.head_ms);
    return conn;
}

/* libmicrohttpd does not always say that a request is over: when it fails twice to answer a head
 * that took all of its memory, the connection just goes. */
static void conn_free(struct http_conn *conn)
{
    if (conn->request)
        request_end(conn->request);
    count_out(conn);
    list_remove(&conn->link);
    tls_lease_free(conn->lease);
    free(conn);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = conn_new(cls, mhd);
    } else {
        conn_free(*context);
        *context = NULL;
    }
}

/* NULL, or why the peer may not have one more connection. */
static const char *over_cap(const struct http_server *s, const union address *peer)
{
    if ((size_t)s->figures.connections >= s->limits.connections)
        return "too many connections";
    const struct http_origin *origin = map_get(&s->by_address, address_key(peer));
    if (origin && origin->connections >= s->limits.connections_per_address)
        return "too many connections from this address";
    return NULL;
}

static void admit(struct http_server *s, int fd, const union address *peer, socklen_t len)
{
    const char *refusal = over_cap(s, peer);
    if (refusal)
        (void)close(fd);
    else if (MHD_add_connection(s->daemon, fd, &peer->any, len) != MHD_YES) /* has closed it */
        refusal = "the HTTP server does not take it";
    char text[ADDRESS_MAX];
    s->figures.refused += refusal != NULL;
    if (refusal && loop_may_complain(s->loop))
        log_line(LOG_WARN, "connection refused", "peer=%s reason=\"%s\" open=%lld",
                 address_print(peer, text), refusal, (long long)s->figures.connections);
}

/* Without descriptors the peers wait in the kernel's queue. Asking again before the next tick would
 * only burn the processor, since the queue stays readable. */
static void pause_listening(struct http_server *s, int err)
{
    s->listen_paused = true;
    uv_poll_stop(&s->listen_ready);
    if (loop_may_complain(s->loop))
        log_line(LOG_WARN, "connection refused", "reason=\"%s\" open=%lld", strerror(err),
                 (long long)s->figures.connections);
}

static void on_listen_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct http_server *s = handle->data;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        union address peer = {0};
        socklen_t len = sizeof(peer);
        int fd = accept4(s->listen_fd, &peer.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            admit(s, fd, &peer, len);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_listening(s, errno);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return; /* nobody is there, or the peer's network failed */
        }
    }
}

static void resume_listening(struct http_server *s)
{
    if (s->listen_fd >= 0)
        uv_poll_start(&s->listen_ready, UV_READABLE, on_listen_ready);
}

static void end_wait(struct http_conn *conn)
{
    struct http_request *r = conn->request;
    if (!r)
        cut(conn, "no request");
    else if (r->phase == HTTP_ASKED)
        request_refuse(r, ERR_INTERNAL);
    else
        cut(conn, r->phase < HTTP_ASKED ? "request incomplete" : "does not read");
}

void http_server_tick(struct http_server *s, int64_t monotonic_ms)
{
    int64_t gap_ms = monotonic_ms - s->ticked_ms;
    s->ticked_ms = monotonic_ms;
    s->ticks++;
    if (s->n_poised > 0)
        server_run_again(s); /* those that have waited for long are suspended */
    s->now_ms += gap_ms < GAP_MAX_MS ? gap_ms : GAP_MAX_MS;
    if (s->listen_paused) {
        s->listen_paused = false;
        resume_listening(s);
    }
    if (s->now_ms < s->earliest_ms)
        return;
    s->earliest_ms = HTTP_NEVER;
    LIST_EACH(&s->conns, conn, struct http_conn, link)
    {
        if (conn->deadline_ms <= s->now_ms)
            end_wait(conn);
        if (conn->deadline_ms < s->earliest_ms)
            s->earliest_ms = conn->deadline_ms;
    }
}

/* ── libmicrohttpd on the loop ─────────────────────────────────────────────────────────────── */

static void on_daemon_again(uv_idle_t *handle);
static void on_daemon_ready(uv_poll_t *handle, int status, int events);

void server_run_again(struct http_server *s)
{
    if (!s->stopping && !s->resting)
        uv_idle_start(&s->daemon_again, on_daemon_again);
}

bool server_is_late(const struct http_server *s)
{
    return clock_monotonic_us() - s->run_began_us > RUN_US;
}

static void on_daemon_soon(uv_timer_t *handle);
static void drive(struct http_server *s);

/* Once a turn. The first one has only half a turn behind it. */
static void on_rest(uv_idle_t *handle)
{
    struct http_server *s = handle->data;
    int64_t now_us = clock_monotonic_us();
    bool quiet = s->rest_turn_us > 0 && now_us - s->rest_turn_us < QUIET_US;
    s->rest_turn_us = now_us;
    if (!quiet && now_us < s->rest_until_us)
        return;
    s->resting = false;
    uv_idle_stop(handle);
    uv_poll_start(&s->daemon_ready, UV_READABLE, on_daemon_ready);
    drive(s);
}

/* Requests that cost nothing to send must not take the loop from everybody else, so what HTTP takes
 * is at most about half of the time; what nobody else wants, it may have. A timer would not do: its
 * milliseconds are longer than most runs. */
static void rest(struct http_server *s, int64_t us)
{
    s->resting = true;
    s->rest_turn_us = 0;
    s->rest_until_us = clock_monotonic_us() + us;
    uv_poll_stop(&s->daemon_ready);
    uv_idle_stop(&s->daemon_again);
    uv_timer_stop(&s->daemon_soon);
    uv_idle_start(&s->daemon_again, on_rest);
}

/* While a TLS handshake waits for the client, libmicrohttpd says that it has something to do and
 * tries to read, over and over: one client that stalls would keep a processor busy. So when it has
 * called nobody a few times, it is asked again only after a pause. No timeout of its own is set, so
 * that "now" is all it ever says. */
static void drive(struct http_server *s)
{
    assert(!s->running);
    if (!loop_may_write(s->loop)) /* a run would send answers that wait */
        return;
    s->running = true;
    s->progress = false;
    s->run_began_us = clock_monotonic_us();
    request_call_next(s);
    (void)MHD_run(s->daemon);
    s->running = false;
    int64_t took_us = clock_monotonic_us() - s->run_began_us;
    s->runs_in_vain = s->progress ? 0 : s->runs_in_vain + 1;
    MHD_UNSIGNED_LONG_LONG ms = 0;
    if (took_us > RUN_US) {
        rest(s, took_us);
        return;
    }
    if (!list_empty(&s->in_line))
        server_run_again(s);
    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return;
    /* For those that are poised it says so always; whoever answers them runs it, or a tick does. */
    if (s->n_poised > 0 && s->runs_in_vain > 0)
        return;
    if (s->runs_in_vain < RUNS_IN_VAIN_MAX)
        server_run_again(s);
    else if (!uv_is_active((uv_handle_t *)&s->daemon_soon))
        uv_timer_start(&s->daemon_soon, on_daemon_soon, PAUSE_MS, 0);
}

static void on_daemon_soon(uv_timer_t *handle)
{
    drive(handle->data);
}

static void on_daemon_again(uv_idle_t *handle)
{
    uv_idle_stop(handle);
    drive(handle->data);
}

static void on_daemon_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct http_server *s = handle->data;
    s->runs_in_vain = 0;
    drive(s);
}

void http_server_go(struct http_server *s)
{
    enum { RUNS = 2 }; /* who waited gets his answer in the first, and sends it in the second */
    for (int i = 0; i < RUNS && !s->resting; i++) {
        if (uv_is_active((uv_handle_t *)&s->daemon_again))
            on_daemon_again(&s->daemon_again);
    }
}

/* libmicrohttpd says neither whose handshake failed nor why. It was the one that read last. */
static void complain_of_tls(struct http_server *s)
{
    char why[TLS_LEASE_WHY_MAX];
    char text[ADDRESS_MAX] = "";
    char quoted[LOG_QUOTE_MAX + 8];
    union address peer = {0};
    socklen_t len = sizeof(peer);
    if (!s->tls_reader || !tls_lease_why(s->tls_reader, why) || !loop_may_complain(s->loop))
        return;
    if (getpeername(tls_lease_fd(s->tls_reader), &peer.any, &len) == 0)
        address_print(&peer, text);
    log_line(LOG_WARN, "TLS failed", "port=http peer=%s reason=%s", text,
             log_quote(quoted, str_of(why)));
}

/* Its other complaints are about what clients did; each would be a line that a client can cause. */
static void on_daemon_says(void *cls, const char *format, va_list args)
{
    char text[256];
    char quoted[LOG_QUOTE_MAX + 8];
    if (strstr(format, "handshake"))
        complain_of_tls(cls);
    if (strstr(format, "HTTP response code is %u")) {
        va_list status;
        va_copy(status, args);
        request_refused(cls, va_arg(status, unsigned));
        va_end(status);
    }
    if (!log_enabled(LOG_DEBUG))
        return;
    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_line(LOG_DEBUG, "http", "says=%s", log_quote(quoted, str_of(text)));
}

static void on_daemon_panics(void *cls, const char *file, unsigned line, const char *reason)
{
    (void)cls;
    log_line(LOG_ERROR, "libmicrohttpd gave up", "file=%s line=%u reason=\"%s\"", file, line,
             reason ? reason : "");
    abort();
}

/* Paths and queries are decoded in wire/uri.c, where an escaped NUL does not end them. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct http_server *s)
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG | (s->tls ? MHD_USE_TLS : 0);
    /* What libmicrohttpd counts itself is only a second net under ours. */
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls ? (void *)tls_certificate_pem(s->tls) : NULL},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls ? (void *)tls_key_pem(s->tls) : NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    MHD_set_panic_func(on_daemon_panics, NULL);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, request_went_on, s, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_says, s,
        MHD_OPTION_URI_LOG_CALLBACK, request_began, s, MHD_OPTION_NOTIFY_COMPLETED, request_ended,
        s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escaped, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->limits.connections + 64,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONN_MEMORY,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)CONN_MEMORY_STEP,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        s->tls ? tls : tls + 2, MHD_OPTION_END);
}

/* ── the server ────────────────────────────────────────────────────────────────────────────── */

static void on_closed(uv_handle_t *handle)
{
    struct http_server *s = handle->data;
    if (--s->handles == 0)
        free(s);
}

/* Everything that can fail, before anything is given to the loop. */
static const char *open_all(struct http_server *s, const struct http_place *place)
{
    const char *why = NULL;
    s->listen_fd = place->held_fd ? listening_share(place->held_fd, &why)
                                  : listening_open(place->ip, place->port, &why);
    if (s->listen_fd < 0)
        return why;
    listening_address(s->listen_fd, &s->bound);
    s->daemon = start_daemon(s);
    if (s->daemon)
        return NULL;
    (void)close(s->listen_fd);
    return "libmicrohttpd does not start";
}

static void put_on_loop(struct http_server *s)
{
    uv_loop_t *uv = &s->loop->uv;
    int epoll_fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    if (uv_poll_init(uv, &s->listen_ready, s->listen_fd) != 0 ||
        uv_poll_init(uv, &s->daemon_ready, epoll_fd) != 0 ||
        uv_idle_init(uv, &s->daemon_again) != 0 || uv_timer_init(uv, &s->daemon_soon) != 0)
        abort(); /* only for descriptors that are none */
    s->handles = 4;
    s->listen_ready.data = s->daemon_ready.data = s->daemon_again.data = s->daemon_soon.data = s;
    uv_poll_start(&s->daemon_ready, UV_READABLE, on_daemon_ready);
    resume_listening(s);
}

int http_server_start(struct loop *loop, const struct http_place *place,
                      const struct http_limits *limits, const struct http_ops *ops,
                      struct http_server **ret, const char **ret_why)
{
    struct http_server *s = xcalloc(1, sizeof(*s));
    s->loop = loop;
    s->tls = place->tls;
    s->limits = *limits;
    s->ops = *ops;
    s->ticked_ms = clock_monotonic_ms();
    s->earliest_ms = HTTP_NEVER;
    list_init(&s->conns);
    list_init(&s->in_line);
    const char *why = open_all(s, place);
    if (why) {
        *ret_why = why;
        free(s);
        return ERR_IO;
    }
    put_on_loop(s);
    *ret = s;
    return 0;
}

void http_server_quiesce(struct http_server *s)
{
    if (s->listen_fd < 0)
        return;
    /* First the handle: when it is closed later, the number may be another socket's. */
    uv_close((uv_handle_t *)&s->listen_ready, on_closed);
    (void)close(s->listen_fd);
    s->listen_fd = -1;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    assert(!s->running);
    s->stopping = true;
    http_server_quiesce(s);
    LIST_EACH(&s->conns, conn, struct http_conn, link)
    {
        if (conn->request)
            request_resume(conn->request);
    }
    uv_close((uv_handle_t *)&s->daemon_ready, on_closed);
    uv_close((uv_handle_t *)&s->daemon_again, on_closed);
    uv_close((uv_handle_t *)&s->daemon_soon, on_closed);
    MHD_stop_daemon(s->daemon);
    assert(list_empty(&s->conns));
    map_done(&s->by_address);
}

const char *http_server_address(const struct http_server *s, char dst[ADDRESS_MAX])
{
    return address_print(&s->bound, dst);
}

void http_server_figures(const struct http_server *s, struct http_figures *ret)
{
    *ret = s->figures;
}
