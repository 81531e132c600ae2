/* Google Pub/Sub as a bus (bus.h), over its REST interface: requests are pulled from a
 * subscription, or pushed to us by Google, and results are published to a topic.
 *
 *   pulled ─┐                                   ┌─▶ acknowledged, in batches
 *           ├─▶ bus_received … result published ┤
 *   pushed ─┘                                   └─▶ answered with 204
 *
 * What takes long is kept ours by modifyAckDeadline. When we crash, nobody acknowledges, and it
 * comes again.
 *
 * Owned by the buses it is added to. On the loop's thread. */
#pragma once

#include "api/bus.h"

struct call;
struct doors;
struct http_request;

enum {
    PUBSUB_WHY_MAX = 256,
    PUBSUB_PULL_MAX = 1000, /* messages per pull, by Google's rule */
    PUBSUB_PULLS_MAX = 16,
    PUBSUB_NAME_MAX = 255, /* bytes of a project, a topic, a subscription */
};

/* Texts are copied; "" is nothing. */
struct pubsub_config {
    const char *project;
    const char *subscription; /* "" = nothing is pulled: messages are pushed to us */
    const char *topic;        /* of results */
    const char *dead_topic;   /* of what cannot be answered; "" = it is logged and forgotten */

    /* A service account's key, as Google gives it (JSON); "" = the machine's own account, from its
     * metadata server. */
    const char *credentials_file;

    /* "" = https://pubsub.googleapis.com. The environment's PUBSUB_EMULATOR_HOST goes before it:
     * then it is http://, and without tokens. */
    const char *endpoint;

    /* POST /v1/pubsub/push is for the bearer of Google's token for this audience and this account;
     * "" = nobody may push. */
    const char *push_audience;
    const char *push_account; /* the e-mail address of the subscription's service account */
    const char *push_keys;    /* a URL; "" = https://www.googleapis.com/oauth2/v3/certs */

    int pull_messages; /* at most, of one pull; 0 = 100, at most PUBSUB_PULL_MAX */
    int pulls;         /* under way at once; 0 = 2, at most PUBSUB_PULLS_MAX */
};

/* A bus, to be handed to buses_add. NULL with a sentence when the configuration cannot be used.
 * What it works with must outlive it. */
struct bus *pubsub_new(struct doors *doors, const struct pubsub_config *config,
                       char why[PUBSUB_WHY_MAX]);

/* For the description of the API. */
extern const struct shape pubsub_message_shape;
extern const struct shape pubsub_push_shape;

/* The bearer of a request is Google, on behalf of the account that may push. b may be NULL. */
bool pubsub_may_push(struct bus *b, const struct http_request *r);

/* POST /v1/pubsub/push: answered with 204 when its message is acknowledged. b may be NULL. */
void pubsub_push(struct bus *b, struct call *c);
