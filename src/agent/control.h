/* The control plane as the agent sees it: heartbeats on a connection of their own, and the outbox's
 * events in batches, a few under way at a time. Whatever goes wrong is tried again, at the next of
 * its nodes and later and later; nothing is lost by that. Heartbeats find out who leads, and events
 * go after them; between heartbeats, where there are several nodes, the leader is asked each second
 * whether it still is. Owned by the agent; calls back from the loop. docs/agent-protocol.md is the
 * contract. */
#pragma once

#include "agent/outbox.h"
#include "base/buf.h"
#include "base/json.h"
#include "net/nodes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;
struct http_client;
struct loop;

struct control_config {
    struct nodes nodes; /* URLs without a path */
    const char *name;   /* of this host */
    const char *token;
    const char *ca_file; /* NULL = the system's */
    int64_t heartbeat_ms;
};

struct control_ops {
    /* Appends the next heartbeat. */
    void (*describe)(void *user, int64_t beat, bool leaving, struct buf *out);

    /* A heartbeat was taken. token: what the control plane will show us; "" = it did not say.
     * fetch: digests of deployments that it wants to be here; NULL = it did not say. */
    void (*beaten)(void *user, const char *token, const struct json *fetch);

    /* An event was answered, with one of the two; it is settled afterwards. */
    void (*answered)(void *user, const struct outbox_event *e, const struct json *result,
                     const struct json *error);

    /* The last heartbeat, after control_leave, was taken or cannot be. */
    void (*left)(void *user);
    void *user;
};

/* Everything is borrowed but what config points to. Nothing is sent before the loop runs. */
struct control *control_new(struct loop *loop, const struct control_config *config,
                            struct outbox *outbox, const struct control_ops *ops);
void control_free(struct control *c); /* NULL is fine */

/* Called from the loop's tick, and at the end of each turn. */
void control_tick(struct control *c, int64_t monotonic_ms);
void control_turn(struct control *c);

/* Says with one last heartbeat that we go. */
void control_leave(struct control *c);

/* Where it is now, without a path; and a client with our token for what else is asked of it. */
const char *control_url(const struct control *c);
struct http_client *control_client(const struct control *c);
