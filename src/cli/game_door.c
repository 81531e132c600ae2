#include "cli/game_door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, EVENTS = 32 };

static bool watch(const struct game_door *d, int fd, void *what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

bool game_door_open(struct game_door *d, int bound)
{
    for (int i = 0; i < GAME_DOOR_VISITORS; i++)
        d->visitors[i].fd = -1;
    d->listener = bound;
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (d->epoll >= 0 && listen(bound, BACKLOG) == 0 && watch(d, bound, NULL))
        return true;
    int error = errno;
    game_door_close(d);
    errno = error;
    return false;
}

static void let_go(struct game_door_visitor *v)
{
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
}

void game_door_close(struct game_door *d)
{
    if (d->epoll < 0)
        return;
    for (int i = 0; i < GAME_DOOR_VISITORS; i++)
        let_go(&d->visitors[i]);
    close(d->epoll);
    d->epoll = -1;
}

static struct game_door_visitor *place_for_one(struct game_door *d)
{
    for (int i = 0; i < GAME_DOOR_VISITORS; i++) {
        if (d->visitors[i].fd < 0)
            return &d->visitors[i];
    }
    return NULL;
}

static void let_in(struct game_door *d)
{
    int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct game_door_visitor *v = fd >= 0 ? place_for_one(d) : NULL;
    if (v && watch(d, fd, v))
        *v = (struct game_door_visitor){.fd = fd, .serial = ++d->serial};
    else if (fd >= 0)
        close(fd);
}

/* The place and who is there now, so that a late answer does not reach his successor. */
static uint64_t number_of(const struct game_door *d, const struct game_door_visitor *v)
{
    return (uint64_t)v->serial << 32 | (uint64_t)(v - d->visitors);
}

static void read_line(struct game_door *d, struct game_door_visitor *v)
{
    int32_t lobby = 0;
    int32_t account = 0;
    char token[GAME_DOOR_TOKEN];
    v->asked = true;
    /* NOLINTNEXTLINE(cert-err34-c): what is no number is refused below, as 0 */
    int n = sscanf(v->line, "%" SCNd32 " %" SCNd32 " %255s", &lobby, &account, token);
    if (n == 3 && lobby > 0 && account > 0)
        d->knock(d->user, number_of(d, v), lobby, account, token);
    else
        game_door_answer(d, number_of(d, v), false, "a line is LOBBY ACCOUNT TOKEN");
}

static void listen_to(struct game_door *d, struct game_door_visitor *v)
{
    ssize_t n = recv(v->fd, v->line + v->len, sizeof(v->line) - 1 - v->len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || v->asked) { /* gone, or too talkative */
        let_go(v);
        return;
    }
    v->len += (size_t)n;
    v->line[v->len] = '\0';
    if (strchr(v->line, '\n'))
        read_line(d, v);
}

void game_door_turn(struct game_door *d)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(d->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct game_door_visitor *v = events[i].data.ptr;
        if (!v)
            let_in(d);
        else if (v->fd >= 0)
            listen_to(d, v);
    }
}

void game_door_answer(struct game_door *d, uint64_t visitor, bool yes, const char *why)
{
    char line[GAME_DOOR_LINE];
    uint32_t place = (uint32_t)visitor;
    if (d->epoll < 0 || place >= GAME_DOOR_VISITORS)
        return;
    struct game_door_visitor *v = &d->visitors[place];
    if (v->fd < 0 || v->serial != visitor >> 32)
        return;
    int len =
        snprintf(line, sizeof(line), "%s%.400s\n", yes ? "welcome" : "refused: ", yes ? "" : why);
    (void)send(v->fd, line, (size_t)len, MSG_NOSIGNAL);
    let_go(v);
}
