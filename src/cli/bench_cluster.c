#include "cli/bench_cluster.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/bench_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PEERS_MAX = 256,
    REQUEST_MAX = 64 * 1024,
    MARK_MAX = 256,
    NAME_MAX_LEN = 48,
    NOBODY = -1,
};

const char *const cluster_fleet_names[CLUSTER_FLEETS] = {"solo", "friends", "raw"};

static const char *const marks[] = {"quilkin.dev/tokens", "muster.dev/ticket", "muster.dev/server",
                                    "muster.dev/session", "muster.dev/instance"};
enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

/* Its name is <fleet>-<slot>-<generation>: a slot whose game has ended holds the next one. */
struct server {
    int generation;
    int64_t version;
    bool allocated;
    char marks[MARKS][MARK_MAX]; /* "" = absent */
};

/* Numbers of slots, first in, first out. */
struct line {
    int *slots;
    int cap;
    int head;
    int n;
};

struct fleet {
    struct server *servers;
    int n;
    int64_t version; /* of its last change */
    struct line ready;
    struct line playing;
    int playing_max;
};

struct peer {
    int fd;
    struct buf in;
    struct buf out;
    bool waits;  /* until out can be sent */
    int watches; /* a fleet, or NOBODY */
    int64_t due_ns;
};

struct standin {
    struct cluster_shared *shared;
    int epoll;
    int listening;
    struct fleet fleets[CLUSTER_FLEETS];
    int64_t version;
    struct peer *peers[PEERS_MAX];
    struct peer *held[PEERS_MAX]; /* whose write waits for its time, in order */
    int held_head;
    int n_held;
    int64_t free_ns;   /* when the last of them is done */
    struct buf filler; /* of an object: what nobody of us reads */
    struct buf body;   /* scratch, as the next */
    struct buf object;
};

/* A request, whole. */
struct request {
    char method[8];
    char target[1024];
    struct str body;
};

/* ── lines ─────────────────────────────────────────────────────────────────────────────────── */

static void line_put(struct line *l, int slot)
{
    l->slots[(l->head + l->n++) % l->cap] = slot;
}

