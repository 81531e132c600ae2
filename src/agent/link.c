#include "agent/link.h"

#include "agent/zeromq.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "net/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SOCKETS_MAX = 32 * 1024, /* three for each game server */
    PATH_BYTES = 128,
    EVENT_BYTES = 64,
    SECOND_PEER_QUIET_MS = 60 * 1000, /* between two lines about the same link */
    SPARES_MAX = 4,
    SPARES_MS = 20, /* after one was taken: its game server starts first */
    NEXT_SPARE_MS = 2,
};

struct links {
    struct loop *loop;
    void *context;
    uv_idle_t hurry;   /* active while links have more than a turn's share */
    struct list dirty; /* links to be looked at before the loop waits */
    size_t n;

    /* Open and bound to nothing. Making one takes as long as a twentieth of a game server's start,
     * and would be done on its processor. */
    struct game_link *spares[SPARES_MAX];
    int n_spares;
    uv_timer_t lay_in;
    int handles; /* of ours that are not closed */
    bool ended;
};

/* A message that waits for the peer. */
struct unsent {
    struct link link;
    size_t len;
    char bytes[];
};

struct game_link {
    struct links *links;
    struct link dirty;
    int64_t name;
    char path[PATH_BYTES];
    game_link_message *message;
    void *user;
    void *socket; /* NULL = closed */
    void *monitor;
    uv_poll_t socket_ready;
    uv_poll_t monitor_ready;
    int handles;
    int peers; /* connections that stand */
    bool held; /* see game_link_hold */
    uint64_t complained_ms;
    struct list unsent;
    size_t unsent_bytes;
};

static void mark(struct game_link *l)
{
    if (!link_in_list(&l->dirty))
        list_append(&l->links->dirty, &l->dirty);
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

static bool send_one(struct game_link *l, struct str bytes)
{
    mark(l);
    return zeromq.send(l->socket, bytes.at, bytes.len, ZMQ_DONTWAIT) >= 0;
}

static void drop_unsent(struct game_link *l, struct unsent *u)
{
    list_remove(&u->link);
    l->unsent_bytes -= u->len;
    free(u);
}

static void send_waiting(struct game_link *l)
{
    struct link *n;
    while ((n = list_first(&l->unsent))) {
        struct unsent *u = container_of(n, struct unsent, link);
        if (zeromq.send(l->socket, u->bytes, u->len, ZMQ_DONTWAIT) < 0)
            return;
        drop_unsent(l, u);
    }
}

bool game_link_send_now(struct game_link *l, struct str bytes)
{
    return list_empty(&l->unsent) && send_one(l, bytes);
}

bool game_link_send(struct game_link *l, struct str bytes)
{
    if (game_link_send_now(l, bytes))
        return true;
    if (l->unsent_bytes + bytes.len > LINK_UNSENT_MAX)
        return false;
    struct unsent *u = xmalloc(sizeof(*u) + bytes.len);
    *u = (struct unsent){.len = bytes.len};
    memcpy(u->bytes, bytes.at, bytes.len);
    list_append(&l->unsent, &u->link);
    l->unsent_bytes += u->len;
    return true;
}

/* ── receiving ─────────────────────────────────────────────────────────────────────────────── */

/* Nobody speaks in parts, and a part is no message. */
static void skip_parts(struct game_link *l, zmq_msg_t *m)
{
    while (zeromq.msg_more(m)) {
        zeromq.msg_close(m);
        zeromq.msg_init(m);
        if (zeromq.msg_recv(m, l->socket, ZMQ_DONTWAIT) < 0)
            return;
    }
}

static bool receive_one(struct game_link *l)
{
    zmq_msg_t m;
    zeromq.msg_init(&m);
    bool got = zeromq.msg_recv(&m, l->socket, ZMQ_DONTWAIT) >= 0;
    if (got && zeromq.msg_more(&m)) {
        skip_parts(l, &m);
        l->message(l->user, STR(""));
    } else if (got) {
        l->message(l->user, (struct str){zeromq.msg_data(&m), zeromq.msg_size(&m)});
    }
    zeromq.msg_close(&m);
    return got;
}

static int events_of(const struct game_link *l)
{
    int events = 0;
    size_t len = sizeof(events);
    return zeromq.getsockopt(l->socket, ZMQ_EVENTS, &events, &len) == 0 ? events : 0;
}

/* Until nothing is left: true; or until it has had its share of the turn. */
static bool look_at(struct game_link *l)
{
    for (int i = 0; i < LINK_TURN_MAX; i++) {
        int events = events_of(l);
        bool can_send = events & ZMQ_POLLOUT && !list_empty(&l->unsent);
        bool can_read = events & ZMQ_POLLIN && !l->held;
        if (!can_read && !can_send)
            return true;
        if (can_send)
            send_waiting(l);
        if (can_read)
            (void)receive_one(l);
        if (!l->socket)
            return true;
    }
    return false;
}

static void on_hurry(uv_idle_t *handle)
{
    (void)handle; /* what matters is that the loop does not wait */
}

void links_turn(struct links *ls)
{
    struct list now;
    struct link *n;
    list_init(&now);
    list_move_all(&now, &ls->dirty);
    while ((n = list_first(&now))) {
        struct game_link *l = container_of(n, struct game_link, dirty);
        list_remove(n);
        if (!look_at(l))
            mark(l);
    }
    if (list_empty(&ls->dirty))
        uv_idle_stop(&ls->hurry);
    else
        uv_idle_start(&ls->hurry, on_hurry);
}

static void on_socket_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct game_link *l = handle->data;
    mark(l);
}

