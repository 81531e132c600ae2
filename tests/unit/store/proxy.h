/* A proxy before a PostgreSQL, on a thread of its own, that cuts and holds the connection on which
 * a leader commits. Belongs to the test that started it. */
#pragma once

#include "postgres.h"

#include "base/buf.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { PROXY_PAIRS = 64 };

/* What the client has sent that the server shall not have yet stays in `kept`. */
struct proxy_pair {
    int client; /* -1 = gone */
    int server; /* -1 = the place is free */
    bool commits;
    bool holds;
    struct buf kept;
};

struct proxy {
    int port;
    int listener;
    int wake;
    int target;
    pthread_t thread;
    struct proxy_pair pairs[PROXY_PAIRS];

    _Atomic bool stop;
    pthread_mutex_t lock; /* guards what follows */
    bool hold;            /* from now on of connections that commit */
    bool release;         /* what is kept goes on its way, and those connections end */
    int64_t cut_at;       /* bytes of commits until the connection is cut; -1 = never */
    bool cut_answer;      /* … of their answers instead */
    int cuts;
    int64_t sent; /* of commits, and their answers */
    int64_t answered;
};

static inline int proxy_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline void proxy_end(struct proxy_pair *p)
{
    if (p->client >= 0)
        close(p->client);
    if (p->server >= 0)
        close(p->server);
    buf_done(&p->kept);
    *p = (struct proxy_pair){.client = -1, .server = -1};
}

static inline void proxy_accept(struct proxy *x)
{
    int client = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);
    int server = client >= 0 ? proxy_connect(x->target) : -1;
    for (int i = 0; i < PROXY_PAIRS && server >= 0; i++) {
        if (x->pairs[i].server < 0) {
            x->pairs[i].client = client;
            x->pairs[i].server = server;
            return;
        }
    }
    if (client >= 0)
        close(client);
    if (server >= 0)
        close(server);
}

/* Hands n bytes on, or fewer when the connection is to be cut before. False when it is. */
static inline bool proxy_pass(struct proxy *x, struct proxy_pair *p, bool answer, const char *at,
                              size_t n)
{
    int to = answer ? p->client : p->server;
    bool cut = false;
    pthread_mutex_lock(&x->lock);
    if (p->commits) {
        *(answer ? &x->answered : &x->sent) += (int64_t)n;
        if (x->cut_at >= 0 && x->cut_answer == answer) {
            cut = (int64_t)n > x->cut_at;
            if (cut)
                n = (size_t)x->cut_at;
            x->cut_at = cut ? -1 : x->cut_at - (int64_t)n;
            x->cuts += cut;
        }
    }
    pthread_mutex_unlock(&x->lock);
    return (n == 0 || send(to, at, n, MSG_NOSIGNAL) == (ssize_t)n) && !cut;
}

static inline void proxy_move(struct proxy *x, struct proxy_pair *p, bool answer)
{
    char bytes[65536];
    ssize_t n = recv(answer ? p->server : p->client, bytes, sizeof(bytes), 0);
    if (n > 0 && !answer && !p->commits)
        p->commits = memmem(bytes, (size_t)n, "muster commit", 13) != NULL;
    if (n > 0 && p->holds && !answer) {
        buf_append(&p->kept, bytes, (size_t)n);
        return;
    }
    if (n > 0 && proxy_pass(x, p, answer, bytes, (size_t)n))
        return;
    if (p->holds && !answer) { /* the client has given up; what it sent may come yet */
        close(p->client);
        p->client = -1;
        return;
    }
    proxy_end(p);
}

static inline void proxy_heed(struct proxy *x)
{
    pthread_mutex_lock(&x->lock);
    bool hold = x->hold;
    bool release = x->release;
    pthread_mutex_unlock(&x->lock);
    for (int i = 0; i < PROXY_PAIRS; i++) {
        struct proxy_pair *p = &x->pairs[i];
        if (p->server >= 0 && release && p->holds) {
            (void)send(p->server, p->kept.data, p->kept.len, MSG_NOSIGNAL);
            usleep(200000); /* a client that goes while it waits is noticed, too */
            proxy_end(p);
        }
        p->holds = p->holds || (hold && p->server >= 0 && p->commits);
    }
    pthread_mutex_lock(&x->lock);
    x->hold = x->hold && !hold;
    x->release = x->release && !release;
    pthread_mutex_unlock(&x->lock);
}

