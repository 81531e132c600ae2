/* The brokers of a configuration as the service takes them. Borrows from the configuration. */
#pragma once

#include "api/nats.h"
#include "api/pubsub.h"
#include "cli/config.h"

struct brokers {
    struct nats_config nats;
    struct pubsub_config pubsub;
};

/* Each returns what it filled in b, or NULL when none is configured. */
const struct nats_config *brokers_nats(struct brokers *b, const struct config *config);
const struct pubsub_config *brokers_pubsub(struct brokers *b, const struct config *config);
