#include "api/front.h"

#include "api/chat_client.h"
#include "api/chat_manager.h"
#include "api/chat_server.h"
#include "base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    DESCRIPTORS_LOOP = 12,    /* the loop itself, its signals, its listeners */
    DESCRIPTOR_RESERVE = 256, /* for files that are opened later */
};

/* Of the first `limit` descriptors; those above are not worth the calls. */
static size_t descriptors_in_use(size_t limit)
{
    size_t n = 0;
    for (int fd = 0; fd < 4096 && (size_t)fd < limit; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* When there are not enough descriptors for all, HTTP gets a quarter of them at most, and of the
 * rest a quarter is nobody's but servers'. */
static void share(struct front_places *p, size_t left)
{
    if (p->http + p->servers.streams + p->players.streams > left && p->http > left / 4)
        p->http = left / 4;
    p->both = p->servers.streams + p->players.streams;
    if (p->both <= left - p->http)
        return;
    p->both = left - p->http;
    if (p->servers.streams > p->both)
        p->servers.streams = p->both;
    if (p->players.streams > p->both - p->both / 4)
        p->players.streams = p->both - p->both / 4;
}

/* Raises the number of descriptors to what the system allows and leaves some to files, so that the
 * cap on connections, which is logged, is met before the descriptors run out, which libuv hides.
 * False when there are too few to serve anybody. */
static bool use_descriptors(struct front_places *p)
{
    struct rlimit files;
    p->both = p->servers.streams + p->players.streams;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return true;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
    size_t have = files.rlim_cur < SIZE_MAX / 2 ? (size_t)files.rlim_cur : SIZE_MAX / 2;
    size_t own = descriptors_in_use(have) + DESCRIPTORS_LOOP;
    if (have < own + 2)
        return false;
    size_t left = have - own;
    left = left > 2 * DESCRIPTOR_RESERVE ? left - DESCRIPTOR_RESERVE : left / 2;
    share(p, left);
    return true;
}

bool front_share(const struct service_config *c, struct front_places *ret,
                 char why[SERVICE_WHY_MAX])
{
    *ret = (struct front_places){
        .http = c->http.connections, .servers = c->limits, .players = c->client_limits};
    if (use_descriptors(ret))
        return true;
    snprintf(why, SERVICE_WHY_MAX,
             "Cannot serve: too few file descriptors. Raise the limit (ulimit -n)");
    return false;
}

static int open_door(struct doors *d, const struct port *port, const struct listener_place *place,
                     char *why)
{
    const char *reason = NULL;
    int err = doors_open(d, port, place, &reason);
    if (err != 0)
        snprintf(why, SERVICE_WHY_MAX, "Cannot listen for the %s port on %s:%u: %s", port->name,
                 place->ip, place->port, reason);
    return err;
}

int front_open(struct doors *d, struct loop_crowd *players, const struct service_config *c,
               char why[SERVICE_WHY_MAX])
{
    struct listener_place server = {c->bind_ip, c->server_port, c->server_tls, NULL,
                                    c->held.server};
    struct listener_place manager = {c->bind_ip, c->manager_port, c->manager_tls, NULL,
                                     c->held.manager};
    struct listener_place client = {c->bind_ip, c->client_port, c->client_tls, players,
                                    c->held.client};
    int err = open_door(d, &chat_server_port, &server, why);
    if (err == 0)
        err = open_door(d, &chat_manager_port, &manager, why);
    if (err == 0)
        err = open_door(d, &chat_client_port, &client, why);
    return err;
}

void front_ports(const struct doors *d, const struct rest *r, struct service_ports *ret)
{
    (void)listener_address(d->all[0].listener, ret->server);
    (void)listener_address(d->all[1].listener, ret->manager);
    (void)listener_address(d->all[2].listener, ret->client);
    (void)rest_address(r, ret->http);
}