/* ── who is there ──────────────────────────────────────────────────────────────────────────── */

/* A PAIR ignores whoever comes second without a word. */
static void complain(struct game_link *l)
{
    uint64_t now_ms = uv_now(&l->links->loop->uv);
    if (l->complained_ms != 0 && now_ms - l->complained_ms < SECOND_PEER_QUIET_MS)
        return;
    l->complained_ms = now_ms;
    log_line(LOG_WARN, "a second process has connected to a game server's socket and is ignored",
             "server=%lld", (long long)l->name);
}

/* An event has two parts: number and value, then the address. */
static bool take_event(struct game_link *l)
{
    uint8_t number[EVENT_BYTES];
    char address[PATH_BYTES];
    if (zeromq.recv(l->monitor, number, sizeof(number), ZMQ_DONTWAIT) < 0)
        return false;
    (void)zeromq.recv(l->monitor, address, sizeof(address), ZMQ_DONTWAIT);
    uint16_t event = 0;
    memcpy(&event, number, sizeof(event));
    if (event == ZMQ_EVENT_ACCEPTED && ++l->peers > 1)
        complain(l);
    if (event == ZMQ_EVENT_DISCONNECTED && l->peers > 0)
        l->peers--;
    return true;
}

static void on_monitor_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct game_link *l = handle->data;
    while (take_event(l))
        continue;
    if (l->socket)
        mark(l); /* whoever has come may be sent what waits */
}

/* ── opening and closing ───────────────────────────────────────────────────────────────────── */

static void on_lay_in(uv_timer_t *handle);

struct links *links_open(struct loop *loop, char why[LINK_WHY_MAX])
{
    const char *problem = zeromq_load();
    if (problem) {
        snprintf(why, LINK_WHY_MAX, "%s", problem);
        return NULL;
    }
    struct links *ls = xcalloc(1, sizeof(*ls));
    ls->loop = loop;
    ls->context = zeromq.ctx_new();
    if (!ls->context)
        abort(); /* out of memory, as in xcalloc */
    zeromq.ctx_set(ls->context, ZMQ_MAX_SOCKETS, SOCKETS_MAX);
    list_init(&ls->dirty);
    uv_idle_init(&loop->uv, &ls->hurry);
    uv_timer_init(&loop->uv, &ls->lay_in);
    ls->hurry.data = ls->lay_in.data = ls;
    ls->handles = 2;
    uv_timer_start(&ls->lay_in, on_lay_in, 0, 0);
    return ls;
}

static void links_free_if_over(struct links *ls)
{
    if (!ls->ended || ls->n > 0)
        return;
    zeromq.ctx_term(ls->context);
    free(ls);
}

static void on_ours_closed(uv_handle_t *handle)
{
    struct links *ls = handle->data;
    ls->ended = --ls->handles == 0;
    links_free_if_over(ls);
}

void links_close(struct links *ls)
{
    if (!ls)
        return;
    while (ls->n_spares > 0)
        game_link_close(ls->spares[--ls->n_spares]);
    uv_close((uv_handle_t *)&ls->hurry, on_ours_closed);
    uv_close((uv_handle_t *)&ls->lay_in, on_ours_closed);
}

static void set(void *socket, int option, int value)
{
    (void)zeromq.setsockopt(socket, option, &value, sizeof(value));
}