static inline void *proxy_run(void *arg)
{
    struct proxy *x = arg;
    for (;;) {
        struct pollfd fds[2 + 2 * PROXY_PAIRS];
        fds[0] = (struct pollfd){.fd = x->wake, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = x->listener, .events = POLLIN};
        for (int i = 0; i < PROXY_PAIRS; i++) {
            fds[2 + 2 * i] = (struct pollfd){.fd = x->pairs[i].client, .events = POLLIN};
            fds[3 + 2 * i] = (struct pollfd){.fd = x->pairs[i].server, .events = POLLIN};
        }
        (void)poll(fds, 2 + 2 * PROXY_PAIRS, -1);
        eventfd_t n;
        if (fds[0].revents)
            (void)eventfd_read(x->wake, &n);
        proxy_heed(x);
        if (x->stop)
            return NULL;
        if (fds[1].revents)
            proxy_accept(x);
        for (int i = 0; i < PROXY_PAIRS; i++) {
            struct proxy_pair *p = &x->pairs[i];
            if (fds[2 + 2 * i].revents && p->client == fds[2 + 2 * i].fd && p->server >= 0)
                proxy_move(x, p, false);
            if (fds[3 + 2 * i].revents && p->server == fds[3 + 2 * i].fd && p->server >= 0)
                proxy_move(x, p, true);
        }
    }
}

static inline void proxy_start(struct proxy *x)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    *x = (struct proxy){.target = postgres.port, .cut_at = -1};
    for (int i = 0; i < PROXY_PAIRS; i++)
        x->pairs[i] = (struct proxy_pair){.client = -1, .server = -1};
    pthread_mutex_init(&x->lock, NULL);
    x->wake = eventfd(0, EFD_CLOEXEC);
    x->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(x->listener, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(x->listener, 64), 0);
    assert_int_equal(getsockname(x->listener, (struct sockaddr *)&any, &len), 0);
    x->port = ntohs(any.sin_port);
    assert_int_equal(pthread_create(&x->thread, NULL, proxy_run, x), 0);
}

static inline void proxy_stop(struct proxy *x)
{
    x->stop = true;
    assert_int_equal(eventfd_write(x->wake, 1), 0);
    assert_int_equal(pthread_join(x->thread, NULL), 0);
    for (int i = 0; i < PROXY_PAIRS; i++)
        proxy_end(&x->pairs[i]);
    close(x->listener);
    close(x->wake);
}

static inline const char *proxy_url(const struct proxy *x)
{
    static char url[160];
    snprintf(url, sizeof(url), "postgres://muster:open%%2Fsesame@127.0.0.1:%d/postgres", x->port);
    return url;
}

/* After so many more bytes of commits, or of their answers. */
static inline void proxy_cut(struct proxy *x, bool answer, int64_t after)
{
    pthread_mutex_lock(&x->lock);
    x->cut_answer = answer;
    x->cut_at = after;
    pthread_mutex_unlock(&x->lock);
}

/* Returns when the proxy has done it. */
static inline void proxy_set(struct proxy *x, bool *what)
{
    pthread_mutex_lock(&x->lock);
    *what = true;
    pthread_mutex_unlock(&x->lock);
    assert_int_equal(eventfd_write(x->wake, 1), 0);
    for (bool waits = true; waits;) {
        usleep(1000);
        pthread_mutex_lock(&x->lock);
        waits = *what;
        pthread_mutex_unlock(&x->lock);
    }
}

static inline int proxy_cuts(struct proxy *x)
{
    pthread_mutex_lock(&x->lock);
    int n = x->cuts;
    pthread_mutex_unlock(&x->lock);
    return n;
}
