/* The service: the running Muster. It owns the loop, the store with its writer, the pipeline and
 * the doors, and connects them: reads feed the pipeline, the end of a turn flushes it, a finished
 * commit wakes the loop and releases effects, a signal stops everything in order. */
#pragma once

#include "api/access.h"
#include "api/agones.h"
#include "api/history.h"
#include "api/launch.h"
#include "api/nats.h"
#include "api/pubsub.h"
#include "api/rest.h"
#include "core/core.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/notify.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct service;

enum { SERVICE_WHY_MAX = 256 };

/* "address:port" of each, as bound. */
struct service_ports {
    char http[ADDRESS_MAX];
    char server[ADDRESS_MAX];
    char manager[ADDRESS_MAX];
    char client[ADDRESS_MAX];
};

/* Sockets that listen already (net/listening.h) and stay their holder's; 0 = one is opened. */
struct service_sockets {
    int http;
    int server;
    int manager;
    int client;
};

struct service_taker;

struct service_config {
    const struct core_config *core;
    const uint8_t *secret; /* CORE_SECRET_SIZE bytes */
    const char *bind_ip;
    uint16_t server_port; /* 0 picks one */
    uint16_t manager_port;
    uint16_t client_port;
    struct service_sockets held;
    struct tls *server_tls; /* NULL = plain; borrowed until the service is freed */
    struct tls *manager_tls;
    struct tls *client_tls;
    struct loop_limits limits; /* of servers' connections; fewer when the system allows fewer */
    struct loop_limits client_limits; /* of players' */

    struct rest_config http;       /* the HTTP port; of config_digest the service takes care */
    const char *gamespace;         /* what access tokens must be for */
    const struct access_key *keys; /* … and who may issue them, beside Muster itself */
    size_t n_keys;
    const char *login_url; /* who else makes tokens, see login.h; "" = nobody */

    /* Borrowed until service_reconfigure has handed in others, or service_free. */
    const struct launch *launches; /* one for each fleet of PROVIDER_AGENT */
    size_t n_launches;
    const char *geo_file;                /* where addresses are; "" = not known */
    const struct address_range *proxies; /* whose X-Forwarded-For is believed */
    size_t n_proxies;

    /* Brokers through which allocations are asked for; NULL = none. */
    const struct nats_config *nats;
    const struct pubsub_config *pubsub;

    /* Fleets that live in Kubernetes; NULL = none. Of its instance the service takes care. */
    const struct agones_config *agones;

    struct history_config history;

    const char *quilkin_file; /* kept for a proxy, see routes.h; "" = none */
    bool quilkin_filters;

    /* Says which configuration this is, for people. Belongs to the caller, lives as long as the
     * service and may be rewritten by reload. */
    const char *config_digest;

    /* SIGHUP: read the configuration again and hand over what can change; when that fails nothing
     * has changed and it has been said. On the loop's thread; NULL = SIGHUP does nothing. */
    int (*reload)(void *user, const struct service_taker *taker);
    void *reload_user;

    const char *node; /* our name in the cell whose store it is; NULL = there is none */
    const char
        *node_ca_file; /* who may sign other nodes' certificates; "" = whom the system trusts */

    /* The process goes on when the service has ended: signals that come then wait (net/signals.h).
     */
    bool goes_on;

    struct notify *notify; /* who is told how we are; NULL = nobody. Outlives the service. */

    /* What core_load has been given already, up to this tip, by somebody who followed the store;
     * the service's from now on, also on failure. NULL = the store is loaded. */
    struct core *loaded;
    struct store_tip loaded_tip;
    int64_t loaded_age_ms; /* as pipeline_loaded has it */
};

enum service_end {
    SERVICE_STOPPED, /* SIGTERM, SIGINT or service_stop */
    SERVICE_STEPPED_DOWN,
    SERVICE_FENCED, /* the store is somebody else's: nothing was said any more, nobody told */
};

/* What a running service can be given anew; copied, except what service_config says is borrowed. */
struct service_change {
    const struct core_config *core;
    const char *gamespace;
    const struct access_key *keys;
    size_t n_keys;
    const char *login_url;
    bool metrics_open;
    const struct launch *launches;
    size_t n_launches;
    const struct address_range *proxies;
    size_t n_proxies;
};

/* Who works with it from now on: a service, or a standby. */
struct service_taker {
    void (*reconfigure)(void *user, const struct service_change *change);

    /* Reads the geo file, which may hold something new under its old name; "" = none. One that
     * cannot be used leaves the one before, and a line in the log. */
    void (*reload_geo)(void *user, const char *file);
    void *user;
};

/* Loads the store and listens; peers are served once service_run is called. The store belongs to
 * the service from now on, also on failure. Returns 0 or an error, then why is a sentence for the
 * operator. The configuration is not needed afterwards. */
int service_start(const struct service_config *config, struct store *store, struct service **ret,
                  char why[SERVICE_WHY_MAX]);

void service_ports(const struct service *s, struct service_ports *ret);

/* What it knows now. */
void service_count(const struct service *s, struct core_counts *ret);

/* True when somebody made an enrolment token; those of the configuration do not count. */
bool service_has_tokens(const struct service *s);

/* Works with this from now on. On the loop's thread. */
void service_reconfigure(struct service *s, const struct service_change *change);

/* Serves until SIGTERM or SIGINT, service_stop or service_step_down: then accepts and reads no
 * more, finishes the batch, sends what it answers, gives the store back and returns. A second
 * signal ends the process at once. Or until the store is lost to another node: then it returns at
 * once. */
enum service_end service_run(struct service *s);

/* Begins what a SIGTERM begins; service_step_down so that another node may lead. On the loop's
 * thread. */
void service_stop(struct service *s);
void service_step_down(struct service *s);

/* NULL is fine. */
void service_free(struct service *s);