static bool open_sockets(struct game_link *l)
{
    char monitored[PATH_BYTES];
    int64_t max = LINK_BYTES_MAX;
    l->socket = zeromq.socket(l->links->context, ZMQ_PAIR);
    l->monitor = zeromq.socket(l->links->context, ZMQ_PAIR);
    if (!l->socket || !l->monitor)
        return false;
    set(l->socket, ZMQ_LINGER, 0);
    set(l->socket, ZMQ_SNDHWM, LINK_QUEUE_MAX);
    set(l->socket, ZMQ_RCVHWM, LINK_QUEUE_MAX);
    (void)zeromq.setsockopt(l->socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
    set(l->monitor, ZMQ_LINGER, 0);
    set(l->monitor, ZMQ_RCVHWM, 0); /* ZeroMQ's thread must not wait for us in the middle of it */
    snprintf(monitored, sizeof(monitored), "inproc://monitor-%p", (void *)l);
    return zeromq.socket_monitor(l->socket, monitored,
                                 ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) == 0 &&
           zeromq.connect(l->monitor, monitored) == 0;
}

static bool bind_path(struct game_link *l, int listener)
{
    char endpoint[PATH_BYTES + 8];
    snprintf(endpoint, sizeof(endpoint), "ipc://%s", l->path);
    if (listener >= 0)
        set(l->socket, ZMQ_USE_FD, listener);
    return zeromq.bind(l->socket, endpoint) == 0;
}

static void poll_socket(struct game_link *l, uv_poll_t *handle, void *socket, uv_poll_cb call)
{
    int fd = -1;
    size_t len = sizeof(fd);
    (void)zeromq.getsockopt(socket, ZMQ_FD, &fd, &len);
    handle->data = l;
    if (uv_poll_init(&l->links->loop->uv, handle, fd) != 0)
        abort(); /* it is a descriptor, and nobody else watches it */
    l->handles++;
    uv_poll_start(handle, UV_READABLE, call);
}

static void close_sockets(struct game_link *l)
{
    if (l->socket) {
        zeromq.socket_monitor(l->socket, NULL, 0);
        zeromq.close(l->socket);
    }
    if (l->monitor)
        zeromq.close(l->monitor);
    l->socket = l->monitor = NULL;
}

/* NULL with errno. */
static struct game_link *link_open(struct links *ls)
{
    struct game_link *l = xcalloc(1, sizeof(*l));
    *l = (struct game_link){.links = ls};
    list_init(&l->unsent);
    if (!open_sockets(l)) {
        int why = errno;
        close_sockets(l);
        free(l);
        errno = why;
        return NULL;
    }
    ls->n++;
    poll_socket(l, &l->socket_ready, l->socket, on_socket_ready);
    poll_socket(l, &l->monitor_ready, l->monitor, on_monitor_ready);
    return l;
}

/* One at a time: there are others to be heard. What cannot be made is made when it is wanted, or
 * says why then. */
static void on_lay_in(uv_timer_t *handle)
{
    struct links *ls = handle->data;
    struct game_link *l = ls->n_spares < SPARES_MAX ? link_open(ls) : NULL;
    if (!l)
        return;
    ls->spares[ls->n_spares++] = l;
    if (ls->n_spares < SPARES_MAX)
        uv_timer_start(&ls->lay_in, on_lay_in, NEXT_SPARE_MS, 0);
}

static struct game_link *take_spare(struct links *ls)
{
    if (ls->n_spares == 0)
        return link_open(ls);
    uv_timer_start(&ls->lay_in, on_lay_in, SPARES_MS, 0);
    return ls->spares[--ls->n_spares];
}

struct game_link *links_bind(struct links *ls, const char *path, int listener, int64_t name,
                             game_link_message *message, void *user, char why[LINK_WHY_MAX])
{
    struct game_link *l = take_spare(ls);
    if (!l || !str_copy(l->path, sizeof(l->path), str_of(path)) || !bind_path(l, listener)) {
        snprintf(why, LINK_WHY_MAX, "cannot bind the socket %.150s: %s", path,
                 zeromq.strerror(errno));
        game_link_close(l);
        if (listener >= 0)
            close(listener); /* ZeroMQ has it only when it has bound */
        return NULL;
    }
    l->name = name;
    l->message = message;
    l->user = user;
    on_monitor_ready(&l->monitor_ready, 0, 0); /* or its first news would never be told */
    return l;
}

void game_link_hold(struct game_link *l)
{
    l->held = true;
}

void game_link_release(struct game_link *l)
{
    l->held = false;
    if (!look_at(l))
        mark(l);
}

static void on_link_closed(uv_handle_t *handle)
{
    struct game_link *l = handle->data;
    if (--l->handles > 0)
        return;
    struct links *ls = l->links;
    free(l);
    ls->n--;
    links_free_if_over(ls);
}

/* The descriptors are ZeroMQ's and are gone with its sockets, so they are let go of first. */
void game_link_close(struct game_link *l)
{
    if (!l)
        return;
    struct link *n;
    list_remove(&l->dirty);
    while ((n = list_first(&l->unsent)))
        drop_unsent(l, container_of(n, struct unsent, link));
    uv_close((uv_handle_t *)&l->socket_ready, on_link_closed);
    uv_close((uv_handle_t *)&l->monitor_ready, on_link_closed);
    close_sockets(l);
}
