/* The service: the running Muster. It owns the loop, the store with its writer, the pipeline and
 * the doors, and connects them: reads feed the pipeline, the end of a turn flushes it, a finished
 * commit wakes the loop and releases effects, a signal stops everything in order. */
#pragma once

#include "api/access.h"
#include "api/agones.h"
#include "api/launch.h"
#include "api/nats.h"
#include "api/pubsub.h"
#include "api/rest.h"
#include "core/core.h"
#include "net/address.h"
#include "net/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct service;

enum { SERVICE_WHY_MAX = 256 };

struct service_config {
    const struct core_config *core;
    const uint8_t *secret; /* CORE_SECRET_SIZE bytes */
    const char *bind_ip;
    uint16_t server_port; /* 0 picks one */
    uint16_t manager_port;
    struct tls *server_tls; /* NULL = plain; borrowed until the service is freed */
    struct tls *manager_tls;
    struct loop_limits limits; /* of connections; fewer when the system allows fewer */

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

    const char *quilkin_file; /* kept for a proxy, see routes.h; "" = none */
    bool quilkin_filters;

    /* Says which configuration this is, for people. Belongs to the caller, lives as long as the
     * service and may be rewritten by reload. */
    const char *config_digest;

    /* SIGHUP: read the configuration again and hand over what can change with
     * service_reconfigure; when that fails nothing has changed and it has been said. On the loop's
     * thread; NULL = SIGHUP does nothing. */
    int (*reload)(void *user, struct service *s);
    void *reload_user;
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

/* Loads the store and listens; peers are served once service_run is called. The store belongs to
 * the service from now on, also on failure. Returns 0 or an error, then why is a sentence for the
 * operator. The configuration is not needed afterwards. */
int service_start(const struct service_config *config, struct store *store, struct service **ret,
                  char why[SERVICE_WHY_MAX]);

/* "address:port" of the doors, as bound. Each returns dst. */
const char *service_server_address(const struct service *s, char dst[ADDRESS_MAX]);
const char *service_manager_address(const struct service *s, char dst[ADDRESS_MAX]);
const char *service_http_address(const struct service *s, char dst[ADDRESS_MAX]);

/* What it knows now. */
void service_count(const struct service *s, struct core_counts *ret);

/* True when somebody made an enrolment token; those of the configuration do not count. */
bool service_has_tokens(const struct service *s);

/* Works with this from now on. On the loop's thread. */
void service_reconfigure(struct service *s, const struct service_change *change);

/* Reads the geo file, which may hold something new under its old name; "" = none. One that cannot
 * be used leaves the one before, and a line in the log. On the loop's thread. */
void service_reload_geo(struct service *s, const char *file);

/* Serves until SIGTERM or SIGINT, or service_stop: then accepts and reads no more, finishes the
 * batch, sends what it answers and returns. A second signal ends the process at once. */
void service_run(struct service *s);

/* Begins what a SIGTERM begins. On the loop's thread. */
void service_stop(struct service *s);

/* NULL is fine. */
void service_free(struct service *s);
