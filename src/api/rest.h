/* The HTTP API: requests become events, effects become answers. It finds the row of the operation
 * table, checks the access token and the arguments, lets the row's handler look or change, and
 * answers when what was seen or done is durable. Embedded in the service, which drives it from the
 * loop's hooks. */
#pragma once

#include "api/access.h"
#include "api/door.h"
#include "api/lookup.h"
#include "api/metrics.h"
#include "api/seal.h"
#include "base/list.h"
#include "base/map.h"
#include "net/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agents;
struct agones;
struct archives;
struct bus;
struct buses;
struct call;
struct cluster_standby;
struct feed;
struct geo;
struct login;
struct store;
struct tls;
struct trends;

enum {
    REST_BODY_MAX = 64 * 1024,
    REST_HELD_MAX = 64 * 1024 * 1024, /* bytes of all answers that have not left */
    REST_HELD_BY_PEER_MAX = 8 * 1024 * 1024,
    REST_STORE_MS = 10 * 1000, /* the store's time to make durable what was seen */
    REST_WAIT_MAX_S = 60,
    REST_KEY_MAX = 128, /* an Idempotency-Key */
    REST_SPARES = 64,   /* calls that are over and wait to be used again */
};

struct rest_config {
    const char *ip;
    uint16_t port; /* 0 picks one */
    int held_fd;   /* as a listener's */
    size_t connections;
    size_t connections_per_address;
    struct tls *tls;           /* NULL = plain; borrowed until rest_done */
    bool metrics_open;         /* GET /metrics needs no token */
    const char *config_digest; /* borrowed; may be rewritten by its owner */
    const char *deployments;   /* the folder of their archives, made when needed; borrowed */
    const char *data;          /* the data folder, for backups; borrowed; NULL = there is none */
    const uint8_t *secret;     /* CORE_SECRET_SIZE bytes; not needed after rest_start */

    /* Whose X-Forwarded-For is believed; borrowed, see service_config. */
    const struct address_range *proxies;
    size_t n_proxies;
};

struct rest {
    struct doors *doors;
    struct access *access;
    struct metrics *metrics;
    struct feed *feed;
    struct trends *trends; /* this and the next three are set by the service before it runs */
    struct store *store;
    struct agents *agents;
    struct login *login;
    struct buses *buses;                   /* may be NULL, as the next two */
    struct agones *agones;                 /* … also when no fleet lives in Kubernetes */
    struct bus *pubsub;                    /* NULL = there is none; see pubsub.h */
    const struct archives *archives;       /* of a leader; NULL = it has them all */
    const struct cluster_standby *standby; /* NULL = this node serves; see cluster.h */

    /* This node is to lead no more: once what is under way is answered, it stops. NULL = nobody
     * else could lead. */
    void (*step_down)(void *user);
    void *step_down_user;
    struct http_server *http;
    struct seal seal; /* of players' access tokens */
    struct geo *geo;  /* borrowed from the service; NULL = nothing is known */
    const struct address_range *proxies;
    size_t n_proxies;
    bool metrics_open;
    const char *deployments;
    const char *data;
    struct backup_job *backup; /* the one that is being made or sent; NULL = none */
    const char *config_digest;
    int64_t started_wall_ms;
    bool stopping;

    struct lookups lookups; /* its history is set by the service */

    struct buf openapi; /* rendered when it is first asked for */

    struct map calls;     /* conn_id -> struct call, while core may answer it */
    int64_t ticked_ms;    /* 0 = not yet */
    struct list storing;  /* calls that wait for the store, the oldest first */
    struct map waiting;   /* ticket -> chain of calls that wait for its end */
    struct list patient;  /* the same calls */
    struct list asking;   /* calls that wait for what core says to a player or an agent */
    struct list resuming; /* calls that go on at the end of this turn */

    struct call *spares[REST_SPARES];
    size_t n_spares;
};

/* What it works with must outlive it. Nothing happens before rest_start. */
void rest_init(struct rest *r, struct doors *doors, struct access *access, struct metrics *metrics,
               struct feed *feed);

/* Listens. 0, or ERR_IO with *ret_why. */
int rest_start(struct rest *r, const struct rest_config *config, const char **ret_why);

/* Does what core wants done: pipeline_world's release. */
void rest_release(struct rest *r, const struct effect *effects, size_t n);

/* The loop's tick: requests that have waited long enough. */
void rest_tick(struct rest *r);

/* The end of a turn, before the pipeline is flushed: calls that go on look again. */
void rest_before_flush(struct rest *r);

/* Accepts no more; what is under way is answered, and nobody waits any longer. */
void rest_stop(struct rest *r);

/* Core will say no more: whoever still waits for it is told so. */
void rest_give_up(struct rest *r);

/* True when nothing is left to be answered. */
bool rest_is_idle(const struct rest *r);

/* Ends every connection. */
void rest_done(struct rest *r);

/* "address:port" as bound. Returns dst. */
const char *rest_address(const struct rest *r, char dst[ADDRESS_MAX]);