static int line_take(struct line *l)
{
    int slot = l->slots[l->head];
    l->head = (l->head + 1) % l->cap;
    l->n--;
    return slot;
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

/* What makes a real one large: who has written which field. */
static void fill(struct standin *s, int bytes)
{
    static const char entry[] =
        "{\"manager\":\"controller\",\"operation\":\"Update\",\"apiVersion\":\"agones.dev/v1\","
        "\"time\":\"2026-11-16T08:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
        "\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:agones.dev/ready-container-id\":{},"
        "\"f:agones.dev/sdk-version\":{}},\"f:finalizers\":{\".\":{},\"v:\\\"agones.dev\\\"\":{}},"
        "\"f:labels\":{\".\":{},\"f:agones.dev/fleet\":{},\"f:agones.dev/gameserverset\":{}}},"
        "\"f:spec\":{\".\":{},\"f:container\":{},\"f:health\":{\".\":{},\"f:failureThreshold\":{},"
        "\"f:initialDelaySeconds\":{},\"f:periodSeconds\":{}},\"f:ports\":{},\"f:scheduling\":{}},"
        "\"f:status\":{\".\":{},\"f:address\":{},\"f:nodeName\":{},\"f:ports\":{},\"f:state\":{}}}"
        "}";
    do {
        buf_append(&s->filler, ",", s->filler.len > 0);
        buf_append(&s->filler, entry, sizeof(entry) - 1);
    } while (s->filler.len + sizeof(entry) < (size_t)bytes);
}

static void name_of(char dst[NAME_MAX_LEN], const struct standin *s, int fleet, int slot)
{
    snprintf(dst, NAME_MAX_LEN, "%s-%d-%d", cluster_fleet_names[fleet], slot,
             s->fleets[fleet].servers[slot].generation);
}

static void write_ports(struct json_writer *w, int slot)
{
    json_key_text(w, "address", STR("10.0.0.1"));
    json_key_text(w, "nodeName", STR("node"));
    json_key(w, "ports");
    json_open_array(w);
    json_open_object(w);
    json_key_text(w, "name", STR("game"));
    json_key_int(w, "port", 1024 + slot);
    json_close_object(w);
    json_close_array(w);
}

static void write_metadata(struct json_writer *w, const struct standin *s, int fleet, int slot)
{
    const struct server *g = &s->fleets[fleet].servers[slot];
    char name[NAME_MAX_LEN];
    name_of(name, s, fleet, slot);
    json_open_object(w);
    json_key_text(w, "name", str_of(name));
    json_key_text(w, "namespace", STR("default"));
    json_key_id(w, "resourceVersion", g->version);
    json_key(w, "labels");
    json_open_object(w);
    json_key_text(w, "agones.dev/fleet", str_of(cluster_fleet_names[fleet]));
    json_close_object(w);
    json_key(w, "annotations");
    json_open_object(w);
    for (int i = 0; i < MARKS; i++) {
        if (g->marks[i][0])
            json_key_text(w, marks[i], str_of(g->marks[i]));
    }
    json_close_object(w);
    json_key(w, "managedFields");
    json_open_array(w);
    json_raw(w, (struct str){(const char *)s->filler.data, s->filler.len});
    json_close_array(w);
    json_close_object(w);
}

static void write_object(struct json_writer *w, const struct standin *s, int fleet, int slot)
{
    bool allocated = s->fleets[fleet].servers[slot].allocated;
    json_open_object(w);
    json_key_text(w, "apiVersion", STR("agones.dev/v1"));
    json_key_text(w, "kind", STR("GameServer"));
    json_key(w, "metadata");
    write_metadata(w, s, fleet, slot);
    json_key(w, "status");
    json_open_object(w);
    json_key_text(w, "state", allocated ? STR("Allocated") : STR("Ready"));
    write_ports(w, slot);
    json_close_object(w);
    json_close_object(w);
}

/* ── connections ───────────────────────────────────────────────────────────────────────────── */

/* What is left goes out when there is room again. */
static void flush(struct standin *s, struct peer *p)
{
    ssize_t n = send(p->fd, p->out.data, p->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        buf_consume(&p->out, (size_t)n);
    if (p->waits == (p->out.len > 0))
        return;
    p->waits = p->out.len > 0;
    struct epoll_event e = {.events = EPOLLIN | (p->waits ? (uint32_t)EPOLLOUT : 0), .data.ptr = p};
    (void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &e);
}

static void print(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(struct buf *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Answers with what is in s->body. */
static void answer(struct standin *s, struct peer *p, const char *status)
{
    print(&p->out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
          status, s->body.len);
    buf_append(&p->out, s->body.data, s->body.len);
    flush(s, p);
}

static void refuse(struct standin *s, struct peer *p, const char *status)
{
    buf_clear(&s->body);
    print(&s->body, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"%s\"}", status);
    answer(s, p, status);
}

/* ── watches ───────────────────────────────────────────────────────────────────────────────── */

static void put_line(struct standin *s, struct peer *p, const struct buf *line)
{
    print(&p->out, "%zx\r\n", line->len);
    buf_append(&p->out, line->data, line->len);
    buf_append(&p->out, "\r\n", 2);
    flush(s, p);
}

/* Whoever watches is told how it is now. */
static void tell(struct standin *s, const char *type, int fleet, int slot)
{
    struct json_writer w = {.out = &s->object};
    bool written = false;
    for (int i = 0; i < PEERS_MAX; i++) {
        struct peer *p = s->peers[i];
        if (!p || p->watches != fleet)
            continue;
        if (!written) {
            buf_clear(&s->object);
            json_open_object(&w);
            json_key_text(&w, "type", str_of(type));
            json_key(&w, "object");
            write_object(&w, s, fleet, slot);
            json_close_object(&w);
            buf_append(&s->object, "\n", 1);
            written = true;
        }
        put_line(s, p, &s->object);
    }
}

/* A bookmark comes at once, so that the watch is known to work. What changed since that version we
 * do not keep. */
static void begin_watch(struct standin *s, struct peer *p, int fleet, int64_t version)
{
    print(&p->out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n");
    buf_clear(&s->body);
    if (version < s->fleets[fleet].version)
        print(&s->body, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                        "\"message\":\"too old resource version\"}}\n");
    else
        print(&s->body,
              "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"GameServer\",\"metadata\":"
              "{\"resourceVersion\":\"%" PRId64 "\"}}}\n",
              s->version);
    p->watches = fleet;
    put_line(s, p, &s->body);
}

/* ── changes ───────────────────────────────────────────────────────────────────────────────── */

static void changed(struct standin *s, const char *type, int fleet, int slot)
{
    s->fleets[fleet].servers[slot].version = ++s->version;
    s->fleets[fleet].version = s->version;
    tell(s, type, fleet, slot);
}

/* A game is over: its server goes, and another comes. */
static void replace(struct standin *s, int fleet, int slot)
{
    struct server *g = &s->fleets[fleet].servers[slot];
    changed(s, "DELETED", fleet, slot);
    *g = (struct server){.generation = g->generation + 1};
    line_put(&s->fleets[fleet].ready, slot);
    changed(s, "ADDED", fleet, slot);
}

static const struct json *at(const struct json *v, const char *key)
{
    return v && json_kind(v) == JSON_KIND_OBJECT ? json_member(v, key) : NULL;
}

static void merge_marks(struct server *g, const struct json *annotations)
{
    for (int i = 0; i < MARKS; i++) {
        const struct json *value = at(annotations, marks[i]);
        if (value && !str_copy(g->marks[i], MARK_MAX, json_get_text(value)))
            abort(); /* nothing that Muster writes here is so long */
    }
}

static int fleet_named(struct str name)
{
    for (int i = 0; i < CLUSTER_FLEETS; i++) {
        if (str_eq(name, str_of(cluster_fleet_names[i])))
            return i;
    }
    return NOBODY;
}

static void write_allocated(struct standin *s, int fleet, int slot)
{
    struct json_writer w = {.out = &s->body};
    char name[NAME_MAX_LEN];
    buf_clear(&s->body);
    json_open_object(&w);
    json_key_text(&w, "apiVersion", STR("allocation.agones.dev/v1"));
    json_key_text(&w, "kind", STR("GameServerAllocation"));
    json_key(&w, "status");
    json_open_object(&w);
    json_key_text(&w, "state", slot == NOBODY ? STR("UnAllocated") : STR("Allocated"));
    if (slot != NOBODY) {
        name_of(name, s, fleet, slot);
        json_key_text(&w, "gameServerName", str_of(name));
        write_ports(&w, slot);
    }
    json_close_object(&w);
    json_close_object(&w);
}

static int take_ready(struct standin *s, int fleet, const struct json *annotations)
{
    struct fleet *f = &s->fleets[fleet];
    if (f->ready.n == 0)
        return NOBODY;
    int slot = line_take(&f->ready);
    f->servers[slot].allocated = true;
    merge_marks(&f->servers[slot], annotations);
    line_put(&f->playing, slot);
    s->shared->allocated++;
    return slot;
}

static void allocate(struct standin *s, struct peer *p, const struct json *body)
{
    const struct json *spec = at(body, "spec");
    const struct json *selectors = at(spec, "selectors");
    const struct json *first =
        selectors && json_length(selectors) > 0 ? json_item(selectors, 0) : NULL;
    const struct json *name = at(at(first, "matchLabels"), "agones.dev/fleet");
    int fleet = name ? fleet_named(json_get_text(name)) : NOBODY;
    s->shared->posts++;
    if (fleet == NOBODY) {
        refuse(s, p, "400 Bad Request");
        return;
    }
    struct fleet *f = &s->fleets[fleet];
    int slot = take_ready(s, fleet, at(at(spec, "metadata"), "annotations"));
    write_allocated(s, fleet, slot);
    answer(s, p, "201 Created");
    if (slot != NOBODY)
        changed(s, "MODIFIED", fleet, slot);
    if (f->playing_max > 0 && f->playing.n > f->playing_max)
        replace(s, fleet, line_take(&f->playing));
}

static void patch(struct standin *s, struct peer *p, int fleet, int slot, const struct json *body)
{
    struct server *g = &s->fleets[fleet].servers[slot];
    struct json_writer w = {.out = &s->body};
    const struct json *metadata = at(body, "metadata");
    const struct json *version = at(metadata, "resourceVersion");
    char known[24];
    snprintf(known, sizeof(known), "%" PRId64, g->version);
    s->shared->patches++;
    if (version && !str_eq(json_get_text(version), str_of(known))) {
        s->shared->conflicts++;
        refuse(s, p, "409 Conflict");
        return;
    }
    merge_marks(g, at(metadata, "annotations"));
    changed(s, "MODIFIED", fleet, slot);
    buf_clear(&s->body);
    write_object(&w, s, fleet, slot);
    answer(s, p, "200 OK");
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static bool find(const struct standin *s, const char *name, int *ret_fleet, int *ret_slot)
{
    char known[NAME_MAX_LEN];
    const char *dash = strchr(name, '-');
    int fleet = dash ? fleet_named((struct str){name, (size_t)(dash - name)}) : NOBODY;
    long slot = fleet == NOBODY ? 0 : strtol(dash + 1, NULL, 10);
    if (fleet == NOBODY || slot < 0 || slot >= s->fleets[fleet].n)
        return false;
    name_of(known, s, fleet, (int)slot);
    *ret_fleet = fleet;
    *ret_slot = (int)slot;
    return strcmp(known, name) == 0;
}

static int64_t number_in(const char *target, const char *key)
{
    const char *found = strstr(target, key);
    return found ? strtoll(found + strlen(key), NULL, 10) : 0;
}

static void list(struct standin *s, struct peer *p, int fleet, const char *target)
{
    struct json_writer w = {.out = &s->body};
    int64_t limit = number_in(target, "&limit=");
    int64_t from = number_in(target, "&continue=");
    int64_t n = s->fleets[fleet].n;
    int64_t to = limit > 0 && from + limit < n ? from + limit : n;
    buf_clear(&s->body);
    json_open_object(&w);
    json_key_text(&w, "kind", STR("GameServerList"));
    json_key(&w, "metadata");
    json_open_object(&w);
    json_key_id(&w, "resourceVersion", s->version);
    if (to < n)
        json_key_id(&w, "continue", to);
    json_close_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int64_t i = from; i >= 0 && i < to; i++)
        write_object(&w, s, fleet, (int)i);
    json_close_array(&w);
    json_close_object(&w);
    answer(s, p, "200 OK");
}

static void look(struct standin *s, struct peer *p, const char *target)
{
    static const char selector[] = "labelSelector=agones.dev%2Ffleet%3D";
    const char *label = strstr(target, selector);
    label = label ? label + sizeof(selector) - 1 : "";
    int fleet = fleet_named((struct str){label, strcspn(label, "&")});
    if (fleet == NOBODY)
        refuse(s, p, "404 Not Found");
    else if (strstr(target, "&watch=1"))
        begin_watch(s, p, fleet, number_in(target, "&resourceVersion="));
    else
        list(s, p, fleet, target);
}

static void serve(struct standin *s, struct peer *p, const struct request *r)
{
    static const char one[] = "/apis/agones.dev/v1/namespaces/default/gameservers/";
    static const char all[] = "/apis/agones.dev/v1/namespaces/default/gameservers?";
    static const char allocations[] =
        "/apis/allocation.agones.dev/v1/namespaces/default/gameserverallocations";
    char why[JSON_WHY_MAX];
    int fleet = 0, slot = 0;
    struct json *body = r->body.len > 0 ? json_parse(r->body, why) : NULL;
    bool is_one = strncmp(r->target, one, sizeof(one) - 1) == 0;
    if (strcmp(r->method, "POST") == 0 && strcmp(r->target, allocations) == 0) {
        allocate(s, p, body);
    } else if (strcmp(r->method, "PATCH") == 0 && is_one &&
               find(s, r->target + sizeof(one) - 1, &fleet, &slot)) {
        patch(s, p, fleet, slot, body);
    } else if (strcmp(r->method, "GET") == 0 && strncmp(r->target, all, sizeof(all) - 1) == 0) {
        look(s, p, r->target);
    } else {
        s->shared->other_calls++;
        refuse(s, p, "404 Not Found");
    }
    json_free(body);
}

/* Bytes of it; 0 while it is not whole. */
static size_t read_request(const struct buf *in, struct request *ret)
{
    const char *text = (const char *)in->data;
    const char *end = in->len > 0 ? memmem(text, in->len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return 0;
    char head[4096];
    size_t len = (size_t)(end + 4 - text);
    if (!str_copy(head, sizeof(head), (struct str){text, len}) ||
        sscanf(head, "%7s %1023s", ret->method, ret->target) != 2)
        abort(); /* nobody here sends such a head */
    const char *length = strcasestr(head, "\r\nContent-Length: ");
    size_t body = length ? strtoul(length + 18, NULL, 10) : 0;
    if (in->len < len + body)
        return 0;
    ret->body = (struct str){text + len, body};
    return len + body;
}

/* ── writes that wait for their time ───────────────────────────────────────────────────────── */

static void hold(struct standin *s, struct peer *p, int64_t writes_per_s)
{
    int64_t now_ns = monotonic_ns();
    s->free_ns = (s->free_ns > now_ns ? s->free_ns : now_ns) + 1000000000 / writes_per_s;
    p->due_ns = s->free_ns;
    s->held[(s->held_head + s->n_held++) % PEERS_MAX] = p;
}

static void serve_next(struct standin *s, struct peer *p)
{
    struct request r;
    size_t n = read_request(&p->in, &r);
    if (n > 0)
        serve(s, p, &r);
    buf_consume(&p->in, n);
}

static void serve_due(struct standin *s)
{
    while (s->n_held > 0 && s->held[s->held_head]->due_ns <= monotonic_ns()) {
        struct peer *p = s->held[s->held_head];
        s->held_head = (s->held_head + 1) % PEERS_MAX;
        s->n_held--;
        p->due_ns = 0;
        serve_next(s, p);
    }
}

/* Each has one request under way at most. */
static void take_request(struct standin *s, struct peer *p)
{
    struct request r;
    int64_t writes_per_s = s->shared->writes_per_s;
    if (p->due_ns > 0 || read_request(&p->in, &r) == 0)
        return;
    if (strcmp(r.method, "GET") == 0 || writes_per_s == 0)
        serve_next(s, p);
    else
        hold(s, p, writes_per_s);
}

/* ── the process ───────────────────────────────────────────────────────────────────────────── */

static void welcome(struct standin *s)
{
    int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int i = 0;
    while (i < PEERS_MAX && s->peers[i])
        i++;
    if (fd < 0 || i == PEERS_MAX)
        abort(); /* the benchmark's own clients are fewer */
    struct peer *p = xcalloc(1, sizeof(*p));
    *p = (struct peer){.fd = fd, .watches = NOBODY};
    s->peers[i] = p;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    (void)epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* It stays in line with what it wanted written, so as not to be freed twice. */
static void part(struct standin *s, struct peer *p)
{
    if (p->due_ns > 0) {
        (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
        return;
    }
    for (int i = 0; i < PEERS_MAX; i++) {
        if (s->peers[i] == p)
            s->peers[i] = NULL;
    }
    close(p->fd);
    buf_done(&p->in);
    buf_done(&p->out);
    free(p);
}

static void hear(struct standin *s, struct peer *p, uint32_t events)
{
    if (events & EPOLLOUT)
        flush(s, p);
    uint8_t *to = buf_extend(&p->in, REQUEST_MAX);
    ssize_t n = recv(p->fd, to, REQUEST_MAX, MSG_DONTWAIT);
    p->in.len -= REQUEST_MAX - (size_t)(n > 0 ? n : 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        part(s, p);
    else
        take_request(s, p);
}

static void run(void *user)
{
    struct standin *s = user;
    struct epoll_event events[PEERS_MAX];
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    (void)epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listening, &e);
    for (;;) {
        int n = epoll_wait(s->epoll, events, PEERS_MAX, s->n_held > 0 ? 1 : -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr)
                hear(s, events[i].data.ptr, events[i].events);
            else
                welcome(s);
        }
        serve_due(s);
    }
}

static bool listen_somewhere(struct cluster *c, struct standin *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listening < 0 || bind(s->listening, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(s->listening, PEERS_MAX) != 0 ||
        getsockname(s->listening, (struct sockaddr *)&a, &len) != 0)
        return false;
    snprintf(c->address, sizeof(c->address), "127.0.0.1:%u", ntohs(a.sin_port));
    return true;
}

static void make_fleet(struct standin *s, int fleet, int n)
{
    struct fleet *f = &s->fleets[fleet];
    f->n = n;
    f->servers = xcalloc((size_t)n, sizeof(*f->servers));
    f->ready = (struct line){.slots = xcalloc((size_t)n, sizeof(int)), .cap = n};
    f->playing = (struct line){.slots = xcalloc((size_t)n, sizeof(int)), .cap = n};
    for (int i = 0; i < n; i++) {
        f->servers[i].version = ++s->version;
        line_put(&f->ready, i);
    }
    f->version = s->version;
}

bool cluster_start(struct cluster *c, struct bench *b, const struct cluster_plan *plan)
{
    struct standin *s = xcalloc(1, sizeof(*s));
    s->version = 1;
    for (int i = 0; i < CLUSTER_FLEETS; i++)
        make_fleet(s, i, plan->servers[i]);
    s->fleets[CLUSTER_SOLO].playing_max = plan->playing;
    fill(s, plan->object_bytes);
    void *shared =
        mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    c->shared = shared == MAP_FAILED ? NULL : shared;
    s->shared = c->shared;
    bool ok = c->shared && listen_somewhere(c, s);
    c->pid = ok ? child_start(run, s) : 0;
    if (ok)
        close(s->listening);
    /* Ours is a copy. */
    for (int i = 0; i < CLUSTER_FLEETS; i++) {
        free(s->fleets[i].servers);
        free(s->fleets[i].ready.slots);
        free(s->fleets[i].playing.slots);
    }
    buf_done(&s->filler);
    free(s);
    return (ok && c->pid > 0) || bench_fail(b, "a cluster cannot be started: %s", strerror(errno));
}

void cluster_end(struct cluster *c)
{
    child_end(c->pid);
    if (c->shared)
        munmap(c->shared, sizeof(*c->shared));
    *c = (struct cluster){0};
}
